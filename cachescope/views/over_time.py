"""Lookups over time: the clock can be chosen, and a span of the day that is dragged over filters what is listed."""

from __future__ import annotations

from typing import Final

import ipywidgets
import pandas as pd
from traitlets.utils.bunch import Bunch

from cachescope import figures
from cachescope.answers.read import Read
from cachescope.json_types import JsonObject
from cachescope.views import html
from cachescope.views.controls import Pane, button, markup, row
from cachescope.views.plot import Plot
from cachescope.views.state import State
from cachescope.views.tabled import Tabled
from cachescope.wording import clock

_CLOCKS: Final = (("Time of day", "wall"), ("Since each run began", "run"))
_HINT: Final = "A mark opens Why. Dragging zooms; with the time of day, Lookups and the compiles of Time then hold that span alone."
# The clock of the day is the first to be seen if it is no longer than so many of the longest run.
_FILLED: Final = 3
_COLUMNS: Final = [
    "lookup",
    "run",
    "time",
    "end_time",
    "cache",
    "compile_id",
    "function",
    "outcome",
    "time_taken_ns",
]


class OverTime(Pane):
    """The timeline, with its clock.

    Parameters
    ----------
    scope : Read
    state : State
    """

    def __init__(self, scope: Read, state: State) -> None:
        self._scope, self._state = scope, state
        guarded = state.guarded
        self.clock = ipywidgets.ToggleButtons(
            options=_CLOCKS,
            value=_first_clock(scope.lookups),
            description="Clock",
            style={"button_width": "auto", "description_width": "initial"},
        )
        self.plot = Plot(
            lambda dark: figures.timeline(scope.lookups, scope.runs, clock=self.clock.value, dark=dark),
            "lookups over time",
            self._clicked,
            guarded,
        )
        self.span = markup()
        self.every = button("All times", self._show_all, "Zoom out, and list all lookups again")
        self.clock.observe(guarded(self._changed_clock), "value")
        self.plot.observe(guarded(self._zoomed), "zoomed")
        state.observe(guarded(self._say), "span")
        super().__init__(
            [
                markup(html.title("Over time", _HINT)),
                row(self.clock, self.span, self.every),
                Tabled(self.plot, lambda: scope.lookups[_COLUMNS]),
            ]
        )
        self._say()

    def _changed_clock(self, change: Bunch) -> None:
        self._show_all()
        self.plot.redraw()

    def _show_all(self) -> None:
        self.plot.zoomed = []
        self._state.span = None

    def _zoomed(self, change: Bunch) -> None:
        # An axis of dates counts in milliseconds.
        is_span = self.clock.value == "wall" and len(change["new"]) == 2
        self._state.span = tuple(round(at * 1e6) for at in sorted(change["new"])) if is_span else None
        self._say()

    def _say(self, change: object = None) -> None:
        span = self._state.span
        self.span.value = html.paragraph(f"{clock(span[0])} to {clock(span[1])} UTC") if span else ""
        self.every.disabled = span is None and not self.plot.zoomed

    def _clicked(self, clicked: JsonObject) -> None:
        lookup = clicked.get("data")
        if isinstance(lookup, int) and lookup in self._scope.facts.lookups:
            self._state.show_why(lookup)


def _first_clock(lookups: pd.DataFrame) -> str:
    """The time of day where runs fill it: ranks that started together. Runs of a whole day would be dots on it."""
    times = lookups.groupby("run")["time"].agg(["min", "max"]).dropna()
    if times.empty:
        return "run"
    longest = (times["max"] - times["min"]).max()
    return "wall" if times["max"].max() - times["min"].min() <= _FILLED * longest else "run"
