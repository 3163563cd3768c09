"""Records a remote cache: ``python tests/data/record_remote.py PYTHON`` for an interpreter with torch and the package ``redis``.

Writes ``tests/data/remote/VERSION.tar.xz``: what `remote_program.py` put into a Redis, dumped as the how-to says
(``remote.jsonl``), and the trace, the text log and the FX and AOTAutograd entries of the same run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from packing import pack_each

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from redis_server import redis_server, remote_settings, write_dump

_PROGRAM = Path(__file__).with_name("remote_program.py")
# The entries hold the path of the program.
_FOLDER = Path("/tmp/cachescope-recording/remote")
_LOGS = "+torch._inductor.codecache,+torch._functorch._aot_autograd.autograd_cache"


def run(python: str, program: Path, folder: Path, port: int, cache: Path) -> None:
    """Run the program with torch's remote caches at a port of loopback."""
    settings = {
        "TORCH_TRACE": str(folder / "trace"),
        "TORCH_LOGS": _LOGS,
        "TORCHINDUCTOR_CACHE_DIR": str(cache),
    }
    with (folder / "run.log").open("wb") as log:
        environment = os.environ | settings | remote_settings(port)
        subprocess.run([python, program], check=True, env=environment, cwd=program.parent, stderr=log)


def record_into(folder: Path, python: str) -> None:
    """Record into a folder, with an empty Redis and an empty cache."""
    _FOLDER.mkdir(parents=True, exist_ok=True)
    program = Path(shutil.copy(_PROGRAM, _FOLDER / "program.py"))
    with tempfile.TemporaryDirectory(dir=_FOLDER) as cache, redis_server() as port:
        run(python, program, folder, port, Path(cache))
        write_dump(port, str(folder))
        for kind in ("fxgraph", "aotautograd"):
            shutil.copytree(Path(cache, kind), folder / "cache" / kind)


if __name__ == "__main__":
    pack_each("remote", record_into)
