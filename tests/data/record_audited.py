"""Records the caches in `tests/data/audited`: what torch wrote of versions that no recording is of.

    python3 -m venv /tmp/t280 && /tmp/t280/bin/pip install torch==2.8.0 numpy
    python tests/data/record_audited.py /tmp/t280/bin/python

A model that is trained, sizes that vary, views, a tensor that a function holds, and the mega-cache of all of it; once with
bundled entries. Compiled code is left out, which other recordings hold enough of.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

TARGET = Path(__file__).parent / "audited"
PROGRAM = """
import os, sys, torch
if "bundled" in sys.argv:
    import torch._functorch.config
    torch._functorch.config.bundled_autograd_cache = True
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.LayerNorm(8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
compiled, held = torch.compile(model), torch.randn(8, 8)
for size in (4, 6):
    compiled(torch.randn(size, 8)).sum().backward()
torch.compile(lambda x: ((x @ held).sum(0), x[::2].t()))(torch.randn(8, 8))
growing = torch.compile(lambda x: (x.view(-1, 2).cumsum(0), x.shape[0] * 2), dynamic=True)
growing(torch.randn(6)), growing(torch.randn(10))
with open(os.path.join(os.environ["TORCHINDUCTOR_CACHE_DIR"], "mega_cache.bin"), "wb") as file:
    file.write(torch.compiler.save_cache_artifacts()[0])
print(torch.__version__.partition("+")[0])
"""


def main() -> None:
    python = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        for name in ("plain", "bundled"):
            cache = Path(folder) / name
            cache.mkdir()
            environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(cache), "TORCH_COMPILE_JOB_ID": "job"}
            environment.pop("PYTHONPATH", None)
            done = subprocess.run(
                [python, "-c", PROGRAM, name], env=environment, stdout=subprocess.PIPE, text=True, check=True
            )
            version = done.stdout.split()[-1]
        TARGET.mkdir(exist_ok=True)
        with tarfile.open(TARGET / f"{version}.tar.xz", "w:xz") as archive:
            for path in sorted(Path(folder).rglob("*")):
                if path.is_file() and path.suffix not in (".so", ".cpp", ".h"):
                    archive.add(path, path.relative_to(folder))


if __name__ == "__main__":
    main()
