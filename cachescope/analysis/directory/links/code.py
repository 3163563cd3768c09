"""Links of generated code: from a wrapper to its kernels, from C++ to its header and its compiled forms."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from cachescope.analysis.directory.links.files import Files, is_cpp, is_python
from cachescope.analysis.directory.links.link import Link
from cachescope.frames.directory_rows import EntryRow
from cachescope.terms import AUTOTUNE, CODE, HASH, UNREADABLE

TRITON_SOURCE: Final = "the source of the kernel in the wrapper: its hash is the name of the file"
CPP_SOURCE: Final = (
    "the source of the kernel in the wrapper, with which the file begins; its compile command is not stored"
)
NOT_THERE: Final = "the source of a kernel in the wrapper, of which there is no file"
INCLUDE: Final = "#include in the file"
SAME_NAME: Final = "the name, which what is compiled from it shares"
CHOICE: Final = "the hash in the name of the choice"

# torch/_inductor/select_algorithm.py, `hash_key` of the callers of templates: "<name>-<hash>".
_CHOICE: Final = re.compile(rf"(?:.*-)?(c{HASH})", re.DOTALL)


def code_links(files: Files) -> Iterator[Link]:
    """The links whose parent is a file of generated code."""
    for row in files.rows:
        if row.cache != CODE or row.status == UNREADABLE or row.cache_key is None:
            continue
        if is_python(row):
            for key in row.kernel_keys:
                yield from _kernel(files, row, key)
        elif is_cpp(row):
            if row.code_key is not None:
                headers = files.of_key(row.root, CODE, row.code_key)
                yield Link(row, CODE, row.code_key, INCLUDE, headers)
            compiled = [other for other in files.of_key(row.root, CODE, row.cache_key) if other is not row]
            if compiled:
                yield Link(row, CODE, row.cache_key, SAME_NAME, compiled)


def _kernel(files: Files, row: EntryRow, key: str) -> Iterator[Link]:
    found = [other for other in files.kernels(row.root, key) if other is not row]
    if not found:
        yield Link(row, CODE, key, NOT_THERE, [])
    elif is_python(found[0]):
        yield Link(row, CODE, key, TRITON_SOURCE, found)
    else:
        # Kernels of equal source compiled by several commands: which one a process takes is not stored.
        many = "" if len(found) == 1 else f"; one of {len(found)} compiled by different commands"
        yield Link(row, CODE, key, CPP_SOURCE + many, found)


def choice_links(files: Files, timings: Iterable[tuple[int, str]]) -> Iterator[Link]:
    """Links from a file of timings to the code of its choices, if that code still exists.

    `timings` are the entry and the choice of each. The hash covers the source alone; a choice from a library has the hash of its name, and no file.
    """
    of_entry = {row.entry: row for row in files.rows if row.cache == AUTOTUNE}
    seen: set[tuple[int, str]] = set()
    for entry, choice in timings:
        parent = of_entry.get(entry)
        named = _CHOICE.fullmatch(choice)
        if parent is None or named is None or (entry, named[1]) in seen:
            continue
        seen.add((entry, named[1]))
        if found := files.kernels(parent.root, named[1]):
            yield Link(parent, CODE, named[1], CHOICE, found)
