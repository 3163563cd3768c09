"""The caching package of torch 2.10: ``cache/<function>/<32 hex>`` (fcache, dcache) and ``dcache_dump/imc.save``."""

from __future__ import annotations

from pathlib import Path

from cachescope.errors import SourceError
from cachescope.keys.printed_values import literal_value
from cachescope.readers.checked_file import DamagedContent, content_reader
from cachescope.readers.directory.value_text import value_text
from cachescope.readers.json_file import load_object
from cachescope.readers.reading import Entry, Reading


def fill_cached_result(entry: Entry, value: object) -> None:
    """Note which result was stored; the parameters are not in the file, and its name cannot be inverted.

    Mirrors ``_CacheIntf`` (torch/_inductor/runtime/caching/interfaces.py, 2.10 only).
    """
    entry.detail = value_text(value)


def fill_imc(entry: Entry, name: str, data: bytes, reading: Reading) -> None:
    """Count the results in the dump of a deterministic cache: it maps the repr of pickled keys to the repr of values.

    Mirrors ``_DeterministicCacheIntf._dump_imc_to_disk`` (the same module, 2.10 only).
    """
    dump = load_object(data)
    for key, value in dump.items():
        if not _is_bytes_literal(key) or not isinstance(value, str):
            raise DamagedContent(f"not the repr of a key and of a value: {value_text(key)[:80]}")
    entry.detail = f"{len(dump)} results"


def imc_keys(path: str) -> list[bytes]:
    """Return the pickled keys in an ``imc.save``: each of callee, parameters and isolation key.

    Raises
    ------
    SourceError
        If the file cannot be read, or is no ``imc.save``.
    """
    try:
        dump = load_object(Path(path).read_bytes())
    except OSError as error:
        raise SourceError(path, f"cannot be read: {error.strerror or error}") from error
    except DamagedContent as error:
        raise SourceError(path, error.what) from error
    keys = [_bytes_of_literal(key) for key in dump]
    return [key for key in keys if key is not None]


def _is_bytes_literal(text: str) -> bool:
    return _bytes_of_literal(text) is not None


def _bytes_of_literal(text: str) -> bytes | None:
    if not text.startswith(("b'", 'b"')):
        return None
    try:
        value = literal_value(text)
    except ValueError:
        return None
    return value if isinstance(value, bytes) else None


read_imc = content_reader(fill_imc)
