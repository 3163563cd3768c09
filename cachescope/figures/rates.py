"""How many lookups hit: per run and cache, start by start, and before and after a what-if."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from cachescope.figures.canvas import (
    PANEL_TITLE,
    axis_title,
    bars,
    count_axis,
    empty,
    inside_text,
    legend_room,
    note,
    panel_title,
    stacked_rows,
    time_axis,
    value_axis,
)
from cachescope.figures.folding import MOST_ROWS, folded_runs
from cachescope.figures.palette import GREEN, GREY, OUTCOME_COLOURS, SKY, VERMILLION, YELLOW
from cachescope.figures.picture import Picture
from cachescope.figures.texts import hover, shown
from cachescope.frames.answer_rows import TrendRow
from cachescope.frames.recorded_rows import LookupRow, RunRow
from cachescope.frames.replay_rows import WhatIfRate
from cachescope.grouping import by_key
from cachescope.terms import CACHES
from cachescope.wording import duration, file_time, percent, plural

_GAP: Final = 0.06
_LINE: Final = 16
_NO_TIMES: Final = "no times are recorded"


def outcomes(lookups: Sequence[LookupRow], runs: Sequence[RunRow]) -> Picture:
    """Outcomes per cache and run: stacked bars, a panel per cache, a row per run.

    Of more than 24 runs, those that went alike share a row, the rarest first, and bars are shares.

    Parameters
    ----------
    lookups : DataFrame or sequence of its rows
        Columns run, cache, outcome.
    runs : DataFrame or sequence of its rows
        Columns run, rank, start_time.
    """
    if not lookups:
        return empty("No lookup is recorded.")
    rows = folded_runs(((row.run, (row.cache, row.outcome)) for row in lookups), runs)
    placed = by_key(((row.cache, row.outcome), rows.row_of[row.run]) for row in lookups)
    caches = sorted({cache for cache, _ in placed}, key=lambda c: (c not in CACHES, c))
    there = {outcome for _, outcome in placed}
    present = [name for name in OUTCOME_COLOURS if name in there]
    top = legend_room(len(present)) + PANEL_TITLE
    figure = stacked_rows(rows.labels, top)
    for number, cache in enumerate(caches):
        width = (1 - _GAP * (len(caches) - 1)) / len(caches)
        axis = "x" if number == 0 else f"x{number + 1}"
        totals = Counter(row for (of, _), places in placed.items() if of == cache for row in places)
        left = number * (width + _GAP)
        what = "% of lookups" if rows.folded else "lookups"
        place = {"domain": [left, min(1, left + width)], "title": axis_title(what, 4)}
        shares = value_axis(range=[0, 100], nticks=6, **place)
        counts = count_axis(max(totals.values()), **place)
        figure.lay_out(**{f"xaxis{axis[1:]}": shares if rows.folded else counts})
        hits = 0
        for outcome in present:
            of_row = Counter(placed.get((cache, outcome), ()))
            hits += of_row.total() if outcome in ("hit", "would_hit") else 0
            at, colour = sorted(of_row), OUTCOME_COLOURS[outcome]
            said = {row: f"{cache}: {of_row[row]} of {totals[row]} {outcome}" for row in at}
            bars(
                figure,
                [100 * of_row[row] / totals[row] if rows.folded else of_row[row] for row in at],
                at,
                colour,
                [hover(rows.names[row], said[row]) for row in at],
                xaxis=axis,
                name=outcome,
                legendgroup=outcome,
                showlegend=False,
                text=[str(of_row[row]) for row in at] if len(rows.names) <= 24 else None,
                **inside_text(colour),
                customdata=[[rows.first[row], cache, outcome] for row in at],
            )
            if number == 0:
                figure.add(
                    "bar", x=[None], y=[None], orientation="h", name=outcome, legendgroup=outcome,
                    marker={"color": colour}, hoverinfo="skip",
                )  # fmt: skip
        panel_title(figure, f"<b>{shown(cache)}</b>  {hits:,} of {totals.total():,} hit", axis)
    note(figure, rows.remark)
    return figure


def trend(trend: Sequence[TrendRow]) -> Picture:
    """How starts went one after another: the hit rate, and what was compiled after misses, avoidable or not.

    The last 64 rows, in the order given.

    Parameters
    ----------
    trend : DataFrame or sequence of its rows
        The frame trend: start_time, label, commit, hit_rate, time_lost_ns, avoidable_ns.
    """
    if not trend:
        return empty("No start looked anything up.")
    rows = trend[-MOST_ROWS:]
    labels = [shown(_start(row)) for row in rows]
    lost = [row.time_lost_ns or 0 for row in rows]
    avoidable = [row.avoidable_ns or 0 for row in rows]
    longest_s = max(map(max, lost, avoidable)) / 1e9
    figure = stacked_rows(
        labels,
        legend_room(2) + PANEL_TITLE,
        xaxis=value_axis(range=[0, 100], ticksuffix=" %", nticks=6, domain=[0, 0.47]),
        xaxis2=time_axis(longest_s, domain=[0.53, 1]),
    )
    shares = [f"{percent(row.hit_rate)} of {plural(row.lookups, 'lookup')}" for row in rows]
    _part(figure, "x", "hit", GREEN, [100 * (row.hit_rate or 0) for row in rows], shares, labels)
    others = [max(0, a - b) for a, b in zip(lost, avoidable, strict=True)]
    is_timed = [row.time_lost_ns is not None or row.hits == row.lookups for row in rows]
    for name, colour, times in (
        ("known avoidable", VERMILLION, avoidable),
        ("other compiles after misses", GREY, others),
    ):
        told = zip(times, is_timed, strict=True)
        texts = [f"{duration(ns)} {name}" if timed else _NO_TIMES for ns, timed in told]
        _part(figure, "x2", name, colour, [ns / 1e9 for ns in times], texts, labels, showlegend=True)
    panel_title(figure, "<b>lookups that hit</b>")
    panel_title(figure, "<b>compiled after misses</b>", "x2")
    left_out = len(trend) - len(rows)
    note(figure, f"{plural(left_out, 'earlier one')} not shown" if left_out else "")
    return figure


def _start(row: TrendRow) -> str:
    """When it began, its commit or what else tells it from others; or how many there were."""
    when = "" if row.start_time is None else file_time(row.start_time)
    several = f"{row.starts} starts" if row.starts > 1 else ""
    return " · ".join(filter(None, (when[:10] if several else when, row.commit or row.label, several)))


def what_if_rates(rates: Sequence[WhatIfRate]) -> Picture:
    """Before and after a what-if: lookups by outcome, and compile time saved and lost.

    Parameters
    ----------
    rates : DataFrame or sequence of its rows
        The frame what_if_rates: two rows, before and after.
    """
    if not any(row.lookups for row in rates):
        return empty("There are no lookups to replay.")
    # A rate stands below its title: a pane beside another one is narrow.
    top = legend_room(len(rates)) + PANEL_TITLE + _LINE
    labels = [shown(row.when) for row in rates]
    longest_ns = max((row.time_saved_ns or 0) + (row.time_lost_ns or 0) for row in rates)
    figure = stacked_rows(
        labels,
        top,
        pixels=36,
        xaxis=count_axis(max(row.lookups for row in rates), domain=[0, 0.47]),
        xaxis2=time_axis(longest_ns / 1e9, domain=[0.53, 1]),
    )
    for name, colour, counts in _count_parts(rates):
        _part(figure, "x", name, colour, counts, [f"{n:,} {name}" for n in counts], labels)
    saved, lost = [row.time_saved_ns for row in rates], [row.time_lost_ns for row in rates]
    for times, name, colour in ((saved, "saved", GREEN), (lost, "lost", VERMILLION)):
        if any(times):
            texts = [f"{duration(ns)} {name}" for ns in times]
            _part(figure, "x2", name, colour, [(ns or 0) / 1e9 for ns in times], texts, labels)
    panel_title(figure, f"<b>lookups that hit</b><br>{_percents([row.hit_rate for row in rates])}")
    timed = any(row.time_hit_rate is not None for row in rates)
    rate = _percents([row.time_hit_rate for row in rates]) if timed else "no times recorded"
    panel_title(figure, f"<b>compile time saved</b><br>{rate}", "x2")
    return figure


def _count_parts(rows: Sequence[WhatIfRate]) -> list[tuple[str, str, list[int]]]:
    undecided = [row.undecided or 0 for row in rows]
    parts = [
        ("hit", GREEN, [row.hits for row in rows]),
        ("missed", VERMILLION, [row.misses - u for row, u in zip(rows, undecided, strict=True)]),
        ("missed, for all that is known", YELLOW, undecided),
        ("bypassed or disabled", GREY, [row.bypasses for row in rows]),
        ("outcome not seen", SKY, [row.unknown or 0 for row in rows]),
    ]
    return [part for part in parts if any(part[2])]


def _part(
    figure: Picture,
    axis: str,
    name: str,
    colour: str,
    amounts: list[Any],
    texts: list[str],
    labels: list[str],
    **trace: Any,
) -> None:
    hovers = [f"{label}: {text}" for label, text in zip(labels, texts, strict=True)]
    inside = [text if amount else "" for text, amount in zip(texts, amounts, strict=True)]
    look = {"showlegend": axis == "x", **inside_text(colour), **trace}
    bars(
        figure, amounts, list(range(len(amounts))), colour, hovers, xaxis=axis, name=name, text=inside, **look
    )


def _percents(rates: list[float | None]) -> str:
    return " → ".join(shown(percent(rate)) for rate in rates)
