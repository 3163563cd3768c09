"""What is in the cache directories: totals by kind, anything unusual, and the misses that they show without a log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Self

from cachescope.analysis.differences import FieldChange, field_changes
from cachescope.analysis.directory.same_key import marks_beside
from cachescope.answers.recording import Recording
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.linked_rows import DuplicateRow, LockRow, OrphanRow, PastMiss, RemovableRow
from cachescope.frames.recorded_rows import ProblemRow
from cachescope.grouping import by_key
from cachescope.readers.directory.lock_state import locks_of
from cachescope.terms import CACHES, SHIPPED, UNREADABLE


@dataclass(frozen=True, slots=True)
class Total:
    """The entries of one kind and status; times are those at which the oldest and the newest was written."""

    cache: str
    status: str
    count: int
    size_bytes: int
    oldest_ns: int | None
    newest_ns: int | None


@dataclass(frozen=True, slots=True)
class SharedKey:
    """A key that holds several entries: how many of each status, and what distinguishes them.

    `marks` are those of `same_key.marks_beside`.
    """

    cache: str
    cache_key: str
    statuses: dict[str, int]
    marks: frozenset[str]


@dataclass(frozen=True, slots=True)
class Alike:
    """Duplicates of one kind, recognized in the same way: `groups` files would be enough instead of `files`."""

    cache: str
    known_by: str
    groups: int
    files: int
    saved_bytes: int


@dataclass(frozen=True, slots=True, eq=False)
class Directory:
    """What is in the cache directories."""

    roots: tuple[str, ...]  # where they are
    totals: tuple[Total, ...]  # what takes the most comes first
    # All, those of two statuses, and those of the FX and AOTAutograd caches, the newest first.
    entries: tuple[EntryRow, ...]
    damaged: tuple[EntryRow, ...]
    unreadable: tuple[EntryRow, ...]
    graphs: tuple[EntryRow, ...]
    # Those that are shipped as files of their own: mega-caches, artifacts, packages.
    shipped: tuple[EntryRow, ...]
    shared: tuple[SharedKey, ...]  # keys that hold several entries
    duplicates: tuple[DuplicateRow, ...]
    alike: tuple[Alike, ...]  # the duplicates folded, what saves most first
    orphans: tuple[OrphanRow, ...]
    removable: tuple[RemovableRow, ...]
    locks: tuple[LockRow, ...] | None  # None unless asked for
    # If one of them is not among the entries already.
    problems: tuple[ProblemRow, ...]

    @classmethod
    def of(cls, read: Recording, with_locks: bool = False) -> Self:
        """Of all directories that were read; each lock is tried if asked for."""
        entries = tuple(read.tables.entries.rows)
        duplicates = tuple(read.duplicated.rows)
        unreadable = tuple(row for row in entries if row.status == UNREADABLE)
        return cls(
            roots=tuple(sorted({row.root for row in entries})),
            totals=_totals(entries),
            entries=entries,
            damaged=tuple(row for row in entries if row.status == "damaged"),
            unreadable=unreadable,
            graphs=tuple(newest_first(row for row in entries if row.cache in CACHES)),
            shipped=tuple(row for row in entries if row.cache in SHIPPED),
            shared=tuple(_shared(entries)),
            duplicates=duplicates,
            alike=tuple(_alike(duplicates)),
            orphans=tuple(read.orphaned.rows),
            removable=tuple(read.removed_unnoticed.rows),
            locks=tuple(locks_of(entries)) if with_locks else None,
            problems=_problems(read, bool(entries), {row.path for row in unreadable}),
        )

    @property
    def size_bytes(self) -> int:
        """What all entries take."""
        return size_of(self.entries)


def size_of(rows: Iterable[EntryRow] | Iterable[RemovableRow]) -> int:
    """What files take, as far as it is known."""
    return sum(row.size_bytes or 0 for row in rows)


def newest_first(rows: Iterable[EntryRow]) -> list[EntryRow]:
    """Entries by the time at which they were written."""
    return sorted(rows, key=lambda row: row.modified_time or 0, reverse=True)


def _totals(entries: Iterable[EntryRow]) -> tuple[Total, ...]:
    by_kind = by_key(((row.cache, row.status), row) for row in entries)
    found = []
    for (cache, status), rows in by_kind.items():
        times = [row.modified_time for row in rows if row.modified_time is not None]
        ends = (min(times), max(times)) if times else (None, None)
        found.append(Total(cache, status, len(rows), size_of(rows), *ends))
    return tuple(sorted(found, key=lambda total: (-total.size_bytes, total.cache, total.status)))


def _shared(entries: tuple[EntryRow, ...]) -> Iterator[SharedKey]:
    marks = marks_beside(entries)
    of_number = {row.entry: row for row in entries}
    several = map(of_number.__getitem__, marks)
    groups = by_key(((row.root, row.cache, row.cache_key or ""), row) for row in several)
    for (_, cache, key), rows in groups.items():
        statuses = dict(Counter(row.status for row in rows))
        yield SharedKey(cache, key, statuses, frozenset(m for row in rows for m in marks[row.entry]))


def _alike(duplicates: Iterable[DuplicateRow]) -> Iterator[Alike]:
    # What saves most comes first.
    alike = by_key(((group.cache, group.known_by), group) for group in duplicates)
    for (cache, known_by), mine in alike.items():
        files = sum(group.copies for group in mine)
        yield Alike(cache, known_by, len(mine), files, sum(group.saved_bytes for group in mine))


def _problems(read: Recording, has_entries: bool, listed: set[str]) -> tuple[ProblemRow, ...]:
    problems = tuple(read.facts.problems)
    others = [row for row in problems if row.kind != "damaged_entry" and row.source not in listed]
    return problems if others or not has_entries else ()


def past_changes(read: Recording, row: PastMiss) -> tuple[FieldChange, ...]:
    """What changed for a past miss, as far as it was recorded."""
    entries = read.facts.entries
    before, after = entries[row.baseline_entry].detail_set, entries[row.entry].detail_set
    if not row.changed or before is None or after is None:
        return ()
    return tuple(field_changes(read.tables.hash_details, before, after))
