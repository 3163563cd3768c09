"""Whether two entries hold the same generated code, run equal kernel binaries, and how that is known.

Equal source is not enough: flags of the C++ compiler are in the key of an entry and in the file name of a kernel, but not
in the source. Files are read only if one source has several compiled forms.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Final, NamedTuple

from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.linked_rows import LinkRow
from cachescope.grouping import by_key
from cachescope.terms import CODE
from cachescope.wording import plural, shortened

ContentHash = Callable[[str], str | None]
"""The hash of the bytes of the file at a path; None if it cannot be read."""

_COMPILED: Final = (".so", ".pyd", ".dylib", ".cubin", ".hsaco", ".o")
SOURCE: Final = "equal code keys"
SOURCE_BUT_FOR_THE_PROCESS: Final = (
    "equal source but for comments, the cache directory and the benchmark in it"
)
OTHER_SOURCE: Final = "other source"

SourceOf = Callable[[EntryRow], str | None]
"""The generated source in a file of the frame entries; None if there is none."""

# Parts of generated code that depend on the process but change nothing: comments with the number of the graph in it
# (torch/_inductor/codegen/wrapper.py, `write_header`), the names of its nodes (one key may stand for
# several), the path of its cache directory (2.6 `#include`s its header by path, which is no comment), and the benchmark
# at the end, which no call runs: it makes inputs of the sizes that this process compiled with, dynamic ones too
# (`benchmark_compiled_module`; 2.13 makes them in a function of its own before it, 2.10 does not).
_OF_THE_PROCESS: Final = re.compile(
    r"^[ \t]*+(?:#|//)[ \t].*$|(?<=[\"'\s])/[^\"'\s]*/(?=c[a-z2-7]{51}\.)"
    r"|(?:^def get_args\(\):\n(?:[ \t].*\n|\n)*+)?^def benchmark_compiled_module\((?s:.*)",
    re.MULTILINE,
)

_CUT: Final = 60


class Compared(NamedTuple):
    """Whether the binaries are the same (None if unknown), and what was compared."""

    same: bool | None
    known_by: str


class KernelBinaries:
    """The compiled kernels of entries. `content_hash` is called only for files that may differ."""

    def __init__(
        self, entries: Iterable[EntryRow], links: Iterable[LinkRow], content_hash: ContentHash
    ) -> None:
        self._rows = {row.entry: row for row in entries}
        self._children = by_key((link.parent, link) for link in links)
        self._content_hash = cache(content_hash)

    def compare(self, entry: EntryRow, other: EntryRow) -> Compared:
        """Compare the kernels of two FX entries with the same source."""
        known_by = SOURCE if entry.code_key == other.code_key else SOURCE_BUT_FOR_THE_PROCESS
        kernels, others = self._kernels(entry.entry), self._kernels(other.entry)
        found: list[Compared] = []
        if kernels and kernels.keys() == others.keys():
            found = [
                self._cpp(self._forms(entry, kernels[key]), self._forms(other, others[key]))
                for key in kernels
            ]
        if (bundled := _bundled(entry, other)) is not None:
            found.append(bundled)
        if not found:
            return Compared(None, f"{known_by}; no compiled kernel is there to compare")
        worst = next((one for wanted in (False, None) for one in found if one.same is wanted), found[0])
        return Compared(worst.same, f"{known_by}; {worst.known_by}")

    def _kernels(self, entry: int) -> dict[str, list[EntryRow]]:
        """The compiled forms of each C++ kernel of an entry; an empty list for a kernel without any."""
        found: dict[str, list[EntryRow]] = defaultdict(list)
        for wrapper in self._code_below(entry):
            for link in self._children[wrapper]:
                source = None if link.child is None else self._rows.get(link.child)
                if source is not None and source.path.endswith(".cpp"):
                    compiled = [self._rows[child] for child in self._code_below(source.entry)]
                    found[link.child_key] += [row for row in compiled if row.path.endswith(_COMPILED)]
        return found

    def _code_below(self, entry: int) -> list[int]:
        links = self._children[entry]
        return [link.child for link in links if link.child is not None and link.child_kind == CODE]

    def _forms(self, entry: EntryRow, forms: Sequence[EntryRow]) -> list[EntryRow]:
        """The compiled forms that an entry can have used, by the times of the files.

        A compile writes its kernels before its entry, and loads those that exist already.
        """
        made = entry.modified_time
        if made is None or len(forms) < 2:
            return list(forms)
        timed = [(form.modified_time, form) for form in forms if form.modified_time is not None]
        before = [(at, form) for at, form in timed if at <= made]
        own = [form for at, form in before if at >= made - (entry.time_taken_ns or 0)]
        return own or [form for _, form in before] or list(forms)

    def _cpp(self, forms: list[EntryRow], others: list[EntryRow]) -> Compared:
        if not forms or not others:
            return Compared(None, "a kernel is there that was not compiled, or no more")
        paths, other_paths = {form.path for form in forms}, {form.path for form in others}
        if len(paths) == 1 and paths == other_paths:
            return Compared(True, f"one compiled file for both: {os.path.basename(*paths)}")
        hashes, other_hashes = ({*map(self._content_hash, some)} for some in (paths, other_paths))
        if None in hashes | other_hashes:
            return Compared(None, "compiled files that cannot be read")
        if len(hashes | other_hashes) == 1:
            return Compared(True, "compiled files of the same bytes")
        if len(paths) == len(other_paths) == 1 and _names(paths) == _names(other_paths):
            # The name is a hash of the source and of the flags (torch/_inductor/codecache.py, `CppCodeCache.load_async`).
            why = "compiled files of one name and other bytes: a path in them, or another compiler"
            return Compared(None, why)
        if hashes.isdisjoint(other_hashes):
            return Compared(False, f"compiled files that differ: {_names(paths)} and {_names(other_paths)}")
        why = f"several compiled files, and not which was used: {_names(paths | other_paths)}"
        return Compared(None, why)


def _bundled(entry: EntryRow, other: EntryRow) -> Compared | None:
    mine, others = set(entry.triton_hashes), set(other.triton_hashes)
    if not mine or not others:
        return None
    if mine == others:
        return Compared(True, f"the same {plural(len(mine), 'Triton kernel')} bundled in both")
    return Compared(False, "other Triton kernels bundled in each")


def _names(paths: set[str]) -> str:
    return ", ".join(sorted(os.path.basename(path) for path in paths))


def same_code_form(source: str) -> str:
    """Generated source without comments, and without what only identifies the process that made it.

    Examples
    --------
    >>> same_code_form("# AOT ID: ['3_inference']") == same_code_form("# AOT ID: ['0_inference']")
    True
    """
    return _OF_THE_PROCESS.sub("", source)


def first_difference(before: str, after: str) -> str:
    """The first line in which two sources differ, in words."""
    old, new = before.split("\n"), after.split("\n")
    for number, (a, b) in enumerate(zip(old, new, strict=False), 1):
        if a != b:
            return f"line {number} is {shortened(a.strip(), _CUT)!r} and {shortened(b.strip(), _CUT)!r}"
    return f"{len(old)} and {len(new)} lines"


class GeneratedCode:
    """Compares the generated code of entries.

    The code key of an entry is the hash of its source (torch/_inductor/codecache.py, `code_hash`): equal keys mean
    equal code. Sources are read only for entries whose keys differ, once for each key.
    """

    def __init__(self, source_of: SourceOf) -> None:
        self._source_of = source_of
        self._forms: dict[str | None, str | None] = {}

    def are_same(self, entry: EntryRow, other: EntryRow) -> bool | None:
        """Whether two entries hold the same code; None if that is unknown."""
        if entry.code_key is None or other.code_key is None:
            return None
        if entry.code_key == other.code_key:
            return True
        forms = self._form(entry), self._form(other)
        return None if None in forms else forms[0] == forms[1]

    def identity(self, entry: EntryRow) -> str | None:
        """A value that is equal for entries of the same code: from the source if it can be read, else the code key."""
        return None if entry.code_key is None else self._form(entry) or entry.code_key

    def first_difference(self, entry: EntryRow, other: EntryRow) -> str:
        """Where the code of two entries differs, if their sources can be read and differ."""
        sources = map(self._source_of, (entry, other))
        return first_difference(*(same_code_form(source or "") for source in sources))

    def _form(self, entry: EntryRow) -> str | None:
        if entry.code_key not in self._forms:
            source = self._source_of(entry)
            text = None if source is None else same_code_form(source).encode("utf-8", "backslashreplace")
            self._forms[entry.code_key] = None if text is None else hashlib.sha256(text).hexdigest()
        return self._forms[entry.code_key]
