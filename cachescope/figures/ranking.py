"""What costs the most, on top: causes of misses, and fields that would help if they did not count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from cachescope.analysis.rates import known_sum
from cachescope.figures.canvas import (
    AXIS,
    axis_title,
    bars,
    canvas,
    count_axis,
    empty,
    legend_room,
    note,
    time_axis,
)
from cachescope.figures.palette import AFFECTS_COLOURS, BY_NAME, GREY
from cachescope.figures.picture import Picture
from cachescope.figures.texts import hover, shown
from cachescope.frames.answer_rows import CauseRow
from cachescope.frames.replay_rows import SensitivityRow
from cachescope.verdict_kinds import KINDS, VERDICTS
from cachescope.wording import duration, listed, plural

_MOST: Final = 15
_PITCH: Final = 46
_LABEL: Final = 78


@dataclass(frozen=True, slots=True)
class _Bar:
    """One row: a name above a bar of time (or of misses, if no time is known)."""

    name: str
    kind: str
    colour: str
    time_ns: int | None
    misses: int
    hover: str
    custom: Any
    is_last: bool = False

    @property
    def text(self) -> str:
        return f"{plural(self.misses, 'miss')} · {_time(self.time_ns)}"


def causes(causes: Sequence[CauseRow]) -> Picture:
    """Misses and compile time lost by cause, the costliest on top: what to fix first.

    Bars are clickable: ``customdata`` holds the number of the cause.

    Parameters
    ----------
    causes : DataFrame or sequence of its rows
        The frame causes: cause, verdict, misses, runs, time_lost_ns, summary, advice.
    """
    if not causes:
        return empty("No miss is recorded: there is no cause to show.")
    made = [
        _Bar(
            name=row.summary,
            kind=row.verdict,
            colour=BY_NAME[KINDS[row.verdict, ""].colour],
            time_ns=row.time_lost_ns,
            misses=row.misses,
            hover=hover(
                row.summary,
                f"{row.verdict}: {VERDICTS[row.verdict]}",
                f"{plural(row.misses, 'miss')}, {_time(row.time_lost_ns, ' lost')}",
                "in runs " + listed(row.runs, 8) if len(row.runs) else None,
                row.advice,
            ),
            custom=row.cause,
        )
        for row in causes
    ]
    return _ranking(made, "compile time lost", ("cause", "causes"))


def sensitivity(sensitivity: Sequence[SensitivityRow]) -> Picture:
    """Which fields would help: the misses that hit when exactly these do not count, by the compile time they cost.

    What is the program itself comes last. The colour says what the fields affect. Bars are clickable: ``customdata`` holds the fields.

    Parameters
    ----------
    sensitivity : DataFrame or sequence of its rows
        The frame sensitivity: fields, misses_alone, time_alone_ns, needs_all, unknown, affects, safety, advice.
    """
    rows = [row for row in sensitivity if row.misses_alone]
    if not rows:
        return empty("No field would help: leaving any of them out of the keys turns no miss into a hit.")
    made = []
    for row in rows:
        affects, name = row.affects or "unknown", " + ".join(row.fields)
        made.append(
            _Bar(
                name=name,
                kind=str(affects),
                colour=AFFECTS_COLOURS.get(affects, GREY),
                time_ns=row.time_alone_ns,
                misses=row.misses_alone,
                hover=hover(
                    name,
                    f"{plural(row.misses_alone, 'miss')} would hit, {_time(row.time_alone_ns, ' saved')}",
                    "only when none of them counts" if row.needs_all else None,
                    f"not known of {plural(row.unknown, 'miss')}" if row.unknown else None,
                    f"affects: {affects}",
                    row.advice,
                ),
                # Unchanged, for click handlers; plotly shows none of it.
                custom=[str(field)[:1000] for field in row.fields],
                is_last=row.safety == "program",
            )
        )
    return _ranking(made, "compile time saved if it did not count", ("set of fields", "sets of fields"))


def _ranking(of: Sequence[_Bar], axis: str, what: tuple[str, str]) -> Picture:
    timed = any(bar.time_ns is not None for bar in of)
    ordered = sorted(of, key=lambda bar: (bar.is_last, -(bar.time_ns or 0), -bar.misses))
    top, rest = ordered[:_MOST], ordered[_MOST:]
    amounts = [(bar.time_ns or 0) / 1e9 if timed else bar.misses for bar in top]
    most = max(amounts) or 1
    range_of = [0, most * 1.32]
    amount = count_axis(int(most), range=range_of, title={"text": "misses (no times recorded)"})
    if timed:
        amount = time_axis(most, range=range_of, title=axis_title(axis))
    kinds = list(dict.fromkeys(bar.kind for bar in top))
    legend = legend_room(len(kinds))
    figure = canvas(
        legend + _PITCH * len(top) + AXIS,
        margin={"t": legend, "l": 12},
        barmode="overlay",
        xaxis=amount,
        yaxis={"range": [len(top) - 0.5, -0.5], "visible": False},
    )
    for kind in kinds:
        at = [i for i, bar in enumerate(top) if bar.kind == kind]
        bars(
            figure,
            [amounts[i] for i in at],
            # Below the middle of its row: the name is above it.
            [i + 0.18 for i in at],
            top[at[0]].colour,
            [top[i].hover for i in at],
            width=[0.36] * len(at),
            name=shown(kind),
            # Plotly leaves the legend out if there is one kind.
            showlegend=True,
            text=[top[i].text for i in at],
            textposition="outside",
            cliponaxis=False,
            customdata=[top[i].custom for i in at],
        )
    for i, bar in enumerate(top):
        figure.annotate(
            text=shown(bar.name, _LABEL), xref="paper", x=0, xanchor="left", y=i, yanchor="bottom", yshift=-1,
        )  # fmt: skip
    if rest:
        misses = plural(sum(bar.misses for bar in rest), "miss")
        time = _time(known_sum(bar.time_ns for bar in rest))
        note(figure, f"not shown: {plural(len(rest), *what)} of less time, {misses}, {time}")
    return figure


def _time(ns: int | None, what: str = "") -> str:
    return "time not recorded" if ns is None else f"{duration(ns)}{what}"
