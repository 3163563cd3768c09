"""The source files that go into torch's own key, each with its hash.

Torch's key is one hash of all of them and does not show what differs. The manifest is made by the same walk over
the same bytes, and checked against torch's own key.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import pkgutil
from base64 import b64encode
from collections.abc import Iterator
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


def torch_manifest() -> JsonObject:
    """Return the parts of this process's torch key.

    Returns
    -------
    dict
        ``torch_key`` (base64, as the context form ``torch_version_hash``), ``is_complete`` (whether the same
        walk gives exactly that key, in which case equal files mean an equal key) and ``files``: path below torch/ ->
        sha256 of its bytes, including compiled modules, in torch's order.

    Notes
    -----
    Mirrors ``torch_key`` and ``build_code_hash`` of torch/_inductor/codecache.py (2.6 to 2.15).
    """
    torch: Any = importlib.import_module("torch")
    codecache: Any = importlib.import_module("torch._inductor.codecache")
    root = str(codecache._TORCH_PATH)
    key: bytes = codecache.torch_key()
    hasher = hashlib.sha256(torch.__version__.encode("utf-8"))
    files: dict[str, str] = {}
    for module, path in modules_below([root], ""):
        content = Path(path).read_bytes()
        hasher.update(module.encode("utf-8"))
        hasher.update(content)
        files[os.path.relpath(path, root)] = hashlib.sha256(content).hexdigest()
    extra_files, is_complete = _extra_files(hasher, Path(codecache.__file__).parent, key)
    files |= {
        os.path.relpath(path, root): hashlib.sha256(path.read_bytes()).hexdigest() for path in extra_files
    }
    return {"torch_key": b64encode(key).decode(), "is_complete": is_complete, "files": files}


def modules_below(roots: Any, prefix: str) -> Iterator[tuple[str, str]]:
    """The names and files of all modules in some folders, in the order of ``build_code_hash``; none is imported."""
    for module in sorted(pkgutil.iter_modules(roots, prefix), key=lambda module: module.name):
        # torch uses the same finder in the same way, and opens what it finds.
        finder: Any = module.module_finder
        spec = finder.find_spec(module.name, None)
        yield spec.name, spec.origin
        if module.ispkg:
            yield from modules_below(spec.submodule_search_locations, f"{spec.name}.")


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
