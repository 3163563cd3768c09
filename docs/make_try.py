"""The page that reads what one drops on it: Pyodide, the package and the page's own files, side by side.

``python docs/make_try.py FOLDER`` writes it, with npm; without npm it says that the page was left out. `make docs` has it too.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from cachescope.report.page.file import page_script

HERE = Path(__file__).parent
PACKAGE = HERE.parent / "cachescope"
PYODIDE = "pyodide@314.0.7"
_OF_PYODIDE = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
EXAMPLES = ("tour", "vllm", "whole_directory")
# The explorer is for notebooks.
_LEFT_OUT = ("views", "__pycache__")
# By the Python that runs it: compiling takes a browser seconds. Nothing in it depends on where and when this is.
_COMPILE = """
import compileall, py_compile
compileall.compile_dir("{0}", stripdir="{0}", quiet=2, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
"""


def fetch_pyodide(folder: Path) -> str:
    """Put Pyodide into a folder, from npm; the result says why not, and is empty if it is there."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        return "npm is not installed"
    with tempfile.TemporaryDirectory() as work:
        done = subprocess.run(
            [npm, "pack", "--silent", PYODIDE], check=False, cwd=work, capture_output=True, text=True
        )
        packed = [*Path(work).glob("*.tgz")]
        if not packed:
            return f"npm pack {PYODIDE}: {(done.stderr.strip() or 'no reason given').splitlines()[0]}"
        with tarfile.open(packed[0]) as archive:
            for name in _OF_PYODIDE:
                (folder / name).write_bytes(archive.extractfile(f"package/{name}").read())  # type: ignore[union-attr]
    return ""


def in_pyodide(pyodide: Path, code: str, *folders: Path) -> None:
    """Run Python code in Pyodide under node, which has these folders too."""
    script = [str(HERE / "in_pyodide.mjs"), str(pyodide), code, *map(str, folders)]
    subprocess.run([shutil.which("node") or "node", *script], check=True)


def write_try(folder: Path) -> str:
    """Write the page into a folder; the result says what was done."""
    with tempfile.TemporaryDirectory() as work:
        pyodide = Path(work)
        if why := fetch_pyodide(pyodide):
            return f"the page to try it in the browser is left out: {why}"
        folder.mkdir(parents=True, exist_ok=True)
        _write_package(folder / "cachescope.zip", pyodide)
        for name in _OF_PYODIDE:
            shutil.copy(pyodide / name, folder / name)
    # Not every server packs what it serves.
    wasm = folder / "pyodide.asm.wasm"
    (folder / f"{wasm.name}.packed").write_bytes(gzip.compress(wasm.read_bytes(), mtime=0))
    wasm.unlink()
    for one in (HERE / "try").iterdir():
        if one.suffix != ".py":
            shutil.copy(one, folder / one.name)
    # A policy that is inherited allows a script by its hash too.
    page = folder / "index.html"
    page.write_text(page.read_text(encoding="utf-8").replace("REPORT", page_script()[1]), encoding="utf-8")
    shutil.copy(PACKAGE / "report" / "page" / "page.css", folder / "report.css")
    loaded = (
        *(f"{wasm.name}.packed" if name == wasm.name else name for name in _OF_PYODIDE),
        "cachescope.zip",
    )
    listed = [{"name": name, "bytes": (folder / name).stat().st_size} for name in loaded]
    (folder / "files.json").write_text(json.dumps(listed), encoding="utf-8")
    state = hashlib.sha256()
    for one in sorted(folder.iterdir()):
        state.update(one.read_bytes())
    cached = (HERE / "try" / "cached.js").read_text(encoding="utf-8")
    (folder / "cached.js").write_text(
        cached.replace("-BUILD", f"-{state.hexdigest()[:12]}"), encoding="utf-8"
    )
    return str(folder / "index.html")


def _write_package(target: Path, pyodide: Path) -> None:
    """The package with three samples, and what the page runs of it, compiled; the same bytes for the same files."""
    with tempfile.TemporaryDirectory() as work, zipfile.ZipFile(target, "w") as archive:
        root = Path(work)
        for path in [HERE / "try" / "answers.py", *PACKAGE.rglob("*")]:
            parts = path.relative_to(PACKAGE).parts if path.is_relative_to(PACKAGE) else ()
            is_other = parts[:1] == ("samples",) and len(parts) > 2 and parts[1] not in EXAMPLES
            if path.is_file() and not is_other and not {*_LEFT_OUT} & {*parts}:
                place = root.joinpath("cachescope", *parts) if parts else root / path.name
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, place)
        in_pyodide(pyodide, _COMPILE.format(root), root)
        for path in sorted(root.rglob("*")):
            if path.is_file():
                name = zipfile.ZipInfo(path.relative_to(root).as_posix())
                archive.writestr(name, path.read_bytes(), zipfile.ZIP_DEFLATED, compresslevel=9)


if __name__ == "__main__":
    print(write_try(Path(sys.argv[1])))
