"""Records a text log with Dynamo's logger on: ``python tests/data/record_places.py PYTHON`` for an interpreter with torch.

Writes ``tests/data/places/VERSION.tar.xz`` with the log, and the places that Python itself gives.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from packing import pack_each

_HERE = Path(__file__).resolve().parent
_LOGGERS = "dynamo,torch._inductor.codecache,torch._functorch._aot_autograd.autograd_cache"


def record_into(folder: Path, python: str = sys.executable) -> Path:
    """Run the program; the folder then holds ``torch.log`` and ``places.json``."""
    environment = os.environ | {
        "TORCH_LOGS": _LOGGERS,
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "cache"),
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
    }
    program = folder / "place_programs.py"
    program.write_bytes((_HERE / "place_programs.py").read_bytes())
    with (folder / "torch.log").open("wb") as log, (folder / "places.json").open("wb") as places:
        command = [python, str(program), str(folder)]
        subprocess.run(command, check=True, env=environment, stdout=places, stderr=log, timeout=300)
    return folder


if __name__ == "__main__":
    pack_each("places", record_into, {"cache", "place_programs.py", "my model: v2.py"})
