"""Record the ``torch_compile_cache`` that SGLang writes: ``python record_sglang.py PYTHON WHEEL VERSION``.

PYTHON has torch and what SGLang imports, WHEEL is an unpacked wheel of SGLang. The steps share one SGLANG_CACHE_DIR, one after the
other; the result is sglang/<version>.tar.xz, with what SGLang itself says of each step. Compiled libraries are left out.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

_PROGRAM = Path(__file__).with_name("sglang_program.py")
_FOLDER = Path("/tmp/cachescope-recording/sglang")
_STUBS = "triton,IPython"
# Its compiler, and the layers of its model. SGLang's default is the compiler "eager".
_STEPS = {
    "first": ("inductor", "1"),
    "again": ("inductor", "1"),
    "other_model": ("inductor", "2"),
    "eager": ("eager", "1"),
}


def main() -> None:
    """Run all steps, and pack what they left."""
    python, wheel, version = sys.argv[1:]
    shutil.rmtree(_FOLDER, ignore_errors=True)
    _FOLDER.mkdir(parents=True)
    program = shutil.copy(_PROGRAM, _FOLDER / "program.py")
    said = {}
    for name, (compiler, layers) in _STEPS.items():
        environment = os.environ | {
            "SGLANG_CACHE_DIR": str(_FOLDER / "cache"),
            "PYTHONPATH": wheel,
            "STUBS": _STUBS,
            "LAYERS": layers,
        }
        command = [python, program, compiler]
        ended = subprocess.run(command, check=True, env=environment, cwd=_FOLDER, capture_output=True)
        said[name] = json.loads(ended.stdout.splitlines()[-1])
    (_FOLDER / "steps.json").write_text(json.dumps({"sglang": version, "steps": said}, indent=1))
    packed = Path(__file__).parent / "sglang" / f"{version}.tar.xz"
    packed.parent.mkdir(exist_ok=True)
    with tarfile.open(packed, "w:xz") as archive:
        for path in ("steps.json", "cache"):
            archive.add(_FOLDER / path, path, filter=_kept)
    print(packed, packed.stat().st_size)


def _kept(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if member.name.endswith((".so", ".o", ".gch")) else member


if __name__ == "__main__":
    main()
