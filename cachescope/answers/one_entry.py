"""One entry of a cache directory and everything that is known about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import pandas as pd

from cachescope.analysis.contexts.cutlass_machines import cutlass_machine
from cachescope.analysis.differences import FieldChange
from cachescope.analysis.resolve_name import files_named
from cachescope.answers.directory import past_changes
from cachescope.answers.read import Read
from cachescope.columns import rows_of
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.linked_rows import PastMiss
from cachescope.readers.directory.file_contents import SourceCode, read_source_code
from cachescope.terms import CACHES, CUTLASS_CONFIGS


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
    frame: pd.DataFrame
    guards: pd.DataFrame
    links: pd.DataFrame
    kernels: pd.DataFrame
    past_misses: pd.DataFrame
    duplicates: pd.DataFrame
    orphans: pd.DataFrame
    removable: pd.DataFrame
    problems: pd.DataFrame
    changes: tuple[FieldChange, ...]
    made_for: str | None
    names: dict[int, str]

    @property
    def source(self) -> SourceCode:
        """Its generated source, read from the file again, or the reason why there is none."""
        files = rows_of(self.frame, EntryRow)
        if self.row.cache in CACHES:
            return _source(files[0])
        # The files of code or of a kernel are one thing: beside a binary, and beside metadata in JSON, lies what it
        # was made from.
        read = [_source(file) for file in sorted(files, key=lambda file: file.path.endswith(".json"))]
        return next((source for source in read if source.text is not None), read[0])

    @property
    def source_code(self) -> str | None:
        """The text of `source`."""
        return self.source.text

    @classmethod
    def of(cls, read: Read, which: int | str) -> Self:
        """Everything that is known about one entry, put together from what was read.

        Raises
        ------
        NotFoundError
            If nothing is called so, or several things are.
        """
        files = files_named(list(read.facts.entries.values()), which)
        row = files[0]
        numbers = [file.entry for file in files]
        entries, links, past = read.entries, read.links, read.past_misses
        guards, duplicates = read.guards, read.duplicates
        # The other candidates of a graph have links of their own; the files of a kernel or of code are one thing.
        mine = [row.entry] if row.cache in CACHES else numbers
        is_outward = links["parent"].isin(mine) & ~links["child"].isin(numbers)
        links = links[is_outward | (links["child"].isin(numbers) & ~links["parent"].isin(numbers))]
        here = [file.entry for file in files if file.root == row.root]
        past = past[past["entry"].isin([row.entry]) | past["baseline_entry"].isin([row.entry])]
        shares = duplicates["entries"].map(lambda of_group: row.entry in of_group)
        referred = {*links["parent"], *links["child"].dropna(), *past["entry"], *past["baseline_entry"]}
        return cls(
            row=row,
            frame=entries.set_index("entry", drop=False).loc[numbers].reset_index(drop=True),
            guards=guards[guards["entry"].isin(here)].reset_index(drop=True),
            links=links.reset_index(drop=True),
            kernels=_of(row, read.kernels),
            past_misses=past.reset_index(drop=True),
            duplicates=duplicates[shares.astype(bool)].reset_index(drop=True),
            orphans=_of(row, read.orphans),
            removable=_of(row, read.removable),
            problems=read.problems[read.problems["source"] == row.path].reset_index(drop=True),
            changes=_changes(read, past, row),
            made_for=_made_for(read, row),
            names={int(number): _name(read.facts.entries[number]) for number in referred},
        )


def _source(file: EntryRow) -> SourceCode:
    return read_source_code(file.path, file.cache, file.cache_key)


def _of(row: EntryRow, frame: pd.DataFrame) -> pd.DataFrame:
    of_row: pd.DataFrame = frame[frame["entry"] == row.entry]
    return of_row.reset_index(drop=True)


def _changes(read: Read, past: pd.DataFrame, row: EntryRow) -> tuple[FieldChange, ...]:
    for miss in rows_of(past, PastMiss):
        if miss.entry == row.entry and miss.changed:
            return past_changes(read, miss)
    return ()


def _made_for(read: Read, row: EntryRow) -> str | None:
    if row.cache != CUTLASS_CONFIGS or row.status != "ok" or row.cache_key is None:
        return None
    machines = read.named_devices.rows, read.all_contexts.rows, read.tables.autotune.rows
    return cutlass_machine(row.cache_key, *machines)


def _name(row: EntryRow) -> str:
    return f"{row.cache} {row.cache_key or row.path}, entry {row.entry}"
