"""Generated code: ``<kk>/c<51>.py`` and the like. Only a ``.py`` can be checked against its name."""

from __future__ import annotations

from cachescope.keys.hashing import stored_code_hash
from cachescope.readers.checked_file import DamagedContent, content_reader
from cachescope.readers.directory.kernel_texts import (
    cpp_kernel,
    defined_kernels,
    included_header,
    triton_kernel_name,
)
from cachescope.readers.reading import Entry, Reading
from cachescope.terms import OTHER_TEXT


def fill_python_code(entry: Entry, name: str, data: bytes, reading: Reading) -> None:
    """Recompute the key, which hashes only the text (that of a ``.cpp`` also hashes a compile command, not stored).

    Mirrors ``PyCodeCache.write`` (torch/_inductor/codecache.py, 2.6 to 2.15).
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise DamagedContent("not UTF-8", error.start) from error
    entry.kernel_keys = defined_kernels(text)
    # A wrapper contains such definitions too, but in strings.
    if not entry.kernel_keys:
        entry.name = triton_kernel_name(text)
    if stored_code_hash(text) != entry.cache_key:
        raise DamagedContent(OTHER_TEXT)


def fill_cpp_code(entry: Entry, name: str, data: bytes, reading: Reading) -> None:
    """Note the key of the kernel in the file, and of the header that it includes.

    Mirrors the files of ``CppCodeCache.load_async`` (torch/_inductor/codecache.py, 2.6 to 2.15).
    """
    text = data.decode("utf-8", "backslashreplace")
    entry.kernel_keys = (cpp_kernel(text),)
    entry.code_key = included_header(text)


read_cpp_code = content_reader(fill_cpp_code)
read_python_code = content_reader(fill_python_code)
