"""Generated code, ``<kk>/c<51>.py`` and the like, and its kernels. Only a ``.py`` can be checked against its name.

A wrapper contains the source of each kernel as a string. torch names the file of a Triton kernel by the hash of that string.
The name of a C++ file is a hash of the compile command, too, but the file begins with the string, so its text gives the key.

torch/_inductor/utils.py, `get_kernel_metadata` (2.6 to 2.15). The source is read as lines of text, never run.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from cachescope.frames.directory_rows import EntryRow, KernelRow
from cachescope.keys.hashing import code_hash, stored_code_hash
from cachescope.keys.printed_values import literal_value
from cachescope.readers.cache_file import DamagedContent, read_bytes
from cachescope.readers.reading import Reading
from cachescope.terms import CODE_KEY, OTHER_TEXT

# torch/_inductor/codegen: `compile_wrapper.writeline(f"async_compile.triton({name!r}, '''")` and the like; C++ wrappers
# put theirs in `cpp_wrapper_src = (r'''` and `kernel_src`.
_QUOTES: Final = re.compile(r"'''|\"\"\"")
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
_LINKED_WITHIN_NS: Final = 60_000_000_000
# The header of a 64-bit little-endian library: where its tables begin, and the sizes and numbers of their rows.
_ELF: Final = struct.Struct("<6s26xQQ6xHHHH2x")

# Comments begin with "#" in Python wrappers, with "//" in C++ wrappers.
_COMMENT: Final = re.compile(
    r"\s*+(?:#|//) (?:Topologically Sorted |Unsorted )?Source Nodes: \[(?P<nodes>.*?)\], Original ATen: \[(?P<ops>.*?)\]"
)
_ANY_COMMENT: Final = re.compile(r"\s*+(?:#|//|$)")
_DEFINITION: Final = re.compile(r"(?P<name>\w+) = async_compile\.(?P<kind>\w+)\(")
_EXTERN: Final = re.compile(
    r"\b(?:extern_kernels\.(?P<extern>\w+)|(?P<shim>aoti_torch_\w+)|torch\.ops\.(?P<op>\w+\.\w+(?:\.\w+)?))\("
)
_CALL: Final = re.compile(r"\s*+(?:[\w, ]+ = )?(?P<name>\w+)(?:\.run)?\(")


def defined_kernels(source_code: str) -> tuple[str, ...]:
    """Keys of the kernels whose source a wrapper contains, each once, in the order of the text.

    Mirrors ``AsyncCompile.triton`` and ``PyCodeCache.load`` for Triton, and for C++ the beginning of the file that
    ``CppPythonBindingsCodeCache.load_pybinding`` writes (torch/_inductor, 2.6 to 2.15).
    """
    found: dict[str, None] = {}
    for start, literal in _literals(source_code):
        before = source_code[max(0, start - _MOST_LOOKED_AT) : start]
        if _OPENS.search(before.rpartition("\n")[2] or before) is not None:
            text = _text_of(literal)
            # torch cannot hash half of a surrogate pair.
            if text is not None and text.encode("utf-8", "replace").decode() == text:
                found[stored_code_hash(text)] = None
    # torch's writer of lines may drop spaces from the text, but the wrapper contains the name in a comment, too.
    found.update(dict.fromkeys(_KERNEL_PATH.findall(source_code)))
    return tuple(found)


def _literals(source_code: str) -> Iterator[tuple[int, str]]:
    """Where each literal in triple quotes begins, and the literal; of several prefixes, "r" alone is torch's."""
    at = 0
    while (quotes := _QUOTES.search(source_code, at)) is not None:
        start = quotes.start() - source_code.endswith("r", 0, quotes.start())
        end = source_code.find(quotes[0], quotes.end())
        before = source_code[start - 1 : start]
        if end < 0 or before.isalnum() or before == "_":
            at = quotes.start() + 1
        else:
            at = end + len(quotes[0])
            yield start, source_code[start:at]


