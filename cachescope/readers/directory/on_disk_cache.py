"""Entries of torch's general on-disk cache: ``cache/inductor_on_disk_cache/<32 hex>``, torch 2.10 to 2.15."""

from __future__ import annotations

from cachescope.readers.checked_file import content_reader
from cachescope.readers.directory.value_text import value_text
from cachescope.readers.directory.versioned_pickle import load_versioned
from cachescope.readers.reading import Entry, Reading


def fill_on_disk(entry: Entry, name: str, data: bytes, reading: Reading) -> None:
    """Note which value is stored; mirrors ``OnDiskCache`` (torch/_inductor/cache.py)."""
    entry.detail = value_text(load_versioned(data))


read_on_disk = content_reader(fill_on_disk)
