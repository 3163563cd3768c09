"""Generated code: ``<kk>/c<51>.py`` and its like. Only a ``.py`` can be held against its name."""

from __future__ import annotations

from cachescope.keys.hashing import stored_code_hash
from cachescope.readers.checked_file import DamagedContent, content_reader
from cachescope.readers.reading import Entry, Reading


def fill_python_code(entry: Entry, name: str, data: bytes, reading: Reading) -> None:
    """Recompute the key; it hashes the text and nothing else (the compile command of a ``.cpp`` is not stored).

    Mirrors ``PyCodeCache.write`` (torch/_inductor/codecache.py, 2.6 to 2.15).
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise DamagedContent("not UTF-8", error.start) from error
    if stored_code_hash(text) != entry.cache_key:
        raise DamagedContent("code hash differs from the name")


read_python_code = content_reader(fill_python_code)
