"""The source files that go into torch's own key, each with its hash.

Torch's key is one hash of all of them and does not show what differs. The manifest is made by the same walk over
the same bytes, and checked against torch's own key.
"""

from __future__ import annotations

import hashlib
import os
import pkgutil
import re
from base64 import b64encode
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from typing import Final

from cachescope.json_types import JsonObject

# torch/_inductor/codecache.py, `torch_key` (2.4 to 2.15): the version, every module, then these files.
_EXTRA_FILES: Final = re.compile(r"extra_files = \(([^()]*)\)")
_STEPS: Final = (
    'hasher.update(torch.__version__.encode("utf-8"))',
    'build_code_hash([root], "", hasher)',
    "for path in extra_files:",
)


def torch_manifest() -> JsonObject:
    """The parts of this process's torch key: the hashes of its files in torch's order, including compiled modules."""
    # `torch_key` is in base64, as the context form `torch_version_hash`; `is_complete`: the same walk gives exactly that key, so that equal
    # files mean an equal key. Mirrors `torch_key` and `build_code_hash` of torch/_inductor/codecache.py (2.6 to 2.15).
    import torch
    from torch._inductor import codecache

    root = Path(codecache._TORCH_PATH)
    key: bytes = codecache.torch_key()
    hasher = hashlib.sha256(torch.__version__.encode("utf-8"))
    files: dict[str, str] = {}
    for module, path in (*modules_below(os.fspath(root), ""), *(extra_files(root) or ())):
        content = Path(path).read_bytes()
        hasher.update(module.encode("utf-8") + content)
        files[os.path.relpath(path, root)] = hashlib.sha256(content).hexdigest()
    return {"torch_key": b64encode(key).decode(), "is_complete": hasher.digest() == key, "files": files}


def modules_below(folder: str, prefix: str) -> Iterator[tuple[str, str]]:
    """The names and files of all modules in a folder, as ``build_code_hash`` finds them, and in its order; none is imported."""
    for module in sorted(pkgutil.iter_modules([folder], prefix), key=attrgetter("name")):
        spec = module.module_finder.find_spec(module.name, None)
        if spec is not None and spec.origin is not None:
            yield module.name, spec.origin
            for inner in spec.submodule_search_locations or ():
                yield from modules_below(inner, f"{module.name}.")


def extra_files(root: Path) -> list[tuple[str, str]] | None:
    """The files besides the modules, which have no name there; None if this torch makes its key in a way that is not known here."""
    source = (root / "_inductor" / "codecache.py").read_text(encoding="utf-8", errors="replace")
    body = source.partition("\ndef torch_key(")[2].partition("\n\n\n")[0]
    named = _EXTRA_FILES.search(body)
    if named is None or not all(step in body for step in _STEPS):
        return None
    paths = (root / "_inductor" / name for name in re.findall(r"['\"]([^'\"]+)['\"]", named[1]))
    return [("", os.fspath(path)) for path in paths if path.exists()]
