"""The lookups that belong to each compile."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from cachescope.columns import rows_of
from cachescope.frames.compile_rows import CompileRow
from cachescope.readers.logs.trace_compiles import first_attempt

_Name = tuple[int, str, int]


@dataclass(frozen=True, slots=True)
class _Lookup:
    lookup: int
    run: int
    time: int | None
    outcome: str
    compile_id: str
    segment: int
    is_backward: bool | None


@dataclass(frozen=True, slots=True)
class OfCompile:
    """The lookups of one compile, and how many of them ended how; none are known of many compiles."""

    lookups: tuple[int, ...]
    hits: int | None
    full_misses: int | None
    guard_misses: int | None
    bypasses: int | None


def lookups_of_compiles(compiles: Sequence[CompileRow], lookups: pd.DataFrame) -> list[OfCompile]:
    """For each compile the lookups that were certainly made in it.

    Parameters
    ----------
    compiles : sequence of CompileRow
    lookups : DataFrame
        The frame lookups.
    """
    named: dict[_Name, list[int]] = defaultdict(list)
    of_id: dict[tuple[int, str], list[int]] = defaultdict(list)
    for place, one in enumerate(compiles):
        named[one.run, one.compile_id, one.segment].append(place)
        of_id[one.run, one.compile_id].append(place)
    found: dict[int, list[_Lookup]] = defaultdict(list)
    some = lookups[lookups["run"].isin({one.run for one in compiles}) & lookups["compile_id"].notna()]
    for row in rows_of(some, _Lookup):
        compile_id = first_attempt(row.compile_id)
        if row.segment:
            places = named.get((row.run, compile_id, row.segment), [])
        else:
            # Only a text log has it, or its compile began before the trace: the time decides between compiles with this id.
            places = [
                place for place in of_id.get((row.run, compile_id), []) if _was_in(row, compiles[place])
            ]
        if (own := _one_of(places, row, compiles)) is not None:
            found[own].append(row)
    return [_counted(found.get(place, [])) for place in range(len(compiles))]


def _one_of(places: Sequence[int], row: _Lookup, compiles: Sequence[CompileRow]) -> int | None:
    """The compile that a lookup was made in; None if it may be several: a backward graph compiled later has a row of its own."""
    fitting = [place for place in places if _was_in(row, compiles[place])] or list(places)
    of_kind = [place for place in fitting if (compiles[place].kind == "backward") == bool(row.is_backward)]
    if row.is_backward is None and len(fitting) > 1:
        return None
    # Without a row of its own, a backward graph was compiled together with its forward graph.
    chosen = of_kind or (fitting if row.is_backward else [])
    return chosen[0] if len(chosen) == 1 else None


def _was_in(row: _Lookup, compile_: CompileRow) -> bool:
    start, taken = compile_.start_time, compile_.time_taken_ns
    return None not in (row.time, start, taken) and start <= row.time <= start + taken  # type: ignore[operator]


def _counted(rows: Sequence[_Lookup]) -> OfCompile:
    if not rows:
        return OfCompile((), None, None, None, None)
    outcomes = [row.outcome for row in rows]
    counts = map(outcomes.count, ("hit", "full_miss", "guard_miss", "bypass"))
    return OfCompile(tuple(row.lookup for row in rows), *counts)
