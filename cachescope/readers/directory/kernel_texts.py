"""Keys of the kernels whose source is in a generated file: they connect a wrapper with the files of its kernels.

A wrapper contains the source of each kernel as a string. torch names the file of a Triton kernel by the hash of that string.
The name of a C++ file is a hash of the compile command, too, but the file begins with the string, so its text gives the key.
"""

from __future__ import annotations

import os
import re
from typing import Final

from cachescope.keys.hashing import code_hash, stored_code_hash
from cachescope.keys.printed_values import literal_value
from cachescope.terms import CODE_KEY

# torch/_inductor/codegen: `compile_wrapper.writeline(f"async_compile.triton({name!r}, '''")` and the like; C++ wrappers
# put theirs in `cpp_wrapper_src = (r'''` and `kernel_src`.
_LITERAL: Final = re.compile(r"(?<!\w)r?(?P<quotes>'''|\"\"\")(?P<text>.*?)(?P=quotes)", re.DOTALL)
_OPENS: Final = re.compile(r"(?:async_compile\.\w+\((?:[^()\n]|\([^()\n]*\))*|(?<!\w)\w++ = \(?\s*+)$")
# torch/_inductor/codegen/triton.py, `define_kernel`: "# kernel path: <cache dir>/ab/cab….py".
_KERNEL_PATH: Final = re.compile(r"^# kernel path: .*?(c[a-z2-7]{51})\.py$", re.MULTILINE)
# torch/_inductor/codecache.py, `CppPythonBindingsCodeCache.suffix_template`.
_BINDINGS: Final = "\n// Python bindings to call "
# Through 2.9 kernels include torch's header from the cache directory.
_INCLUDE: Final = re.compile(r'^#include "(.*?c[a-z2-7]{51}\.h)"', re.MULTILINE)
_TRITON: Final = re.compile(r"^@triton\.jit\ndef (\w+)\(", re.MULTILINE)
_LOCATION: Final = re.compile(r'#loc = loc\("([^"\n]*)"')
_MOST_LOOKED_AT: Final = 400


def defined_kernels(source_code: str) -> tuple[str, ...]:
    """Keys of the kernels whose source a wrapper contains, each once, in the order of the text.

    Mirrors ``AsyncCompile.triton`` and ``PyCodeCache.load`` for Triton, and for C++ the beginning of the file that
    ``CppPythonBindingsCodeCache.load_pybinding`` writes (torch/_inductor, 2.6 to 2.15).
    """
    found: dict[str, None] = {}
    at = 0
    while (literal := _LITERAL.search(source_code, at)) is not None:
        at = literal.end()
        before = source_code[max(0, literal.start() - _MOST_LOOKED_AT) : literal.start()]
        if _OPENS.search(before.rpartition("\n")[2] or before) is not None:
            text = _text_of(literal)
            # torch cannot hash half of a surrogate pair.
            if text is not None and text.encode("utf-8", "replace").decode() == text:
                found[stored_code_hash(text)] = None
    # torch's writer of lines may drop spaces from the text, but the wrapper contains the name in a comment, too.
    found.update(dict.fromkeys(_KERNEL_PATH.findall(source_code)))
    return tuple(found)


def _text_of(literal: re.Match[str]) -> str | None:
    text: str = literal["text"]
    if "\\" not in text:
        return text
    try:
        value = literal_value(literal[0])
    except ValueError:
        return None
    return value if isinstance(value, str) else None


def cpp_kernel(text: str) -> str:
    """Key of the kernel in a C++ file: the hash of its source alone, without bindings and compile command.

    If a file has no bindings, all of it is the source, as `CppBenchmarkRequest` hashes it (``hash_key``,
    torch/_inductor/autotune_process.py, 2.6 to 2.15).
    """
    source, bindings, _ = text.partition(_BINDINGS)
    return stored_code_hash(source) if bindings else code_hash(text)


def included_header(text: str) -> str | None:
    """Key of the header in the cache directory that a C++ file includes."""
    found = _INCLUDE.search(text)
    return None if found is None else os.path.basename(found[1]).partition(".")[0]


def triton_kernel_name(text: str) -> str | None:
    """Name of the Triton kernel that a Python file defines; None if it defines none."""
    found = _TRITON.search(text)
    return None if found is None else found[1]


def compiled_from(text: str) -> str | None:
    """Key of the Python file that a Triton intermediate was compiled from, by the first location in it."""
    found = _LOCATION.match(text)
    stem = None if found is None else os.path.basename(found[1]).partition(".")[0]
    return stem if stem is not None and CODE_KEY.fullmatch(stem) else None
