"""Records a cache directory and what pre-flights say of it: ``python tests/data/record_preflights.py PYTHON``, with torch.

Writes ``tests/data/preflights/VERSION.tar.xz``: ``cache`` as one run left it, and the pre-flights of `STEPS`.
The Python needs cachescope too.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from datetime import UTC, datetime
from pathlib import Path

_PROGRAM = Path(__file__).with_name("preflight_program.py")
_FOLDER = Path("/tmp/cachescope-recording/preflights")
BAKED = {"TORCHINDUCTOR_COMPILE_THREADS": "1", "OMP_NUM_THREADS": "2"}
STEPS = {
    "as_baked": {},
    "changed": {"OMP_NUM_THREADS": "1", "NO_FUSION": "1"},
    "half_fixed": {"NO_FUSION": "1"},
}


def record_into(folder: Path, python: str = sys.executable) -> Path:
    """Bake a cache directory, and run the pre-flights on it."""
    shutil.rmtree(_FOLDER, ignore_errors=True)
    _FOLDER.mkdir(parents=True)
    program = Path(shutil.copy(_PROGRAM, _FOLDER / "train.py"))
    cache = _FOLDER / "cache"
    environment = os.environ | BAKED | {"TORCHINDUCTOR_CACHE_DIR": str(cache)}
    subprocess.run([python, str(program)], check=True, env=environment, timeout=300)
    for step, variables in STEPS.items():
        keep = _FOLDER / step
        command = [python, "-m", "cachescope", "preflight", "--keep", str(keep), "--", python, str(program)]
        subprocess.run(command, check=True, env=environment | variables, timeout=300)
    for path in [*cache.rglob("*.so"), *cache.rglob("*.gch"), *_FOLDER.rglob("torch.log")]:
        path.unlink()
    for name in ("locks", "precompiled_headers"):
        shutil.rmtree(cache / name, ignore_errors=True)
    about = {
        "scenario": "preflight",
        "summary": "a cache directory of one training step, and pre-flights on it: as it was baked, with two changes, with one of them",
        "torch_version": subprocess.run(
            [python, "-c", "import torch; print(torch.__version__)"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": "python tests/data/record_preflights.py PYTHON",
        "steps": [{"step": step, "environment": BAKED | variables} for step, variables in STEPS.items()],
    }
    (_FOLDER / "scenario.json").write_text(json.dumps(about, indent=1))
    for path in _FOLDER.iterdir():
        shutil.move(path, folder / path.name)
    return folder


def pack(python: str) -> None:
    """Record with one interpreter, and pack it as recordings are: a sample is made of it."""
    with tempfile.TemporaryDirectory() as work:
        folder = record_into(Path(work), python)
        version = json.loads((folder / "scenario.json").read_text())["torch_version"].split("+")[0]
        packed = Path(__file__).parent / "preflights" / f"{version}.tar.xz"
        packed.parent.mkdir(exist_ok=True)
        with tarfile.open(packed, "w:xz") as archive:
            for name in ("scenario.json", "cache", *STEPS):
                archive.add(folder / name, name)
    print(packed, packed.stat().st_size)


if __name__ == "__main__":
    for interpreter in sys.argv[1:]:
        pack(interpreter)
