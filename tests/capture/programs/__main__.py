"""Runs one program, or several, one after the other."""

from __future__ import annotations

import os
import sys

import torch

from tests.capture.programs import BYPASSED, PROGRAMS
from tests.capture.programs.counting import write_counted

if switched_off := os.environ.get("PREFLIGHT_PROGRAM_CONFIG"):
    setattr(torch._inductor.config, switched_off, False)
for name in sys.argv[1].split(","):
    torch.manual_seed(0)
    (PROGRAMS | BYPASSED)[name]()
    torch._dynamo.reset()
if len(sys.argv) > 2:
    write_counted(sys.argv[2])
