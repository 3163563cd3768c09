"""The rows that answers are made of, by their ids: missing values None, times in nanoseconds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

from cachescope.analysis.verdicts.misses import Compile, compile_of
from cachescope.errors import NotFoundError
from cachescope.frames.answer_rows import MissRow
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.recorded_rows import LookupRow, RunRow
from cachescope.grouping import by_key
from cachescope.readers.assemble import Tables
from cachescope.table import Table
from cachescope.wording import clock_of, numbered, short_names


class Facts:
    """What was read and judged, by id; misses by their lookup. Lookups, misses and causes are computed on demand."""

    def __init__(
        self, tables: Tables, shown: Callable[[], Table[LookupRow]], missed: Callable[[], Table[MissRow]]
    ) -> None:
        self._tables, self._shown, self._missed = tables, shown, missed

    @cached_property
    def runs(self) -> Mapping[int, RunRow]:
        """The runs by number."""
        return {row.run: row for row in self._tables.runs.rows}

    def run(self, number: int) -> RunRow:
        """A run that somebody named by its number."""
        if number not in self.runs:
            known = numbered("run", [*self.runs]) if self.runs else "none"
            raise NotFoundError(f"no run {number}; what was read has {known}")
        return self.runs[number]

    @cached_property
    def lookups(self) -> Mapping[int, LookupRow]:
        """The lookups by number, in the order in which torch made them."""
        return {row.lookup: row for row in self._shown().rows}

    @cached_property
    def clock(self) -> Callable[[int], str]:
        """What shows when a run began."""
        return clock_of(row.start_time for row in self.runs.values())

    @cached_property
    def machines(self) -> Mapping[int, str]:
        """The cores and limits of the process of each run, where a snapshot of it has them."""
        rows = self._tables.contexts.rows
        return {row.run: row.machine for row in rows if row.run is not None and row.machine}

    @cached_property
    def misses(self) -> Mapping[int, MissRow]:
        """The misses by the number of the lookup."""
        return {row.lookup: row for row in self._missed().rows}

    @cached_property
    def entries(self) -> Mapping[int, EntryRow]:
        """The entries by number."""
        return {row.entry: row for row in self._tables.entries.rows}

    @cached_property
    def files(self) -> dict[str, str]:
        """The short name of each file of the program."""
        return short_names(dict.fromkeys(row.file for row in self.lookups.values() if row.file is not None))

    def misses_of(self, cause: int) -> Sequence[MissRow]:
        """The misses of one cause, in the order of the lookups."""
        return self._by_cause.get(cause, [])

    def roots_of(self, cause: int) -> Sequence[MissRow]:
        """The misses of one cause that do not follow from another one."""
        return [miss for miss in self.misses_of(cause) if miss.root]

    def followers_of(self, root: MissRow) -> list[LookupRow]:
        """The lookups that missed because of a root miss: of its cause and in the same compile."""
        return self._followers[root.cause, compile_of(self.lookups[root.lookup])]

    def baseline_of(self, miss: MissRow) -> LookupRow | EntryRow | None:
        """The lookup or entry that a miss is compared with."""
        if miss.baseline_entry is not None:
            return self.entries[miss.baseline_entry]
        return None if miss.baseline_lookup is None else self.lookups[miss.baseline_lookup]

    def below(self, lookup: int) -> Sequence[LookupRow]:
        """The lookups that an AOTAutograd lookup made."""
        return self._by_above.get(lookup, ())

    @cached_property
    def _by_cause(self) -> Mapping[int, list[MissRow]]:
        return by_key((miss.cause, miss) for miss in self.misses.values())

    @cached_property
    def _followers(self) -> Mapping[tuple[int, Compile], list[LookupRow]]:
        """The misses that follow from another one, by cause and compile."""
        rows = ((miss.cause, self.lookups[miss.lookup]) for miss in self.misses.values() if not miss.root)
        return by_key(((cause, compile_of(row)), row) for cause, row in rows)

    @cached_property
    def _by_above(self) -> Mapping[int, list[LookupRow]]:
        return by_key((row.aot_lookup, row) for row in self.lookups.values() if row.aot_lookup is not None)
