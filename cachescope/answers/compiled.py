"""What torch compiled and why: the compiles of all processes, what was compiled again, graph breaks and symbols."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self, TypeVar

from cachescope.analysis.compiles.frames import recompiles
from cachescope.analysis.rates import known_sum
from cachescope.answers.names import place_name, place_of
from cachescope.answers.recording import Recording
from cachescope.frames.compile_rows import CompileRow, RecompileRow, SymbolRow
from cachescope.frames.recorded_rows import ProblemRow
from cachescope.grouping import by_key
from cachescope.notebook_cells import of_any_process
from cachescope.wording import short_names

SomeRow = TypeVar("SomeRow")
_Place = CompileRow | SymbolRow | RecompileRow


@dataclass(frozen=True, slots=True)
class LookedUp:
    """What the compiles of one function looked up."""

    row: CompileRow  # one of them
    hits: int  # how their lookups ended
    full_misses: int
    guard_misses: int
    bypasses: int
    missed_in: tuple[str, ...]  # the compile ids of those with a miss

    @classmethod
    def of(cls, rows: Sequence[CompileRow]) -> Self:
        """Of compiles of one function, of which the lookups are known."""
        missed = [row.compile_id for row in rows if row.full_misses or row.guard_misses]
        return cls(
            row=rows[0],
            hits=sum(row.hits or 0 for row in rows),
            full_misses=sum(row.full_misses or 0 for row in rows),
            guard_misses=sum(row.guard_misses or 0 for row in rows),
            bypasses=sum(row.bypasses or 0 for row in rows),
            missed_in=tuple(dict.fromkeys(missed)),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Compiled:
    """What torch compiled."""

    kinds: Counter[str]  # how many compiles there are of each kind
    failed: int  # how many of them failed, those at the recompile limit not counted
    unended: int  # how many have no end in a log: the process ended in them, still runs, or its log lost it
    time_taken_ns: int | None  # how long those took whose end is in a log; None if none has one
    recompiles: tuple[RecompileRow, ...]  # what was compiled again, the costliest first
    # A compile for each place at which a graph breaks, and how many compiles broke there.
    broken: tuple[tuple[CompileRow, int], ...]
    # What the compiles of each function looked up, the most misses first; only of those whose lookups are
    # known.
    looked_up: tuple[LookedUp, ...]
    # A symbol for each size or number that became one, with its guards, and in how many compiles; first those
    # that torch fixed to one value.
    symbols: tuple[tuple[SymbolRow, int], ...]
    # What each file of the program is called in a line: its name, and as much of its path as it takes to tell
    # it from the others.
    files: dict[str, str]
    problems: tuple[ProblemRow, ...]  # of reading, and of reading compiles

    @classmethod
    def of(cls, read: Recording) -> Self:
        """Of everything that was read."""
        compiles, symbols = read.compiles_read[0].rows, read.compiles_read[1].rows
        taken = [row.time_taken_ns for row in compiles if row.time_taken_ns is not None]
        places: list[_Place] = [*compiles, *symbols]
        breaks = [
            (row, (row.function, tuple(map(of_any_process, row.graph_breaks))))
            for row in compiles
            if row.graph_breaks
        ]
        often = _counted([(row, _as_symbol(row)) for row in symbols])
        return cls(
            kinds=Counter(row.kind for row in compiles),
            failed=sum(row.error is not None and row.kind != "limit" for row in compiles),
            unended=len(compiles) - len(taken),
            time_taken_ns=known_sum(taken),
            recompiles=tuple(recompiles(compiles)),
            broken=_counted(breaks),
            looked_up=_looked_up(compiles),
            symbols=tuple(sorted(often, key=lambda one: one[0].specialized is None)),
            files=short_names(row.file for row in places if row.file is not None),
            problems=(*read.facts.problems, *read.compiles_read[2]),
        )

    def place(self, row: _Place) -> str:
        """``forward (model.py:88)``."""
        return place_name(row, self.files) or "a function that the log does not name"


def _as_symbol(row: SymbolRow) -> object:
    """The common part of symbols that are shown as one: another branch leaves another range."""
    return row.source, place_of(row), row.range_after, tuple(map(of_any_process, row.guards)), row.specialized


def _looked_up(compiles: Sequence[CompileRow]) -> tuple[LookedUp, ...]:
    found = map(LookedUp.of, by_key((place_of(row), row) for row in compiles if row.lookups).values())
    return tuple(sorted(found, key=lambda one: -(one.full_misses + one.guard_misses)))


def _counted(rows: Sequence[tuple[SomeRow, object]]) -> tuple[tuple[SomeRow, int], ...]:
    """The first row of each kind, and how many there are of the kind, the most frequent first."""
    often = Counter(kind for _, kind in rows)
    first = {kind: row for row, kind in reversed(rows)}
    return tuple((first[kind], count) for kind, count in often.most_common())
