"""Runs one program, or several, one after the other."""

import os
import sys

import torch

from tests.capture.programs import BYPASSED, PROGRAMS, RANKS
from tests.capture.programs.registry import write_counted

if switched_off := os.environ.get("PREFLIGHT_PROGRAM_CONFIG"):
    setattr(torch._inductor.config, switched_off, False)
for name in sys.argv[1].split(","):
    torch.manual_seed(0)
    (PROGRAMS | BYPASSED)[name]()
    torch._dynamo.reset()
if len(sys.argv) > 2:
    write_counted(sys.argv[2])
if sys.argv[1] in RANKS:
    # To end a gloo group, Python waits for its threads, and one of them may wait for Python's lock.
    os._exit(0)
