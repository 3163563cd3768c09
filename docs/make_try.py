"""The page that reads what one drops on it: Pyodide, the package and the page's own files, side by side.

``python docs/make_try.py FOLDER`` writes it, with npm; without npm it says that the page was left out. `make docs` has it too.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

HERE = Path(__file__).parent
PACKAGE = HERE.parent / "cachescope"
PYODIDE = "pyodide@314.0.7"
_OF_PYODIDE = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
EXAMPLES = ("tour", "vllm", "whole_directory")
# The explorer is for notebooks.
_LEFT_OUT = ("views", "__pycache__")


def write_try(folder: Path) -> str:
    """Write the page into a folder; the result says what was done."""
    npm = shutil.which("npm")
    if npm is None:
        return "the page to try it in the browser is left out: npm is not installed"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        done = subprocess.run(
            [npm, "pack", "--silent", PYODIDE], check=False, cwd=work, capture_output=True, text=True
        )
        packed = [*Path(work).glob("*.tgz")]
        if not packed:
            why = (done.stderr.strip() or "no reason given").splitlines()[0]
            return f"the page to try it in the browser is left out: npm pack {PYODIDE}: {why}"
        with tarfile.open(packed[0]) as archive:
            for name in _OF_PYODIDE:
                (folder / name).write_bytes(archive.extractfile(f"package/{name}").read())  # type: ignore[union-attr]
    _write_package(folder / "cachescope.zip")
    for one in (HERE / "try").iterdir():
        if one.suffix != ".py":
            shutil.copy(one, folder / one.name)
    shutil.copy(PACKAGE / "report" / "page" / "page.css", folder / "report.css")
    loaded = [
        {"name": name, "bytes": (folder / name).stat().st_size} for name in (*_OF_PYODIDE, "cachescope.zip")
    ]
    (folder / "files.json").write_text(json.dumps(loaded), encoding="utf-8")
    state = hashlib.sha256()
    for one in sorted(folder.iterdir()):
        state.update(one.read_bytes())
    cached = (HERE / "try" / "cached.js").read_text(encoding="utf-8")
    (folder / "cached.js").write_text(
        cached.replace("-BUILD", f"-{state.hexdigest()[:12]}"), encoding="utf-8"
    )
    return str(folder / "index.html")


def _write_package(target: Path) -> None:
    """The package with three samples, and what the page runs of it; the same bytes for the same files."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path in [HERE / "try" / "answers.py", *sorted(PACKAGE.rglob("*"))]:
            parts = path.relative_to(PACKAGE).parts if path.is_relative_to(PACKAGE) else ()
            is_other = parts[:1] == ("samples",) and len(parts) > 2 and parts[1] not in EXAMPLES
            if path.is_file() and not is_other and not {*_LEFT_OUT} & {*parts}:
                name = "/".join(("cachescope", *parts)) if parts else path.name
                archive.writestr(zipfile.ZipInfo(name), path.read_bytes(), zipfile.ZIP_DEFLATED)


if __name__ == "__main__":
    print(write_try(Path(sys.argv[1])))
