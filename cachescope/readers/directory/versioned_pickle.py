"""Pickles behind four header bytes: the on-disk caches of torch 2.10 to 2.15."""

from __future__ import annotations

from typing import Final

from cachescope.readers.checked_file import DamagedContent
from cachescope.readers.pickles.hostile_pickles import loads_harmless

# First bytes of sha256(b"0"): `_OnDiskCacheImpl._version_header` (torch/_inductor/runtime/caching/
# implementations.py) and `OnDiskCache.version_prefix` (torch/_inductor/cache.py); the version never changed.
HEADER: Final = bytes.fromhex("5feceb66")


def load_versioned(data: bytes) -> object:
    """Check the header and read the pickle after it inertly.

    Raises
    ------
    DamagedContent, UnreadablePickle
        If the header differs, or if the pickle is damaged or hostile.
    """
    if not data.startswith(HEADER):
        raise DamagedContent(f"begins with {data[:4].hex()}, not with the header {HEADER.hex()}")
    return loads_harmless(data[len(HEADER) :])
