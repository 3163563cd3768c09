"""Results that torch caches by call: the caching package of 2.10, memoizers of 2.11 and later, the on-disk cache; a header, then a pickle."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from cachescope.errors import SourceError
from cachescope.frames.directory_rows import EntryRow
from cachescope.keys.caching_key import memoizer_keys
from cachescope.keys.json_values import UnsupportedValueError
from cachescope.keys.printed_values import literal_value
from cachescope.readers.cache_file import DamagedContent, load_object
from cachescope.readers.directory.entry_file import value_text
from cachescope.readers.pickles.inert_pickle import Stub, loads_harmless
from cachescope.readers.reading import Reading
from cachescope.terms import CACHING_PACKAGE, MEMOIZER

# First bytes of sha256(b"0"): `_OnDiskCacheImpl._version_header` (torch/_inductor/runtime/caching/
# implementations.py) and `OnDiskCache.version_prefix` (torch/_inductor/cache.py); the version never changed.
HEADER: Final = bytes.fromhex("5feceb66")

_CACHE_ENTRY: Final = ("torch._inductor.runtime.caching.interfaces", "CacheEntry")


def load_versioned(data: bytes) -> object:
    """Check the header and read the pickle after it inertly."""
    if not data.startswith(HEADER):
        raise DamagedContent(f"begins with {data[:4].hex()}, not with the header {HEADER.hex()}")
    return loads_harmless(data[len(HEADER) :])


def fill_imc(entry: EntryRow, name: str, data: bytes, reading: Reading) -> None:
    """Count the results in the dump of a deterministic cache: it maps the repr of pickled keys to the repr of values.

    Mirrors ``_DeterministicCacheIntf._dump_imc_to_disk`` (the same module, 2.10 only).
    """
    dump = load_object(data)
    for key, value in dump.items():
        if bytes_of_literal(key) is None or not isinstance(value, str):
            raise DamagedContent(f"not the repr of a key and of a value: {value_text(key)[:80]}")
    entry.detail = f"{len(dump)} results"


def imc_keys(path: str) -> list[bytes]:
    """Return the pickled keys in an ``imc.save``: each of callee, parameters and isolation key."""
    try:
        dump = load_object(Path(path).read_bytes())
    except OSError as error:
        raise SourceError(path, f"cannot be read: {error.strerror or error}") from error
    except DamagedContent as error:
        raise SourceError(path, error.what) from error
    return [key for text in dump if (key := bytes_of_literal(text)) is not None]


def bytes_of_literal(text: str) -> bytes | None:
    """The bytes whose repr a text is; None if it is none."""
    with suppress(ValueError):
        if text.startswith(("b'", 'b"')) and isinstance(value := literal_value(text), bytes):
            return value
    return None


def fill_memoized(entry: EntryRow, name: str, data: bytes, reading: Reading) -> None:
    """Note parameters and result.

    Mirrors ``PersistentMemoizer`` and ``CacheEntry`` (torch/_inductor/runtime/caching/interfaces.py, 2.11+). Bare results of
    ``_CacheIntf`` (the same module, 2.10 only) are in the same place: their parameters are not in the file, and its name cannot
    be inverted.
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
        entry.detail = value_text(value)


def _names_its_params(name: str, params: object, data: bytes) -> bool:
    """Whether the name follows from the parameters; True also if they are not plain values: then it is not known."""
    pickled = data[len(HEADER) :]
    protocol = pickled[1] if pickled[:1] == b"\x80" else 0
    try:
        return name in memoizer_keys(params, protocol)
    except UnsupportedValueError:
        return True


def fill_memoizer_dump(entry: EntryRow, name: str, data: bytes, reading: Reading) -> None:
    """Count the results in a dump.

    Mirrors ``Memoizer._prepare_dump`` (the same module, 2.11+): the key is `collections`; torch's docstrings differ.
    """
    collections = load_object(data).get("collections")
    if not isinstance(collections, dict) or not all(isinstance(c, dict) for c in collections.values()):
        raise DamagedContent("no memoizer dump: holds no collections")
    counts = [f"{value_text(name)[1:-1]} {len(found)}" for name, found in collections.items()]
    entry.detail = ", ".join(counts[:20])


def fill_on_disk(entry: EntryRow, name: str, data: bytes, reading: Reading) -> None:
    """Note which value is stored; mirrors ``OnDiskCache`` (torch/_inductor/cache.py)."""
    entry.detail = value_text(load_versioned(data))