def _text_of(literal: str) -> str | None:
    if "\\" not in literal:
        return literal.removeprefix("r")[3:-3]
    with suppress(ValueError):
        return value if isinstance(value := literal_value(literal), str) else None
    return None


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


def fill_python_code(entry: EntryRow, name: str, data: bytes, reading: Reading) -> None:
    """Recompute the key, which hashes only the text (that of a ``.cpp`` also hashes a compile command, not stored).

    Mirrors ``PyCodeCache.write`` (torch/_inductor/codecache.py, 2.6 to 2.15).
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise DamagedContent("not UTF-8", error.start) from error
    made = stored_code_hash(text)
    if (known := reading.contents.setdefault((made,), entry)) is not entry:
        entry.take_content(known)
    else:
        entry.kernel_keys = defined_kernels(text)
        # A wrapper contains such definitions too, but in strings.
        if not entry.kernel_keys:
            entry.name = triton_kernel_name(text)
    if made != entry.cache_key:
        raise DamagedContent(OTHER_TEXT)


def fill_cpp_code(entry: EntryRow, name: str, data: bytes, reading: Reading) -> None:
    """Note the key of the kernel in the file, and of the header that it includes.

    Mirrors the files of ``CppCodeCache.load_async`` (torch/_inductor/codecache.py, 2.6 to 2.15).
    """
    text = data.decode("utf-8", "backslashreplace")
    entry.kernel_keys = (cpp_kernel(text),)
    entry.code_key = included_header(text)


def read_library(entry: EntryRow, path: str, name: str, reading: Reading) -> None:
    """See whether a library has the tables that its first bytes name: linkers put one of them at its end.

    Torch 2.13 loads whatever is there under the name of a library; a process that loads half of one ends with SIGBUS.
    """
    if (entry.seen_time or 0) - (entry.modified_time or 0) < _LINKED_WITHIN_NS:
        return  # a linker may be at work on it
    head = read_bytes(entry, path, _ELF.size)
    if not head:
        raise DamagedContent("empty file")
    magic, *tables = _ELF.unpack(head.ljust(_ELF.size, b"\0"))
    segments, sections, of_segment, segment_count, of_section, section_count = tables
    end = max(segments + of_segment * segment_count, sections + of_section * section_count, _ELF.size)
    if magic == b"\x7fELF\x02\x01" and end > (entry.size_bytes or 0):
        damage = "cut: a process that loads it may crash; if it is removed, torch compiles it again"
        raise DamagedContent(damage)


def kernels_of(source_code: str) -> list[KernelRow]:
    """The kernels that a wrapper defines, then the library calls it makes, in the order of the text, as if of entry 0."""
    defined: dict[str, KernelRow] = {}
    calls: list[KernelRow] = []
    for line, nodes, ops in _statements(source_code):
        if definition := _DEFINITION.match(line):
            kind = "cpp" if definition["kind"] == "cpp_pybinding" else definition["kind"]
            defined[definition["name"]] = KernelRow(0, 0, definition["name"], kind, nodes, ops)
        elif extern := _EXTERN.search(line):
            name = extern["extern"] or extern["shim"] or extern["op"]
            # C++ wrappers also call the runtime for other purposes; only calls with a comment belong to the graph.
            if nodes or ops or extern["shim"] is None:
                calls.append(KernelRow(0, 0, name, "extern", nodes, ops))
        elif (call := _CALL.match(line)) and (known := defined.get(call["name"])) and not known.aten_ops:
            # C++ kernels have their comment above the call.
            known.source_nodes, known.aten_ops = nodes, ops
    found = [*defined.values(), *calls]
    for order, kernel in enumerate(found):
        kernel.order = order
    return found


def _statements(source_code: str) -> Iterator[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    """Lines other than comments, each with the nodes and operators of the comment above it."""
    nodes: tuple[str, ...] = ()
    ops: tuple[str, ...] = ()
    for line in source_code.split("\n"):
        if comment := _COMMENT.match(line):
            nodes, ops = _names(comment["nodes"]), _names(comment["ops"])
        elif not _ANY_COMMENT.match(line):
            yield line, nodes, ops
            nodes = ops = ()


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())
