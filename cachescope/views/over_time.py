"""Lookups over time: the clock can be chosen, and a span of the day that is dragged over filters what is listed."""

from __future__ import annotations

from typing import Final

import pandas as pd
from traitlets.utils.bunch import Bunch

from cachescope.answers.chosen import Chosen
from cachescope.answers.read import Read
from cachescope.figures.over_time import timeline
from cachescope.json_types import JsonObject
from cachescope.views.controls import Pane, button, heading, row, toggle_buttons
from cachescope.views.plot import Plot, Tabled
from cachescope.views.state import State

_CLOCKS: Final = (("Time of day", "wall"), ("Since each run began", "run"))
_HINT: Final = (
    "A mark opens Why. Dragging zooms, as do Shift with arrow keys and then Enter;"
    " with the time of day, every pane then shows that span alone."
)
# The clock of the day is the first to be seen if it is no longer than so many of the longest run.
_FILLED: Final = 3
_COLUMNS: Final = [
    "lookup", "run", "time", "end_time", "cache", "compile_id", "function", "outcome", "time_taken_ns",
]  # fmt: skip


class OverTime(Pane):
    """The timeline, with its clock."""

    def __init__(self, scope: Read, state: State) -> None:
        self._scope, self._state, self._chosen = scope, state, Chosen(scope)
        guarded = state.guarded
        self.clock = toggle_buttons("Clock", options=_CLOCKS, value=_first_clock(scope.lookups))
        self.plot = Plot(
            lambda dark: timeline(
                scope.shown.rows, scope.tables.runs.rows, clock=self.clock.value, dark=dark
            ),
            "lookups over time",
            self._clicked,
            guarded,
        )
        self.every = button("Zoom out", self._show_all, "Show all times again, here and in every pane")
        self.clock.observe(guarded(self._changed_clock), "value")
        self.plot.observe(guarded(self._zoomed), "zoomed")
        state.observe(guarded(self._cleared), "span")
        self._tabled = Tabled(self.plot, lambda: self._chosen.lookups[_COLUMNS])
        super().__init__(heading("Over time", _HINT), row(self.clock, self.every), self._tabled)
        self._say()

    def _changed_clock(self, change: Bunch) -> None:
        self._show_all()
        self.plot.redraw()

    def _show_all(self) -> None:
        self.plot.zoomed = []
        self._state.span = None

    def _zoomed(self, change: Bunch) -> None:
        if len(change["new"]) != 2 or self.clock.value != "wall":
            self._state.span = None
        else:
            # An axis of dates counts in milliseconds.
            first, last = (round(at * 1e6) for at in sorted(change["new"]))
            times = self._scope.lookups["time"]
            if first <= times.max().value and times.min().value <= last:
                self._state.span = first, last
            else:
                # The figure of the other clock was still there.
                self.plot.zoomed = []
        self._say()

    def narrow(self, chosen: Chosen) -> None:
        """List some lookups alone; the figure is zoomed already, and keeps the others."""
        self._chosen = chosen
        self._tabled.list_again()

    def _cleared(self, change: Bunch) -> None:
        if change["new"] is None:
            self.plot.zoomed = []
        self._say()

    def _say(self) -> None:
        self.every.disabled = self._state.span is None and not self.plot.zoomed

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
