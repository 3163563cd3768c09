"""Entries of cache directories: their sizes and order; and one of them, with everything that is known about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from cachescope.analysis.contexts.cutlass_machines import cutlass_machine
from cachescope.analysis.differences import FieldChange
from cachescope.analysis.directory.same_key import candidates
from cachescope.analysis.resolve_name import files_named
from cachescope.answers.recording import Recording
from cachescope.frames.directory_rows import Candidate, EntryRow, KernelRow
from cachescope.frames.linked_rows import DuplicateRow, LinkRow, OrphanRow, PastMiss, RemovableRow
from cachescope.frames.recorded_rows import ProblemRow
from cachescope.readers.directory.file_contents import SourceCode, read_source_code
from cachescope.rows import frame_name
from cachescope.table import Table, copied
from cachescope.terms import CACHES, CUTLASS_CONFIGS

SomeRow = TypeVar("SomeRow")


def size_of(rows: Iterable[EntryRow] | Iterable[RemovableRow]) -> int:
    """The size of files, as far as known."""
    return sum(row.size_bytes or 0 for row in rows)


def newest_first(rows: Iterable[EntryRow]) -> list[EntryRow]:
    """Entries by the time at which they were written."""
    return sorted(rows, key=lambda row: row.modified_time or 0, reverse=True)


@dataclass(frozen=True, slots=True, eq=False)
class OneEntry:
    """One entry, the other files under its key, and what refers to what.

    Attributes
    ----------
    row : EntryRow
        The entry.
    frame : DataFrame
        The rows of ``entries`` under its key, its own first.
    guards, links, kernels, past_misses, duplicates, orphans, removable, problems : DataFrame
        The rows of those frames that concern it: `guards` of every candidate under the key in its directory,
        `links` to and from the files, `past_misses` that made it or a further entry beside it.
    changes : tuple of FieldChange
        The fields that made it, where its graph had been stored before.
    made_for : str or None
        Of a list of CUTLASS operations, the machine it is for, in words, or that it is for none that was read.
    names : dict
        A few words for each entry that `links` and `past_misses` refer to.
    """

    row: EntryRow
    tables: dict[str, Table[Any]]  # the rows of each frame that concern it
    changes: tuple[FieldChange, ...]
    made_for: str | None
    names: dict[int, str]

    # fmt: off
    frame = copied(lambda one: one.tables["entries"], "The rows of ``entries`` under its key, its own first.")
    guards = copied(lambda one: one.tables["guards"], "Every candidate under the key in its directory.")
    links = copied(lambda one: one.tables["links"], "To and from the files under its key.")
    kernels = copied(lambda one: one.tables["kernels"], "Its kernels.")
    past_misses = copied(lambda one: one.tables["past_misses"], "Those that made it, or a further entry beside it.")
    duplicates = copied(lambda one: one.tables["duplicates"], "The groups that it is in.")
    orphans = copied(lambda one: one.tables["orphans"], "Why it is left alone, if it is.")
    removable = copied(lambda one: one.tables["removable"], "Why it can go, if it can.")
    problems = copied(lambda one: one.tables["problems"], "What could not be read of it.")
    # fmt: on

    def rows(self, kind: type[SomeRow]) -> list[SomeRow]:
        """The rows of one class that concern it."""
        return self.tables[frame_name(kind)].rows

    @property
    def source(self) -> SourceCode:
        """Its generated source, read from the file again, or the reason why there is none."""
        files = self.rows(EntryRow)
        if self.row.cache in CACHES:
            return _source(files[0])
        # The files of code or of a kernel belong together: the source lies beside a binary, and beside metadata in
        # JSON.
        read = [_source(file) for file in sorted(files, key=lambda file: file.path.endswith(".json"))]
        return next((source for source in read if source.text is not None), read[0])

    @property
    def source_code(self) -> str | None:
        """The text of `source`."""
        return self.source.text

    @classmethod
    def of(cls, read: Recording, which: int | str) -> Self:
        """Everything that is known about one entry, put together from what was read."""
        files = files_named(list(read.facts.entries.values()), which)
        row, under_key = files[0], {file.entry for file in files}
        here = {file.entry for file in files if file.root == row.root}
        # Other candidates of a graph have links of their own. The files of a kernel or of code belong together.
        mine = {row.entry} if row.cache in CACHES else under_key
        links = [
            link
            for link in read.linked.rows
            if (link.parent in mine and link.child not in under_key)
            or (link.child in under_key and link.parent not in under_key)
        ]
        past = [miss for miss in read.missed_before.rows if row.entry in (miss.entry, miss.baseline_entry)]
        tables: tuple[Table[Any], ...] = (
            Table(EntryRow, files),
            Table(Candidate, [one for one in candidates(read.tables.entries.rows) if one.entry in here]),
            Table(LinkRow, links),
            Table(KernelRow, [one for one in read.tables.kernels.rows if one.entry == row.entry]),
            Table(PastMiss, past),
            Table(DuplicateRow, [one for one in read.duplicated.rows if row.entry in one.entries]),
            Table(OrphanRow, [one for one in read.orphaned.rows if one.entry == row.entry]),
            Table(RemovableRow, [one for one in read.removed_unnoticed.rows if one.entry == row.entry]),
            Table(ProblemRow, [one for one in read.tables.problems.rows if one.source == row.path]),
        )
        made = (miss for miss in past if miss.entry == row.entry and miss.changed)
        referred = {number for link in links for number in (link.parent, link.child)}
        referred |= {number for miss in past for number in (miss.entry, miss.baseline_entry)}
        return cls(
            row,
            {frame_name(table.kind): table for table in tables},
            changes=next((read.past_changes(miss) for miss in made), ()),
            made_for=_made_for(read, row),
            names={one: _name(read.facts.entries[one]) for one in referred if one is not None},
        )


def _source(file: EntryRow) -> SourceCode:
    return read_source_code(file.path, file.cache, file.cache_key)


def _made_for(read: Recording, row: EntryRow) -> str | None:
    if row.cache != CUTLASS_CONFIGS or row.status != "ok" or row.cache_key is None:
        return None
    machines = read.named_devices.rows, read.all_contexts.rows, read.tables.autotune.rows
    return cutlass_machine(row.cache_key, *machines)


def _name(row: EntryRow) -> str:
    return f"{row.cache} {row.cache_key or row.path}, entry {row.entry}"
