"""Memoized results of torch 2.11 to 2.15: ``cache/<collection>/<32 hex>`` and ``memoizer_cache.json``."""

from __future__ import annotations

import os
from typing import Final

from cachescope.keys.caching_key import memoizer_keys
from cachescope.keys.json_values import UnsupportedValueError
from cachescope.readers.checked_file import DamagedContent, content_reader
from cachescope.readers.directory.caching_package import fill_cached_result
from cachescope.readers.directory.value_text import value_text
from cachescope.readers.directory.versioned_pickle import HEADER, load_versioned
from cachescope.readers.json_file import load_object
from cachescope.readers.pickles.inert_pickle import Stub
from cachescope.readers.reading import Entry, Reading
from cachescope.terms import CACHING_PACKAGE, MEMOIZER

_CACHE_ENTRY: Final = ("torch._inductor.runtime.caching.interfaces", "CacheEntry")


def fill_memoized(entry: Entry, name: str, data: bytes, reading: Reading) -> None:
    """Note parameters and result. Bare results of 2.10 are in the same place; the class inside distinguishes them.

    Mirrors ``PersistentMemoizer`` and ``CacheEntry`` (torch/_inductor/runtime/caching/interfaces.py, 2.11+).
    """
    entry.cache = CACHING_PACKAGE
    entry.name = os.path.basename(os.path.dirname(entry.path))
    value = load_versioned(data)
    if isinstance(value, Stub) and (value.module, value.name) == _CACHE_ENTRY:
        entry.cache = MEMOIZER
        params, result = (value.state.get(f"encoded_{part}") for part in ("params", "result"))
        entry.detail = f"{value_text(params)} -> {value_text(result)}"
        if not _names_its_params(name, params, data):
            entry.detail += " (the name is not that of these parameters)"
    else:
        fill_cached_result(entry, value)


def _names_its_params(name: str, params: object, data: bytes) -> bool:
    """Whether the name follows from the parameters; True also if they are not plain values: then it is not known."""
    pickled = data[len(HEADER) :]
    protocol = pickled[1] if pickled[:1] == b"\x80" else 0
    try:
        return name in memoizer_keys(params, protocol)
    except UnsupportedValueError:
        return True


def fill_memoizer_dump(entry: Entry, name: str, data: bytes, reading: Reading) -> None:
    """Count the results in a dump.

    Mirrors ``Memoizer._prepare_dump`` (the same module, 2.11+): the key is `collections`; torch's docstrings differ.
    """
    collections = load_object(data).get("collections")
    if not isinstance(collections, dict) or not all(isinstance(c, dict) for c in collections.values()):
        raise DamagedContent("no memoizer dump: holds no collections")
    counts = [f"{value_text(name)[1:-1]} {len(found)}" for name, found in collections.items()]
    entry.detail = ", ".join(counts[:20])


read_memoized = content_reader(fill_memoized)
read_memoizer_dump = content_reader(fill_memoizer_dump)
