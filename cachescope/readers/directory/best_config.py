"""Triton autotune results: ``<kk>/<64 hex>.best_config``, next to the code that defines the kernel."""

from __future__ import annotations

from typing import Final

from cachescope.readers.checked_file import DamagedContent, content_reader
from cachescope.readers.directory.triton_dir import triton_hashes
from cachescope.readers.directory.value_text import value_text
from cachescope.readers.json_file import load_object
from cachescope.readers.reading import Entry, Reading

# Not part of the configuration: `_load_cached_autotuning` removes them before it looks for an equal one.
_ABOUT_IT: Final = ("configs_hash", "found_by_coordesc", "time_taken_ms", "triton_cache_hash")

BY_DESCENT: Final = " (found by coordinate descent)"
"""Behind the configuration, where that is how it was found."""


def fill_best_config(entry: Entry, name: str, data: bytes, reading: Reading) -> None:
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


read_best_config = content_reader(fill_best_config)
