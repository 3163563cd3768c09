"""Starts of vLLM in the order of time, and the parts of models that each could find stored.

A rank finds nothing in the folder of another, and an engine nothing of a draft model where only the model itself is kept. So
what a lookup missed is compared with folders that have its own rank and part.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final, Literal, NamedTuple

from cachescope.analysis.history.history import History
from cachescope.analysis.vllm.factors import (
    ENVIRONMENT,
    HASHES,
    NAME_TEXTS,
    Beside,
    Named,
    name_kinds,
    named_folders,
    nearest,
)
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.vllm import FactorsRow, StartRow
from cachescope.keys.vllm import place_in_tree

_SECOND_NS: Final = 1_000_000_000
_QUARTER_NS: Final = 15 * 60 * _SECOND_NS
_MOST_OFF_NS: Final = 23 * 3600 * _SECOND_NS
LOGGED: Final = (ENVIRONMENT, *HASHES)
"""The hashes that vLLM logs at the level DEBUG, in the order in which changes are named."""

Made = Literal["by it", "before", "after", "not known"]


class Part(NamedTuple):
    """A part of a model of one rank: what vLLM looks for in a folder."""

    rank: int | None
    dp_rank: int | None
    prefix: str | None


def part_of(start: StartRow) -> Part:
    """The part that a log says was compiled or loaded."""
    if start.path is None:
        return Part(start.rank, None, start.prefix)
    return Part(*place_in_tree(f"{start.path}/")[1:])


class StoredPart(NamedTuple):
    """A part in a folder that was read."""

    file: EntryRow  # its factors
    name_text: str | None  # why it is not known what the name of the folder was made of; None if it is known
    # The folder and the nearest that had the part before; None if there was none.
    beside: Beside | None = None
    baseline: EntryRow | None = None  # the factors of the part in the latter

    @property
    def path(self) -> str:
        """The folder of the part."""
        return os.path.dirname(os.path.abspath(self.file.path))


class Parts:
    """The parts in all folders that were read."""

    def __init__(self, rows: Sequence[FactorsRow], entries: Sequence[EntryRow]) -> None:
        names = name_kinds(rows)
        named = {one.name: one for one in named_folders(rows, entries)}
        files = {entry.entry: entry for entry in entries}
        self._kept: dict[tuple[str, Part], list[StoredPart]] = defaultdict(list)
        groups: dict[tuple[str, Part], list[tuple[Named, EntryRow]]] = defaultdict(list)
        for row in rows:
            part = Part(row.rank, row.dp_rank, row.prefix)
            kept = StoredPart(files[row.entry], NAME_TEXTS[names[row.entry]])
            if row.folder in named:
                folder = Named(row.folder, named[row.folder].values, kept.file.modified_time)
                # The tree that the part is in.
                root = kept.path.rpartition(f"/{row.folder}/rank_{row.rank}_{row.dp_rank}")[0]
                groups[root, part].append((folder, kept.file))
            elif row.folder is not None:
                self._kept[row.folder, part].append(kept)
        for (_, part), group in groups.items():
            group.sort(key=lambda one: (one[0].written or 0, one[0].name))
            file_of = {folder.name: file for folder, file in group}
            besides = [None, *nearest([folder for folder, _ in group])]
            for (folder, file), beside in zip(group, besides, strict=True):
                before = None if beside is None else file_of[beside.baseline.name]
                self._kept[folder.name, part].append(StoredPart(file, None, beside, before))

    def of(self, start: StartRow, part: Part) -> Sequence[StoredPart]:
        """What was read of the part that a start named; several if trees of several machines have it and none has its path."""
        found = self._kept.get((start.folder or "", part), [])
        same = [one for one in found if start.path is not None and one.path == os.path.normpath(start.path)]
        return same or found

    def has(self, part: Part) -> bool:
        """Whether any folder has a part."""
        return any(one == part for _, one in self._kept)


class Started(NamedTuple):
    """One start of one part of a model; vLLM's clock is in whole seconds."""

    at: int  # the index of its lookup in time order
    row: StartRow
    part: Part
    run: int  # its process
    began: int | None  # the times of its first and of its last message; None where no clock says
    ended: int | None
    # What its key was made of, as `LOGGED` names it; None if it was not logged.
    hashes: tuple[str, ...] | None = None
    off: int = 0  # by how much the times of files are ahead of its clock; see `clock_off`

    @classmethod
    def of(cls, row: StartRow, history: History) -> Started:
        """One start, from its row and its lookup."""
        at = history.index_of[row.lookup]
        lookup, hashes = history.lookups[at], tuple(getattr(row, name) for name in LOGGED)
        times = lookup.time, lookup.end_time
        return cls(at, row, part_of(row), lookup.run, *times, None if None in hashes else hashes)

    @property
    def is_stored(self) -> bool:
        """Whether the part is in its folder afterwards, as far as its log says."""
        return self.row.outcome in ("loaded", "compiled") and not self.row.is_disabled

    @property
    def times(self) -> tuple[int, int] | None:
        """When it began and ended; None if its log does not say both."""
        return None if self.began is None or self.ended is None else (self.began, self.ended)

    def ended_before(self, other: Started) -> bool:
        """Whether it had ended when another began."""
        mine, others = self.times, other.times
        return self.at < other.at and mine is not None and others is not None and mine[1] <= others[0]

    def was_running_at(self, other: Started) -> bool:
        """Whether it was compiling when another began."""
        mine, others = self.times, other.times
        if self.at >= other.at or mine is None or others is None:
            return False
        return self.row.outcome == "compiled" and mine[0] <= others[0] <= mine[1]

    def made(self, written: int | None) -> Made:
        """Whether it wrote the factors of a folder, which vLLM writes only where they are not there yet."""
        if written is None or self.times is None:
            return "not known"
        began, ended = self.times
        if written - self.off < began:
            return "before"
        return "by it" if written - self.off < ended + _SECOND_NS else "after"


def clock_off(made: Iterable[tuple[Started, int]]) -> int:
    """By how much the times of files are ahead of the clock of logs, which have no time zone: 0 unless folders show another."""
    folders: dict[int, set[str | None]] = defaultdict(set)
    for start, written in made:
        if start.made(written) == "by it":
            return 0
        if start.began is None:
            continue
        off = (written - start.began) // _QUARTER_NS * _QUARTER_NS
        if abs(off) <= _MOST_OFF_NS and start._replace(off=off).made(written) == "by it":
            folders[off].add(start.row.folder)
    most = max(folders, key=lambda off: len(folders[off]), default=0)
    return most if len(folders[most]) > 1 else 0
