"""The frames ``compiles`` and ``symbols``: the traces of all runs read for their compiles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace

import pandas as pd

from cachescope.analysis.compiles.changed_values import value_before
from cachescope.analysis.compiles.lookups import lookups_of_compiles
from cachescope.analysis.compiles.ranges import remaining_ranges
from cachescope.columns import frame_of
from cachescope.frames.compile_rows import CompileRow, SymbolRow
from cachescope.readers.checked_file import well_formed
from cachescope.readers.logs.compiled_frames import CompiledFrame, CompiledFrames, GraphBreak
from cachescope.readers.logs.trace_compiles import Place
from cachescope.readers.logs.traces_again import read_traces
from cachescope.readers.reading import Problem
from cachescope.readers.stamps import Stamps


@dataclass(frozen=True, slots=True, eq=False)
class CompilesRead:
    """The compiles in traces.

    Attributes
    ----------
    compiles, symbols : DataFrame
        See ``describe("compiles")`` and ``describe("symbols")``.
    problems : DataFrame
        Records and traces that could not be read for it.
    """

    compiles: pd.DataFrame
    symbols: pd.DataFrame
    problems: pd.DataFrame


def read_compiles(runs: pd.DataFrame, stamped: Stamps, lookups: pd.DataFrame) -> CompilesRead:
    """Read the traces of runs once more, for their compiles.

    Parameters
    ----------
    runs, lookups : DataFrame
        The frames runs and lookups.
    stamped : dict
        Size and time of their files when they were read: see `read_traces`.
    """
    read, problems = read_traces(runs, stamped, "its compiles", _compiled)
    every = [(run, one) for run, rows in read for one in rows]
    rows = [_row(run, one) for run, one in every]
    belonging = zip(rows, lookups_of_compiles(rows, lookups), strict=True)
    return CompilesRead(
        frame_of((replace(row, **asdict(own)) for row, own in belonging), CompileRow),
        frame_of((row for run, one in every for row in _symbol_rows(run, one)), SymbolRow),
        problems,
    )


def _compiled(path: str, size: int | None) -> tuple[list[CompiledFrame], Sequence[Problem]]:
    found = CompiledFrames(path, size)
    return found.rows, found.problems


def _row(run: int, one: CompiledFrame) -> CompileRow:
    return CompileRow(
        run=run,
        compile_id=one.compile_id,
        segment=one.segment,
        kind=one.kind,
        **one.place._asdict(),
        start_time=one.start_ns,
        time_taken_ns=one.time_taken_ns,
        recompile_reasons=tuple(map(well_formed, one.recompile_reasons)),
        symbols=tuple(symbol.name for symbol in one.symbols.rows),
        graph_breaks=tuple(map(_graph_break_text, one.graph_breaks)),
        restarts=one.restarts,
        error=one.error,
        collectives=one.collectives,
    )


def _graph_break_text(one: GraphBreak) -> str:
    where = "" if one.file is None else f"{one.file}:{one.line}: "
    return well_formed(f"{where}{one.reason}")


def _symbol_rows(run: int, one: CompiledFrame) -> Iterator[SymbolRow]:
    remaining = remaining_ranges(one.symbols.rows)
    for symbol in one.symbols.rows:
        fixed = symbol.specialization
        after = remaining.get(symbol.name)
        yield SymbolRow(
            run=run,
            compile_id=one.compile_id,
            segment=one.segment,
            symbol=symbol.name,
            value=symbol.value,
            source=symbol.source,
            range=symbol.range,
            **symbol.place._asdict(),
            changed_from=value_before(symbol.source, symbol.value, one.recompile_reasons),
            range_after=None if after is None else str(after),
            guards=tuple(f"{_at(guard.place)}: {guard.expr}" for guard in symbol.guards),
            guard_code=tuple(guard.code or "" for guard in symbol.guards),
            specialized=None if fixed is None else fixed.value,
            specialized_at=None if fixed is None or fixed.place.file is None else _at(fixed.place),
        )


def _at(place: Place) -> str:
    return f"{place.file or '?'}:{place.line or '?'}"
