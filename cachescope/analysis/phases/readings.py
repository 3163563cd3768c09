"""For the time of a process: what hits could still save, what stays, and what its hits saved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from cachescope.frames.compile_rows import PhaseRow
from cachescope.frames.recorded_rows import LookupRow
from cachescope.grouping import by_key
from cachescope.readers.logs.trace_compiles import first_attempt
from cachescope.terms import AOTAUTOGRAD, FXGRAPH


@dataclass(frozen=True, slots=True)
class Readings:
    """The time of one process in three ways."""

    total_ns: int  # the time that its outermost events cover
    # The self times of phases that an AOTAutograd hit skips, in compiles that had none and ask a cache. No bound: a hit still
    # asks the compiler what the CPU has, and loads code, which takes other times than where it was just
    # compiled.
    could_save_ns: int
    stays_ns: int  # the rest, which stays even if everything hits, as far as its phases tell
    # The compile time that its hits saved, as measured when their entries were made; None if it had hits, and
    # none of their times is recorded.
    saved_ns: int | None
    # Hits whose times add up to it: of the FX cache, and of AOTAutograd where no FX lookup is recorded.
    hits: int
    hits_without_time: int  # how many of them have no recorded time: what they saved is not in `saved_ns`
    unended: int  # events that have no end in the trace


def readings_of_runs(phases: Iterable[PhaseRow], lookups: Iterable[LookupRow]) -> dict[int, Readings]:
    """The readings of each run that has events."""
    rows = by_key((phase.run, phase) for phase in phases)
    made = by_key((lookup.run, lookup) for lookup in lookups)
    return {run: _readings(mine, made[run]) for run, mine in rows.items()}


def _readings(rows: list[PhaseRow], lookups: list[LookupRow]) -> Readings:
    # AOTInductor asks no cache: no hit would spare its compiles.
    not_to_save = {
        compile_of(row)
        for row in lookups
        if row.aot_mode or (row.cache == AOTAUTOGRAD and row.outcome == "hit")
    }
    has_fx = {compile_of(row) for row in lookups if row.cache == FXGRAPH}
    # An AOTAutograd hit contains the FX hits of its graphs, whose times would count twice.
    hits = [
        row.time_saved_ns
        for row in lookups
        if row.outcome == "hit" and (row.cache == FXGRAPH or compile_of(row) not in has_fx)
    ]
    known = [time for time in hits if time is not None]
    total = sum(row.self_time_ns for row in rows)
    could_save = sum(
        row.self_time_ns
        for row in rows
        if row.is_skipped_by_hit and (row.compile_id, row.segment) not in not_to_save
    )
    return Readings(
        total_ns=total,
        could_save_ns=could_save,
        stays_ns=total - could_save,
        saved_ns=sum(known) if known or not hits else None,
        hits=len(hits),
        hits_without_time=len(hits) - len(known),
        unended=sum(row.unended for row in rows),
    )


def compile_of(row: LookupRow) -> tuple[str | None, int]:
    """The compile of a lookup as events say it: they name no attempt, and each attempt is of the first one's segment."""
    compile_id = row.compile_id
    if compile_id is None or "_" not in compile_id:
        return compile_id, row.segment
    return first_attempt(compile_id), row.segment or 1


def self_times(rows: Iterable[PhaseRow]) -> dict[str, int]:
    """The self time of each phase, the longest first."""
    found = Counter[str]()
    for row in rows:
        found[row.phase] += row.self_time_ns
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))
