"""Whether two entries of equal generated source also run equal kernel binaries, and how that is known.

Equal source does not settle it: flags of the C++ compiler are in the key of an entry and in the file name of a kernel, but
in no source. Files are read only if one source has several compiled forms.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import pandas as pd

from cachescope.columns import rows_of
from cachescope.frames.directory_rows import EntryRow, LinkRow
from cachescope.terms import CODE
from cachescope.wording import plural

ContentHash = Callable[[str], str | None]
"""The hash of the bytes of the file at a path; None if it cannot be read."""

_COMPILED: Final = (".so", ".pyd", ".dylib", ".cubin", ".hsaco", ".o")
SOURCE: Final = "equal code keys"
SOURCE_BUT_FOR_THE_PROCESS: Final = "equal source but for comments and the cache directory in it"
OTHER_SOURCE: Final = "other source"


@dataclass(frozen=True, slots=True)
class Compared:
    """Whether the binaries are the same (None if unknown), and what was compared."""

    same: bool | None
    known_by: str


class KernelBinaries:
    """The compiled kernels of entries, from the frames entries and links.

    Parameters
    ----------
    entries, links : DataFrame
    content_hash : callable
        Called once for each file that may differ.
    """

    def __init__(self, entries: pd.DataFrame, links: pd.DataFrame, content_hash: ContentHash) -> None:
        self._rows = {row.entry: row for row in rows_of(entries, EntryRow)}
        self._children: dict[int, list[LinkRow]] = defaultdict(list)
        for link in rows_of(links, LinkRow):
            self._children[link.parent].append(link)
        self._content_hash = content_hash
        self._hashes: dict[str, str | None] = {}

    def compare(self, entry: int, other: int, known_by: str) -> Compared:
        """Compare the kernels of two FX entries with the same source; `known_by` says how that is known."""
        kernels, others = self._kernels(entry), self._kernels(other)
        found: list[Compared] = []
        if kernels and kernels.keys() == others.keys():
            found = [
                self._cpp(self._forms(entry, kernels[key]), self._forms(other, others[key]))
                for key in kernels
            ]
        if (bundled := self._bundled(entry, other)) is not None:
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

    def _forms(self, entry: int, forms: Sequence[EntryRow]) -> list[EntryRow]:
        """The compiled forms that an entry can have used, judged by the times of the files.

        A compile writes its kernels before its entry, and loads those that exist already.
        """
        row = self._rows[entry]
        made = row.modified_time
        if made is None or len(forms) < 2:
            return list(forms)
        timed = [(form.modified_time, form) for form in forms if form.modified_time is not None]
        before = [(at, form) for at, form in timed if at <= made]
        own = [form for at, form in before if at >= made - (row.time_taken_ns or 0)]
        return own or [form for _, form in before] or list(forms)

    def _cpp(self, forms: list[EntryRow], others: list[EntryRow]) -> Compared:
        if not forms or not others:
            return Compared(None, "a kernel is there that was not compiled, or no more")
        paths, other_paths = {form.path for form in forms}, {form.path for form in others}
        if len(paths) == 1 and paths == other_paths:
            return Compared(True, f"one compiled file for both: {os.path.basename(*paths)}")
        hashes, other_hashes = self._contents(paths), self._contents(other_paths)
        if None in hashes | other_hashes:
            return Compared(None, "compiled files that cannot be read")
        if len(hashes | other_hashes) == 1:
            return Compared(True, "compiled files of the same bytes")
        if len(paths) == len(other_paths) == 1 and _names(paths) == _names(other_paths):
            # The name is a hash of the source and of the flags (torch/_inductor/codecache.py, `CppCodeCache.load_async`).
            return Compared(
                None, "compiled files of one name and other bytes: a path in them, or another compiler"
            )
        if hashes.isdisjoint(other_hashes):
            return Compared(False, f"compiled files that differ: {_names(paths)} and {_names(other_paths)}")
        return Compared(
            None, f"several compiled files, and not which was used: {_names(paths | other_paths)}"
        )

    def _contents(self, paths: set[str]) -> set[str | None]:
        for path in paths - self._hashes.keys():
            self._hashes[path] = self._content_hash(path)
        return {self._hashes[path] for path in paths}

    def _bundled(self, entry: int, other: int) -> Compared | None:
        mine, others = (set(self._rows[number].triton_hashes) for number in (entry, other))
        if not mine or not others:
            return None
        if mine == others:
            return Compared(True, f"the same {plural(len(mine), 'Triton kernel')} bundled in both")
        return Compared(False, "other Triton kernels bundled in each")


def _names(paths: set[str]) -> str:
    return ", ".join(sorted(os.path.basename(path) for path in paths))
