"""The source files that go into torch's own key, each with its hash.

Torch's key is one hash of all of them and does not show what differs. The manifest is made by the same walk over
the same bytes, and checked against torch's own key.
"""

from __future__ import annotations

import hashlib
import importlib
import os
from base64 import b64encode
from collections.abc import Iterable, Iterator
from importlib.machinery import BYTECODE_SUFFIXES, EXTENSION_SUFFIXES, SOURCE_SUFFIXES
from pathlib import Path
from typing import Any, Final

from cachescope.json_types import JsonObject

# The files besides the modules, which differ by version: 2.10 to 2.14, 2.15, 2.6. Through 2.15 the first
# selection whose key is torch's own is the right one.
_EXTRA_FILES: Final = (
    ("codegen/aoti_runtime/interface.cpp", "script.ld"),
    ("codegen/aoti_runtime/interface.cpp", "codegen/aoti_runtime/streams.h", "script.ld"),
    (
        "codegen/aoti_runtime/interface.cpp",
        "codegen/aoti_runtime/implementation.cpp",
        "codegen/cpp_prefix.h",
        "script.ld",
    ),
)

# How the file of a module may end, in the order in which Python looks for it.
_ORDER: Final = {
    suffix: at for at, suffix in enumerate((*EXTENSION_SUFFIXES, *SOURCE_SUFFIXES, *BYTECODE_SUFFIXES))
}
_INIT: Final = "__init__"
# The files and the folders in a folder, by their names.
_Held = tuple[set[str], list[str]]


def torch_manifest() -> JsonObject:
    """The parts of this process's torch key: the hashes of its files in torch's order, including compiled modules."""
    # `torch_key` is in base64, as the context form `torch_version_hash`; `is_complete`: the same walk gives exactly that key, so that equal
    # files mean an equal key. Mirrors `torch_key` and `build_code_hash` of torch/_inductor/codecache.py (2.6 to 2.15).
    torch: Any = importlib.import_module("torch")
    codecache: Any = importlib.import_module("torch._inductor.codecache")
    root = str(codecache._TORCH_PATH)
    key: bytes = codecache.torch_key()
    hasher = hashlib.sha256(torch.__version__.encode("utf-8"))
    files: dict[str, str] = {}
    for module, path in modules_below(root, ""):
        content = Path(path).read_bytes()
        hasher.update(module.encode("utf-8"))
        hasher.update(content)
        files[os.path.relpath(path, root)] = hashlib.sha256(content).hexdigest()
    extra_files, is_complete = _extra_files(hasher, Path(codecache.__file__).parent, key)
    files |= {os.path.relpath(one, root): hashlib.sha256(one.read_bytes()).hexdigest() for one in extra_files}
    return {"torch_key": b64encode(key).decode(), "is_complete": is_complete, "files": files}


def modules_below(folder: str, prefix: str) -> Iterator[tuple[str, str]]:
    """The names and files of all modules in a folder, in the order of ``build_code_hash``; none is imported.

    As `pkgutil.iter_modules` and the finder that it names say them, with one look at each folder.
    """
    yield from _modules_of(folder, _files_and_folders(folder), prefix)


def _modules_of(folder: str, held: _Held, prefix: str) -> Iterator[tuple[str, str]]:
    files, folders = held
    modules = _first_of_each(files)
    modules.pop(_INIT, None)
    packages: dict[str, _Held] = {}
    for name in folders:
        inner = _files_and_folders(os.path.join(folder, name)) if "." not in name else None
        if inner is not None and (init := _first_of_each(inner[0]).get(_INIT)) is not None:
            packages[name] = inner
            modules[name] = os.path.join(name, init)
    for name, file in sorted(modules.items()):
        yield prefix + name, os.path.join(folder, file)
        if name in packages:
            yield from _modules_of(os.path.join(folder, name), packages[name], f"{prefix}{name}.")


def _first_of_each(files: Iterable[str]) -> dict[str, str]:
    """Of each module in some files the one that Python finds."""
    found: dict[str, str] = {}
    for file in files:
        name, dot, rest = file.partition(".")
        if name and dot + rest in _ORDER:
            found[name] = min(found.get(name, file), file, key=lambda one: _ORDER[one[one.index(".") :]])
    return found


def _files_and_folders(folder: str) -> _Held:
    files: set[str] = set()
    folders: list[str] = []
    try:
        with os.scandir(folder) as items:
            for item in items:
                if item.is_dir():
                    folders.append(item.name)
                elif item.is_file():
                    files.add(item.name)
    except OSError:
        return set(), []
    return files, folders


def _extra_files(hasher: Any, folder: Path, key: bytes) -> tuple[list[Path], bool]:
    for names in _EXTRA_FILES:
        whole = hasher.copy()
        present = [path for path in (folder / name for name in names) if path.exists()]
        for path in present:
            whole.update(path.read_bytes())
        if whole.digest() == key:
            return present, True
    every = sorted({folder / name for names in _EXTRA_FILES for name in names})
    return [path for path in every if path.exists()], False
