"""The rows of the frames ``compiles``, ``symbols`` and ``recompiles``, from the traces of all runs and their lookups."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Final

from cachescope.analysis.compiles.ranges import remaining_ranges
from cachescope.analysis.rates import known_sum
from cachescope.analysis.verdicts.recompiles import OF_COMPILE, failed_guard
from cachescope.frames.answer_rows import MissRow
from cachescope.frames.compile_rows import CompileRow, RecompileRow, SymbolRow
from cachescope.frames.recorded_rows import LookupRow, ProblemRow, RunRow
from cachescope.grouping import by_key
from cachescope.notebook_cells import code_file
from cachescope.readers.logs.compiled_frames import CompiledFrame, CompiledFrames
from cachescope.readers.logs.second_pass import read_traces
from cachescope.readers.logs.trace_compiles import first_attempt
from cachescope.rows import like
from cachescope.wording import class_of

if TYPE_CHECKING:
    from cachescope.readers.assemble import Tables

# torch/csrc/dynamo/guards.cpp, `TensorCheck::check_verbose`, and torch/_dynamo/guards.py, `CONSTANT_MATCH` and `EQUALS_MATCH`; the
# compile whose guard failed comes before, and since 2.9 the line of code after.
_SIZE: Final = re.compile(
    r"\d+(?:/\d+)*: tensor '(?P<tensor>.+?)' size mismatch at index (?P<dim>\d+)\. expected (?P<was>\d+), actual (?P<now>\d+).*"
)
_EQUAL: Final = re.compile(
    r"\d+(?:/\d+)*: (?P<source>.+?) == (?P<was>-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)(?: #.*| \(HINT.*)?"
)
# torch/_guards.py, `strip_local_scope`: since 2.7 reasons name L['x'] as x.
_LOCAL: Final = re.compile(r"L\[\s*['\"](.*?)['\"]\s*\]")


def with_lookups(compiles: Sequence[CompileRow], lookups: Iterable[LookupRow]) -> list[CompileRow]:
    """The compiles, each with the lookups certainly made in it and the counts of their outcomes; many have none."""
    named = by_key(((one.run, one.compile_id, one.segment), place) for place, one in enumerate(compiles))
    of_id = by_key(((one.run, one.compile_id), place) for place, one in enumerate(compiles))
    found: dict[int, list[LookupRow]] = defaultdict(list)
    runs = {one.run for one in compiles}
    for row in lookups:
        if row.compile_id is None or row.run not in runs:
            continue
        compile_id = first_attempt(row.compile_id)
        if row.segment:
            places = named.get((row.run, compile_id, row.segment), [])
        else:
            # The lookup is only in a text log, or its compile began before the trace: the time decides between compiles with this id.
            places = [at for at in of_id.get((row.run, compile_id), []) if _was_in(row, compiles[at])]
        if (own := _one_of(places, row, compiles)) is not None:
            found[own].append(row)
    return [_counted(one, found.get(place, [])) for place, one in enumerate(compiles)]


def _one_of(places: Sequence[int], row: LookupRow, compiles: Sequence[CompileRow]) -> int | None:
    """The compile in which a lookup was made; None if there are several candidates. A backward graph compiled later has its own row."""
    fitting = [place for place in places if _was_in(row, compiles[place])] or list(places)
    of_kind = [place for place in fitting if (compiles[place].kind == "backward") == bool(row.is_backward)]
    if row.is_backward is None and len(fitting) > 1:
        return None
    # Without a row of its own, a backward graph was compiled together with its forward graph.
    chosen = of_kind or (fitting if row.is_backward else [])
    return chosen[0] if len(chosen) == 1 else None


def _was_in(row: LookupRow, compile_: CompileRow) -> bool:
    start, taken = compile_.start_time, compile_.time_taken_ns
    return None not in (row.time, start, taken) and start <= row.time <= start + taken  # type: ignore[operator]


def _counted(one: CompileRow, rows: Sequence[LookupRow]) -> CompileRow:
    if not rows:
        return one
    outcomes, row = [row.outcome for row in rows], rows[0]
    if one.kind == "backward" and row.file is not None:
        # After a reset, another function has the id: the lookup is of its forward graph.
        one = replace(one, function=row.function, file=row.file, line=row.line)
    return replace(
        one,
        lookups=tuple(row.lookup for row in rows),
        class_name=class_of(rows),
        hits=outcomes.count("hit"),
        full_misses=outcomes.count("full_miss"),
        guard_misses=outcomes.count("guard_miss"),
        bypasses=outcomes.count("bypass") + outcomes.count("disabled"),
    )


def value_before(source: str | None, value: str | None, reasons: Iterable[str]) -> str | None:
    """The value of a symbol's source in an earlier compile, if its change is among the reasons to compile again.

    Examples
    --------
    >>> value_before("L['n']", "3", ["0/0: n == 2 # return x * n"])
    '2'
    """
    if source is None or value is None:
        return None
    name = _LOCAL.sub(r"\1", source)
    for reason in reasons:
        text = _LOCAL.sub(r"\1", reason)
        if match := _SIZE.fullmatch(text):
            if (f"{match['tensor']}.size()[{match['dim']}]", value) == (name, match["now"]):
                return match["was"]
        elif (match := _EQUAL.fullmatch(text)) and match["source"] == name and match["was"] != value:
            return match["was"]
    return None


def read_compiles(
    runs: Collection[RunRow], lookups: Iterable[LookupRow], tables: Tables
) -> tuple[list[CompileRow], list[SymbolRow], list[ProblemRow]]:
    """Read the traces of runs once more, for their compiles; the problems are what could not be read for them."""
    read, problems = read_traces(runs, tables.stamps, "its compiles", _compiled)
    told = {row.run: [*map(CompiledFrame, tables.compiled.get(row.run, ()))] for row in runs} | dict(read)
    every = [(run, one) for run, found in sorted(told.items()) for one in found]
    for run, one in every:
        one.row.run = run
        remaining = {name: str(bounds) for name, bounds in remaining_ranges(one.symbols).items()}
        for symbol in one.symbols:
            symbol.run, symbol.range_after = run, remaining.get(symbol.symbol)
            symbol.changed_from = value_before(symbol.source, symbol.value, one.row.recompile_reasons)
    symbols = [symbol for _, one in every for symbol in one.symbols]
    return with_lookups([one.row for _, one in every], lookups), symbols, problems


def _compiled(path: str, size: int | None) -> tuple[list[CompiledFrame], Sequence[ProblemRow]]:
    found = CompiledFrames(path, size)
    return found.rows, found.problems


def recompiles(
    compiles: Iterable[CompileRow], lookups: Iterable[LookupRow], misses: Mapping[int, MissRow]
) -> list[RecompileRow]:
    """Group the recompiles by function and guard: that of the earlier compile which a miss is compared with."""
    compared = {
        (row.run, first_attempt(row.compile_id or ""), row.segment): match[1]
        for row in lookups
        if row.lookup in misses and (match := OF_COMPILE.match(misses[row.lookup].reason))
    }
    known = set[tuple[Hashable, ...]]()
    groups: dict[tuple[Hashable, ...], list[tuple[CompileRow, str | None]]] = {}
    for row in compiles:
        if row.kind in ("recompile", "limit"):
            place = row.function, code_file(row.file), row.line
            own = f"{compared.get((row.run, row.compile_id, row.segment), row.compile_id)}: "
            ways = [(one, (*place, failed_guard(one))) for one in row.recompile_reasons]
            # Each reason is of another earlier compile. Without lookups, take one that is new, or failed for other values.
            told = (way for way in ways if way[0].startswith(own))
            new = (way for way in ways if (row.run, *way[1]) not in known)
            other = (way for way in ways if (row.run, way[0].partition(": ")[2]) not in known)
            reason, guard = next(chain(told, new, other, ways), (None, place))
            known.update((row.run, *way[1]) for way in ways)
            known.update((row.run, way[0].partition(": ")[2]) for way in ways)
            groups.setdefault(guard, []).append((row, reason))
    rows = [_recompile_row(members) for members in groups.values()]
    return sorted(rows, key=lambda row: -(row.time_taken_ns or 0))


def _recompile_row(told: Sequence[tuple[CompileRow, str | None]]) -> RecompileRow:
    members, (first, reason) = [row for row, _ in told], told[0]
    limits = sum(row.kind == "limit" for row in members)
    return like(
        RecompileRow,
        first,
        class_name=class_of(members),
        guard=None if reason is None else failed_guard(reason),
        example=reason,
        compiles=len(members) - limits,
        limits=limits,
        time_taken_ns=known_sum(row.time_taken_ns for row in members),
        runs=tuple(dict.fromkeys(row.run for row in members)),
        compile_ids=tuple(dict.fromkeys(row.compile_id for row in members)),
    )
