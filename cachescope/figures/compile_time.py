"""Where the time of compiling went: compiles as bars over time, and the phases of each run side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from cachescope.analysis.phases.frame import self_times
from cachescope.figures.canvas import (
    axis_title,
    bars,
    empty,
    inside_text,
    legend_room,
    note,
    origins,
    rows_canvas,
    stacked_rows,
    time_axis,
    value_axis,
)
from cachescope.figures.folding import folded_runs
from cachescope.figures.palette import COMPILE_COLOURS, GREY, PHASE_COLOURS
from cachescope.figures.picture import Picture
from cachescope.figures.texts import hover, place_labels, shown
from cachescope.frames.compile_rows import CompileRow, PhaseRow
from cachescope.frames.recorded_rows import RunRow
from cachescope.grouping import by_key
from cachescope.wording import duration, percent, plural

SLOWEST: Final = 5
"""Of how many runs the phases are on a first screen."""

_MOST_BARS: Final = 2500
_MOST_LANES: Final = 4
_FILLED: Final = 0.84
_LEAST_COMPILE_WITH_TEXT: Final = 0.08
_LEAST_SHARE_WITH_EDGE: Final = 0.005
_EDGE: Final = "rgba(0,0,0,0.45)"

_OTHERS: Final = "other phases"
_PHASES: Final = 8
_LEAST_PHASE_WITH_TEXT: Final = 0.06


def compiles(compiles: Sequence[CompileRow], runs: Sequence[RunRow]) -> Picture:
    """Compiles over time: a bar for each, as long as it took, coloured by why it was compiled.

    One row per run; a compile within another is a bar below it. Time counts from the start of the run, or of the
    first run if all ran at once. If there are very many compiles, neighbours of one kind share a bar. Bars are clickable:
    ``customdata`` holds the run and the (first) compile id.

    Parameters
    ----------
    compiles : DataFrame or sequence of its rows
        Columns run, compile_id, kind, function, file, line, start_time, time_taken_ns, recompile_reasons, error.
    runs : DataFrame or sequence of its rows
        Columns run, rank, start_time.
    """
    if not compiles:
        return empty("No compile was read: they are in the files that TORCH_TRACE writes.")
    timed = [row for row in compiles if row.start_time is not None and row.time_taken_ns is not None]
    if not timed:
        reason = "the processes ended in them or still run, or it is a text log."
        return empty(f"No compile has an end in its log: {reason}")
    folded = folded_runs(((row.run, (row.compile_id, row.kind)) for row in timed), runs)
    placed, since = _placed(timed, runs, folded.row_of)
    is_shared = len(placed) > _MOST_BARS
    if is_shared:
        placed = _shared(placed, len(folded.names))
    lanes = max(bar.lane for bar in placed) + 1
    pixels = max(12.0, min(20.0 + 14 * lanes, 640 / len(folded.names)))
    top = legend_room(len({bar.of.kind for bar in placed}))
    seconds = value_axis(rangemode="tozero", ticksuffix=" s", nticks=8, title=axis_title(since))
    figure = rows_canvas(folded.labels, top, pixels, least=60, barmode="overlay", xaxis=seconds)
    _draw(figure, placed, lanes, is_named=not folded.folded)
    remarks = [folded.remark]
    if is_shared:
        remarks.append(f"{plural(len(timed), 'compile')} in {plural(len(placed), 'bar')}")
    if left_out := len(compiles) - len(timed):
        remarks.append(f"{plural(left_out, 'compile')} without an end in the log not shown")
    note(figure, *remarks)
    return figure


def _placed(
    timed: Sequence[CompileRow], runs: Sequence[RunRow], row_of: dict[int, int]
) -> tuple[list[_Bar], str]:
    """The bars, by run and beginning, each in the lane of how many others it is within."""
    spans = [(row.start_time or 0, max(0, row.time_taken_ns or 0)) for row in timed]
    of_run = by_key((row.run, (begun, begun + span)) for row, (begun, span) in zip(timed, spans, strict=True))
    start, since = origins(runs, of_run)
    bars = [
        _Bar(one, row_of[one.run], place or "?", (begun - start[one.run]) / 1e9, span / 1e9)
        for one, place, (begun, span) in zip(timed, place_labels(timed), spans, strict=True)
    ]
    bars.sort(key=lambda bar: (bar.of.run, bar.x, -bar.span))
    ends: list[float] = []
    before = None
    for bar in bars:
        ends = ends if bar.of.run == before else []
        before = bar.of.run
        while ends and ends[-1] <= bar.x:
            ends.pop()
        # No more lanes than there is room for.
        bar.lane = min(len(ends), _MOST_LANES - 1)
        ends.append(bar.x + bar.span)
    return bars, since


def _shared(bars: list[_Bar], rows: int) -> list[_Bar]:
    """Merge neighbours of one row, lane and kind into one bar."""
    lanes, kinds = max(bar.lane for bar in bars) + 1, len({bar.of.kind for bar in bars})
    first = min(bar.x for bar in bars)
    step = (max(bar.x for bar in bars) - first or 1.0) / max(4, _MOST_BARS // (rows * lanes * kinds))
    groups = by_key(((bar.row, bar.lane, bar.of.kind, int((bar.x - first) / step)), bar) for bar in bars)
    merged = []
    for _, members in sorted(groups.items()):
        x, end = min(bar.x for bar in members), max(bar.x + bar.span for bar in members)
        merged.append(replace(members[0], x=x, span=end - x, count=len(members)))
    return merged


@dataclass(slots=True)
class _Bar:
    """A bar: one compile, or several at one place; seconds."""

    of: CompileRow
    row: int
    place: str
    x: float
    span: float
    count: int = 1
    lane: int = 0


def _draw(figure: Picture, placed: list[_Bar], lanes: int, *, is_named: bool) -> None:
    height = _FILLED / lanes
    whole = max(bar.x + bar.span for bar in placed) - min(0.0, *(bar.x for bar in placed)) or 1.0
    of_kind = by_key((bar.of.kind, bar) for bar in placed)
    # Kinds of the palette first: a legend in one order, whatever was compiled first.
    for kind in sorted(of_kind, key=[*COMPILE_COLOURS].index):
        rows = of_kind[kind]
        colour = COMPILE_COLOURS[kind]
        # Divides neighbours; and without a border of its colour, what takes a millisecond of an hour is not seen.
        edges = [_EDGE if row.span / whole > _LEAST_SHARE_WITH_EDGE else colour for row in rows]

        def name(row: _Bar) -> str:
            # Bars of runs that share a row lie over each other, and so would their names.
            is_wide = is_named and row.span / whole >= _LEAST_COMPILE_WITH_TEXT and row.count == 1
            return shown(f"{row.place} [{row.of.compile_id}]", 60) if is_wide else ""

        bars(
            figure,
            [row.span for row in rows],
            [row.row - _FILLED / 2 + (row.lane + 0.5) * height for row in rows],
            colour,
            [_hover(row) for row in rows],
            base=[row.x for row in rows],
            width=[height * 0.92] * len(rows),
            name=kind,
            marker={"color": colour, "line": {"width": 1, "color": edges}},
            showlegend=True,
            text=list(map(name, rows)),
            **inside_text(colour, "start"),
            customdata=[[row.of.run, row.of.compile_id[:40]] for row in rows],
        )


def _hover(row: _Bar) -> str:
    one, compile_id = row.of, row.of.compile_id[:40]
    if row.count > 1:
        return hover(
            f"{row.count} compiles, {one.kind}; the first is {compile_id}: {row.place}",
            f"run {one.run}, from {row.x:.3f} s to {row.x + row.span:.3f} s",
        )
    return hover(
        row.place,
        f"run {one.run}, compile {compile_id}, {one.kind}",
        f"at {row.x:.3f} s, {duration(int(row.span * 1e9))}",
        next((f"guard of {reason}" for reason in one.recompile_reasons), None),
        None if one.error is None else f"failed: {one.error}",
    )


def phases(phases: Sequence[PhaseRow], runs: Sequence[RunRow]) -> Picture:
    """Self time of each phase per run: stacked bars, a row per run, the longest phases first.

    Of more than 24 runs, those of one label that spent about as long, most of it in the same phase, share a row, the rarest
    first; their bars are means.

    Parameters
    ----------
    phases : DataFrame or sequence of its rows
        Columns run, phase, self_time_ns.
    runs : DataFrame or sequence of its rows
        Columns run, rank, start_time.
    """
    if not phases:
        return empty("No trace with events was read: they are in the files that TORCH_TRACE writes.")
    sums, rows_of = self_times(phases), by_key((row.run, row) for row in phases)
    of_run = {run: self_times(mine) for run, mine in rows_of.items()}
    longest = ((run, next(iter(mine)), sum(mine.values())) for run, mine in of_run.items())
    # About: within a factor of two.
    rows = folded_runs(((run, (phase, ns.bit_length())) for run, phase, ns in longest), runs)
    ordered = sorted(sums, key=lambda name: (-sums[name], name))
    named = [name for name in ordered if name in PHASE_COLOURS][:_PHASES]
    colours = {name: PHASE_COLOURS[name] for name in named}
    if len(ordered) > len(named):
        colours[_OTHERS] = GREY
    times: dict[str, Counter[int]] = {name: Counter() for name in colours}
    totals: Counter[int] = Counter()
    for run, mine in of_run.items():
        place = rows.row_of[run]
        for phase, ns in mine.items():
            times[phase if phase in named else _OTHERS][place] += ns // rows.sizes[place]
            totals[place] += ns // rows.sizes[place]
    seconds = time_axis(max(totals.values()) / 1e9)
    figure = stacked_rows(rows.labels, legend_room(len(colours)), xaxis=seconds)
    for name, colour in colours.items():
        of_row = dict(sorted(times[name].items()))
        shares = {at: ns / totals[at] if totals[at] else 0.0 for at, ns in of_row.items()}
        of_all = {at: f"{percent(shares[at])} of {duration(totals[at])}" for at in of_row}
        bars(
            figure,
            [ns / 1e9 for ns in of_row.values()],
            list(of_row),
            colour,
            [hover(rows.names[at], f"{name}: {duration(ns)}, {of_all[at]}") for at, ns in of_row.items()],
            name=shown(name),
            text=[duration(ns) if shares[at] >= _LEAST_PHASE_WITH_TEXT else "" for at, ns in of_row.items()],
            **inside_text(colour),
            customdata=[[rows.first[at]] for at in of_row],
        )
    note(figure, rows.remark, "a bar is the mean of its runs" if rows.folded else "")
    return figure


def phases_of_slowest(phases_of: Sequence[PhaseRow], runs: Sequence[RunRow]) -> Picture:
    """The same of the five runs that took longest, so that a first screen has room for what comes after it."""
    totals = Counter[int]()
    for row in phases_of:
        totals[row.run] += row.self_time_ns
    slowest = {run for run, _ in totals.most_common(SLOWEST)}
    figure = phases([row for row in phases_of if row.run in slowest], runs)
    if len(totals) > SLOWEST:
        note(figure, f"the {SLOWEST} slowest of {len(totals)} runs")
    return figure
