"""Temporary empty caches like those of torch's ``fresh_cache``, without its effect on the user's own caches.

Entering torch's ``fresh_cache`` removes ``<default root>/cache/should_pad`` (2.11 to 2.15), because the ``cache_clear``
of a ``PersistentMemoizer`` clears the directory. Here the same in-memory caches are cleared, and the
directories of such memoizers are replaced by empty ones.
"""

from __future__ import annotations

import copy
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cachescope.capture.preflight.cache_folder import INDUCTOR_DIR, TRITON_DIR
from cachescope.capture.torch_modules import torch_module


@contextmanager
def fresh_caches() -> Iterator[Path]:
    """Empty Inductor and Triton directories in a new folder, which stays, and cleared in-memory caches, meanwhile."""
    # Mirrors `fresh_cache` of torch/_inductor/utils.py (2.8 to 2.15; `fresh_inductor_cache` through 2.7). It uses torch's
    # `torch._inductor.utils._registered_caches` (the `cache_clear` of each) and, unlike `fresh_cache`, `torch._dynamo.reset()`: code that
    # Dynamo has compiled in this process looks nothing up.
    # Imported before the variables are set: some modules keep the directory they find at import, and the
    # last one makes the memoizer for `should_pad`.
    for name in ("torch._dynamo", "torch._inductor.compile_fx", "torch._inductor.fx_passes.pad_mm"):
        torch_module(name)
    clear_memory()
    torch_module("torch._dynamo").reset()
    folder = Path(tempfile.mkdtemp(prefix="cachescope-fresh-"))
    try:
        variables = {INDUCTOR_DIR: str(folder), TRITON_DIR: str(folder / "triton")}
        with _variables(variables), _memoizers_below(folder / "cache"):
            yield folder
    finally:
        clear_memory()


def clear_memory() -> None:
    """Clear what torch's ``clear_caches`` clears, except on disk."""
    for cache in list(torch_module("torch._inductor.utils")._registered_caches):
        if not _is_on_disk(cache):
            cache.cache_clear()


def _is_on_disk(cache: Any) -> bool:
    """Whether a cache is a ``PersistentMemoizer`` of torch/_inductor/runtime/caching/interfaces.py (2.11 to 2.15).

    Its part in memory is a ``Memoizer``, which is registered separately.
    """
    return hasattr(cache, "_disk_cache")


@contextmanager
def _variables(values: dict[str, str]) -> Iterator[None]:
    """Set variables of the environment meanwhile."""
    before = {name: os.environ.pop(name, None) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            os.environ.update({} if value is None else {name: value})


@contextmanager
def _memoizers_below(folder: Path) -> Iterator[None]:
    """Make the memoizers that ignore the variables and store below the default root store below `folder`.

    torch/_inductor/runtime/caching/implementations.py, ``_OnDiskCacheImpl`` (``_cache_dir``, ``_flock``).
    """
    caches = torch_module("torch._inductor.utils")._registered_caches
    swapped = [(cache, cache._disk_cache) for cache in caches if _is_on_disk(cache)]
    for cache, own in swapped:
        elsewhere = copy.copy(own)
        elsewhere._cache_dir = folder / own._cache_dir.name
        elsewhere._flock = type(own._flock)(str(elsewhere._cache_dir / "dir.lock"))
        cache._disk_cache = elsewhere
    try:
        yield
    finally:
        for cache, own in swapped:
            cache._disk_cache = own
