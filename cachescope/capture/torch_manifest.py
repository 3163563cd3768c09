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
from operator import attrgetter
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
    """The names and files of all modules in a folder, as ``build_code_hash`` finds them, and in its order; none is imported."""
    for module in sorted(pkgutil.iter_modules([folder], prefix), key=attrgetter("name")):
        spec = module.module_finder.find_spec(module.name, None)
        if spec is not None and spec.origin is not None:
            yield module.name, spec.origin
            for inner in spec.submodule_search_locations or ():
                yield from modules_below(inner, f"{module.name}.")


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
