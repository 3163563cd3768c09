"""Files of Triton: ``<key>/<kernel>.json``, ``__grp__<kernel>.json`` (3.1 to 3.9), and ``<kk>/<64 hex>.best_config``."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Final

from cachescope.frames.directory_rows import EntryRow
from cachescope.readers.cache_file import DamagedContent, content_reader, load_object
from cachescope.readers.directory.entry_file import value_text
from cachescope.readers.directory.generated_files import compiled_from
from cachescope.readers.directory.places import TRITON_KEY, triton_hash
from cachescope.readers.json_record import well_formed
from cachescope.readers.reading import Reading

_KEY: Final = re.compile(TRITON_KEY)
_HEAD_BYTES: Final = 4_096
# Triton then finds no file of a group (`FileCacheManager.get_group`), and compiles again.
MOVED: Final = "the directory was moved"

# Not part of the configuration: `_load_cached_autotuning` removes them before it looks for an equal one.
_ABOUT_IT: Final = ("configs_hash", "found_by_coordesc", "time_taken_ms", "triton_cache_hash")

BY_DESCENT: Final = " (found by coordinate descent)"
"""Behind the configuration, where that is how it was found."""


def triton_hashes(keys: Iterable[object]) -> tuple[str, ...]:
    """The hashes of those values that are keys of Triton, each once.

    torch stores them in the spelling of ``triton_hash_to_path_key`` (torch/_inductor/runtime/runtime_utils.py).
    """
    named = [key for key in keys if isinstance(key, str) and _KEY.fullmatch(key)]
    return tuple(dict.fromkeys(triton_hash(key) for key in named))


def fill_kernel_metadata(entry: EntryRow, name: str, data: bytes, reading: Reading) -> None:
    """Note which kernel was compiled for which target, and compare its hash with the folder's.

    Mirrors ``CompiledKernel.metadata`` (triton/compiler/compiler.py).
    """
    metadata = load_object(data)
    entry.name = _word(metadata.get("name")) or name.removesuffix(".json")
    given = metadata.get("target")
    target = given if isinstance(given, dict) else {}
    if isinstance(target.get("backend"), str):
        entry.device_types = (well_formed(target["backend"]),)
    parts = {"arch": target.get("arch")}
    parts |= {key: metadata.get(key) for key in ("num_warps", "num_stages", "triton_version")}
    words = {key: _word(value) for key, value in parts.items()}
    entry.detail = ", ".join(f"{key} {word}" for key, word in words.items() if word is not None)
    if metadata.get("hash") is not None and metadata["hash"] != entry.cache_key:
        raise DamagedContent("its hash differs from the folder's name")


def _word(value: object) -> str | None:
    return well_formed(str(value))[:200] if isinstance(value, (str, int)) else None


def fill_group(entry: EntryRow, name: str, data: bytes, reading: Reading) -> None:
    """Note whether the paths in a group are still in its folder.

    Mirrors ``FileCacheManager.put_group`` (triton/runtime/cache.py). Where the cache directory was given as a relative path,
    which torch 2.7 keeps, so are they: a process finds them if it works where their writer did.
    """
    paths = load_object(data).get("child_paths")
    if not isinstance(paths, dict) or not all(isinstance(path, str) for path in paths.values()):
        raise DamagedContent("no group: holds no child_paths")
    entry.name = name.removeprefix("__grp__").removesuffix(".json")
    folder = os.path.dirname(os.path.abspath(entry.path))
    named = {well_formed(os.path.dirname(path)) for path in paths.values()} - {folder}
    elsewhere = sorted(one for one in named if not is_relative_name(one, folder))
    entry.detail = f"{len(paths)} files"
    if named and not elsewhere:
        entry.detail += ", by relative paths: found from the working directory of their writer alone"
    if elsewhere:
        entry.detail += f", at {elsewhere[0][:300]}: {MOVED}"


def is_relative_name(path: str, folder: str) -> bool:
    """Whether a relative path leads to a folder from some working directory."""
    return not os.path.isabs(path) and folder.endswith("/" + os.path.normpath(path).rpartition("../")[2])


def fill_intermediate(entry: EntryRow, name: str, data: bytes, reading: Reading) -> None:
    """Note the first file that the kernel was compiled from: another file with an equal function uses the same folder.

    Mirrors the locations that Triton prints (``#loc = loc("….py":18:0)``), Triton 3.2 to 3.9.
    """
    entry.name = name.removesuffix(".ttir")
    entry.code_key = compiled_from(data[:_HEAD_BYTES].decode("utf-8", "backslashreplace"))


_read_metadata = content_reader(fill_kernel_metadata)


def read_kernel_metadata(entry: EntryRow, path: str, name: str, reading: Reading) -> None:
    """Read it, and see whether its group is beside it.

    `FileCacheManager.get_group` (triton/runtime/cache.py) finds a kernel by that file alone, which is written last.
    """
    _read_metadata(entry, path, name, reading)
    group = f"__grp__{name}"
    # A link may lead to the file alone, and the path may not be spelled as it is on the disk.
    places = (os.path.join(os.path.dirname(one), group) for one in (path, entry.path))
    if not any(map(os.path.exists, places)):
        raise DamagedContent(f"without {group} Triton does not find it")


def fill_best_config(entry: EntryRow, name: str, data: bytes, reading: Reading) -> None:
    """Note which configuration won, and how long the search took.

    Mirrors ``AutotuneCache.save`` (torch/_inductor/runtime/autotune_cache.py, 2.5 to 2.15). The name is a
    hash of the kernel's file and, from 2.8, of torch itself: `cachescope.keys.best_config_name`.
    """
    best = load_object(data)
    if "configs_hash" not in best:
        raise DamagedContent("no best_config: holds no configs_hash")
    options = [f"{key}={value_text(value)}" for key, value in best.items() if key not in _ABOUT_IT]
    entry.detail = ", ".join(options[:40])
    entry.triton_hashes = triton_hashes([best.get("triton_cache_hash")])
    taken = best.get("time_taken_ms")
    if isinstance(taken, int) and 0 <= taken < 1 << 40:
        entry.time_taken_ns = taken * 1_000_000
    if best.get("found_by_coordesc") is True:
        entry.detail += BY_DESCENT
