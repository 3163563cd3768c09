"""Records threads that compile at once: ``python tests/data/record_threads.py PYTHON`` for an interpreter with torch.

Writes ``tests/data/threads/VERSION.tar.xz`` with the trace of one process, and what torch itself measured of each compile
and in which thread it was (``measured.json``).
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from packing import pack_each

_PROGRAM = """
import json
import sys
import threading

import torch
from torch._dynamo.callback import callback_handler
from torch._dynamo.utils import get_compilation_metrics

compiled = []
second_compiles = threading.Event()


def note(args):
    compiled.append([args.compile_id, threading.current_thread().name])
    if threading.current_thread().name == "second":
        second_compiles.set()


callback_handler.register_start_callback(note)


def f(x):
    return (x.sin() + 1).relu().sum()


def g(x):
    for _ in range(8):
        x = (x.cos() @ x).tanh()
    return x.sum()


# The backward graph of the first thread has to wait until the second has compiled: torch has one lock for both.
loss = torch.compile(f)(torch.randn(8, 8, requires_grad=True))


def first():
    second_compiles.wait()
    loss.backward()


def second():
    torch.compile(g)(torch.randn(16, 16, requires_grad=True)).backward()


made = [threading.Thread(target=first, name="first"), threading.Thread(target=second, name="second")]
for thread in made:
    thread.start()
for thread in made:
    thread.join()

measured = [
    {
        "compile_id": one.compile_id,
        "is_forward": one.is_forward,
        "duration_us": one.duration_us,
        "start_time_us": one.start_time_us,
        "end_time_us": one.end_time_us,
    }
    for one in get_compilation_metrics()
]
with open(sys.argv[1], "w") as file:
    json.dump({"compiles": measured, "threads": compiled}, file, indent=1)
"""


def record_into(folder: Path, python: str = sys.executable) -> Path:
    """Run the program; the folder then has its trace and ``measured.json``."""
    program = folder / "threads.py"
    program.write_text(_PROGRAM, encoding="utf-8")
    environment = os.environ | {
        "TORCH_TRACE": str(folder / "trace"),
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "cache"),
    }
    command = [python, str(program), str(folder / "measured.json")]
    subprocess.run(command, check=True, env=environment, timeout=600)
    return folder


if __name__ == "__main__":
    pack_each("threads", record_into, {"threads.py", "cache"})
