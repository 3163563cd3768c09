"""Dumps of torch's remote caches: lines of JSON, each with a key and the value under it, as anyone can write them.

``{"key": "pt2:fx-graph-v1::f…:c1", "value": {"data": "gASV…", "time_taken_ms": 812}}``
"""

from __future__ import annotations

import io
import lzma
import re
import zlib
from collections.abc import Iterator
from typing import Final

from cachescope.readers.checked_file import DamagedContent, well_formed
from cachescope.readers.logs.byte_source import open_bytes
from cachescope.readers.pickles.inert_pickle import NotRead
from cachescope.readers.reading import Reading
from cachescope.readers.remote_cache.stored import MOST_BYTES, Stored, object_in, read_stored

_BEGINS: Final = re.compile(rb'\s*\{\s*"key"\s*:\s*"pt2:')
# A key may be as long as a value; torch's have some hundred bytes.
_MOST_LINE_BYTES: Final = MOST_BYTES + (1 << 16)


def looks_like_dump(head: bytes) -> bool:
    """Whether these are the first bytes of a dump."""
    return _BEGINS.match(head) is not None


def read_dump(path: str, reading: Reading) -> None:
    """Read a dump, plain or compressed, into ``reading.entries``."""
    read_stored(path, stored_in_dump(path, reading), reading)


def stored_in_dump(path: str, reading: Reading) -> Iterator[Stored]:
    """Yield the values of a dump, in its order; an invalid line becomes a problem."""
    number = 0
    with open_bytes(path) as file:
        stream = io.BufferedReader(file)  # type: ignore[type-var]
        try:
            while line := stream.readline(_MOST_LINE_BYTES):
                number += 1
                try:
                    yield _stored(line)
                except (DamagedContent, NotRead) as error:
                    reading.problem(path, f"line {number}", "not_json", error.what)
                while len(line) == _MOST_LINE_BYTES and not line.endswith(b"\n"):
                    line = stream.readline(_MOST_LINE_BYTES)
        except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
            reading.problem(path, f"line {number + 1}", "damaged_compression", str(error))


def _stored(line: bytes) -> Stored:
    record = object_in(line)
    key, value = record.get("key"), record.get("value")
    if not isinstance(key, str) or not isinstance(value, dict):
        raise DamagedContent("no key with an object as its value")
    return Stored(well_formed(key), value)
