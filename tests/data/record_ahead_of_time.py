"""Records what is compiled ahead of time: ``python tests/data/record_ahead_of_time.py PYTHON`` for an interpreter with torch.

Writes ``tests/data/ahead_of_time/VERSION.tar.xz`` with a trace and a text log of each of three processes: ``package``
(torch._inductor.aoti_compile_and_package), ``export`` (torch.export alone), and ``both`` (a package with caches switched off, and
torch.compile after it).
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from packing import pack_each

_HERE = Path(__file__).resolve().parent
_FOLDER = Path("/tmp/cachescope-recording/ahead_of_time")
_PROGRAM = """
import sys
import torch
from torch._inductor import aoti_compile_and_package

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x) * 2

x = torch.ones(2, 4)
with torch.no_grad():
    exported = torch.export.export(Model(), (x,))
    if sys.argv[1] != "export":
        aoti_compile_and_package(exported, package_path=sys.argv[2])
    if sys.argv[1] == "both":
        torch.compile(Model())(x)
"""
_LOGGERS = (
    "torch._inductor.codecache,torch._functorch._aot_autograd.autograd_cache,+torch._inductor.compile_fx"
)
WAYS = ("package", "export", "both")


def record_into(folder: Path, python: str) -> None:
    """Run the program in each way; the folder then has for each a folder with a trace, and a text log beside it."""
    _FOLDER.mkdir(parents=True, exist_ok=True)
    program = _FOLDER / "program.py"
    program.write_text(_PROGRAM, encoding="utf-8")
    for way in WAYS:
        with tempfile.TemporaryDirectory(dir=_FOLDER) as work:
            environment = os.environ | {
                "TORCH_TRACE": str(folder / way),
                "TORCH_LOGS": _LOGGERS,
                "TORCH_LOGS_OUT": str(folder / f"{way}.log"),
                "TORCHINDUCTOR_CACHE_DIR": f"{work}/cache",
                "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1" if way == "both" else "0",
            }
            subprocess.run([python, str(program), way, f"{work}/model.pt2"], check=True, env=environment)


if __name__ == "__main__":
    pack_each("ahead_of_time", record_into)
