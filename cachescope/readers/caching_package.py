"""The caching package of torch 2.10: ``cache/<function>/<32 hex>`` (fcache, dcache) and ``dcache_dump/imc.save``."""

from __future__ import annotations

import ast

from cachescope.readers.checked_file import DamagedContent, content_reader
from cachescope.readers.json_file import load_object
from cachescope.readers.reading import Entry, Reading
from cachescope.readers.value_text import value_text


def fill_cached_result(entry: Entry, value: object) -> None:
    """Say which result was stored; the parameters are not in the file, and its name cannot be inverted.

    Mirrors ``_CacheIntf`` (torch/_inductor/runtime/caching/interfaces.py, 2.10 only).
    """
    entry.detail = value_text(value)


def fill_imc(entry: Entry, name: str, data: bytes, reading: Reading) -> None:
    """Count what a deterministic cache dumped: the repr of pickled keys, to the repr of values.

    Mirrors ``_DeterministicCacheIntf._dump_imc_to_disk`` (the same module, 2.10 only).
    """
    dump = load_object(data)
    for key, value in dump.items():
        if not _is_bytes_literal(key) or not isinstance(value, str):
            raise DamagedContent(f"not the repr of a key and of a value: {value_text(key)[:80]}")
    entry.detail = f"{len(dump)} results"


def _is_bytes_literal(text: str) -> bool:
    if not text.startswith(("b'", 'b"')):
        return False
    try:
        return isinstance(ast.literal_eval(text), bytes)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return False


read_imc = content_reader(fill_imc)
