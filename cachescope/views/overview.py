"""The pane Overview: what was avoidable, what to fix first, how each run went, when, and what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Final

import ipywidgets
import pandas as pd
from traitlets.utils.bunch import Bunch

from cachescope.answers.chosen import Chosen
from cachescope.answers.costs import headline
from cachescope.answers.read import Read
from cachescope.figures.canvas import empty
from cachescope.figures.compile_time import phases_of_slowest
from cachescope.figures.graph_grid import runs_by_graph
from cachescope.figures.over_time import timeline
from cachescope.figures.picture import Picture
from cachescope.figures.rates import outcomes
from cachescope.report.blocks import Block, Group
from cachescope.report.layout import Line
from cachescope.report.page.file import wrong_blocks
from cachescope.report.rates import rate_numbers, trend_blocks
from cachescope.report.vllm import vllm_lines
from cachescope.report.why_missed import answer_blocks, failed_lines, first_cards
from cachescope.terms import HOW_TO_RECORD
from cachescope.views.controls import (
    InPython,
    Pane,
    Shows,
    button,
    columns,
    heading,
    markup,
    row,
    toggle_buttons,
)
from cachescope.views.lookups import between
from cachescope.views.plot import Plot, Tabled, first_number, pictured
from cachescope.views.state import State

_GRAPHS: Final = ["lookup", "run", "cache", "direction", "compile_id", "function", "outcome"]
_CLOCKS: Final = (("Time of day", "wall"), ("Since each run began", "run"))
_HINT: Final = "A mark opens Why. Dragging zooms, as do Shift with arrow keys and then Enter; with the time of day, every pane then shows that span alone."
# Time of day is shown first if it spans no more than so many times the longest run.
_FILLED: Final = 3
_COLUMNS: Final = [
    "lookup", "run", "time", "end_time", "cache", "compile_id", "function", "outcome", "time_taken_ns",
]  # fmt: skip


class OverTime(Pane):
    """The timeline, with its clock."""

    def __init__(self, scope: Read, state: State, on_click: Callable[[object], None]) -> None:
        self._scope, self._state, self._chosen = scope, state, Chosen(scope)
        guarded = state.guarded
        self.clock = toggle_buttons("Clock", options=_CLOCKS, value=_first_clock(scope.lookups))
        self._tabled = Tabled(
            lambda: timeline(scope.shown.rows, scope.tables.runs.rows, clock=self.clock.value),
            "lookups over time",
            lambda: self._chosen.lookups[_COLUMNS],
            guarded(on_click),
        )
        self.plot = self._tabled.plot
        self.every = button("Zoom out", self._show_all, "Show all times again, here and in every pane")
        self.clock.observe(guarded(self._changed_clock), "value")
        self.plot.observe(guarded(self._zoomed), "zoomed")
        state.observe(guarded(self._cleared), "span")
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
            # Axes of dates count in milliseconds.
            first, last = (round(at * 1e6) for at in sorted(change["new"]))
            times = self._scope.lookups["time"]
            if first <= times.max().value and times.min().value <= last:
                self._state.span = first, last
            else:
                # The figure still had the other clock.
                self.plot.zoomed = []
        self._say()

    def narrow(self, chosen: Chosen) -> None:
        """List only some lookups. The figure is already zoomed, and keeps the others."""
        self._chosen = chosen
        self._tabled.list_again()

    def _cleared(self, change: Bunch) -> None:
        if change["new"] is None:
            self.plot.zoomed = []
        self._say()

    def _say(self) -> None:
        self.every.disabled = self._state.span is None and not self.plot.zoomed


def _first_clock(lookups: pd.DataFrame) -> str:
    """The time of day if runs fill it, such as ranks that started together. Over a whole day, runs would be dots."""
    times = lookups.groupby("run")["time"].agg(["min", "max"]).dropna()
    if times.empty:
        return "run"
    longest = (times["max"] - times["min"]).max()
    return "wall" if times["max"].max() - times["min"].min() <= _FILLED * longest else "run"


class Overview(Shows):
    """What was avoidable, where the time went, what to fix first; then how each run went."""

    beyond = "Phases, folders of vLLM, problems and possible false hits are of all that was read."

    def words(self) -> Iterable[Block]:
        """Why no lookup was read, and what was."""
        scope = self._scope
        return () if scope.facts.lookups else (*answer_blocks(scope), *_what_now(scope), *_wrong(scope))

    def parts(self) -> Iterable[ipywidgets.Widget]:
        """The answer and the timeline, then what is wrong."""
        scope, state, guarded = self._scope, self._state, self._state.guarded
        self.numbers = markup()
        self.cards = markup(*first_cards(self._chosen))
        self.outcomes = Tabled(
            partial(self._drawn, outcomes),
            "outcomes by cache and run",
            lambda: self._chosen.hit_rates(["run", "cache"]),
            guarded(self._clicked_outcome),
        )
        self.over_time = OverTime(scope, state, self._clicked_lookup)
        self.graphs = Tabled(
            partial(self._drawn, runs_by_graph),
            "runs by graphs",
            lambda: self._chosen.lookups[_GRAPHS],
            guarded(self._clicked_lookup),
        )
        path = []
        if of_phases := scope.phases_read[0].rows:
            draw = partial(phases_of_slowest, of_phases, scope.tables.runs.rows)
            path = [heading("Where the time went"), Plot(draw, "self time of each phase, by run")]
        fixes = (heading("What to fix first", "A title opens Why."), self.cards)
        first = Pane(*fixes, heading("Runs by graphs", "A cell opens Why."), self.graphs)
        rates = heading("By run and cache", "A bar opens its lookups.")
        second = Pane(*path, rates, self.outcomes)
        of_vllm = tuple(vllm_lines(scope))
        vllm = [Group("", "vLLM's torch_compile_cache", of_vllm)] if of_vllm else []
        told = pictured([*trend_blocks(scope), *vllm, *_wrong(scope)])
        self._count()
        return [self.numbers, columns(first, second), self.over_time, *told]

    def in_python(self) -> InPython:
        """The causes, or the misses of the chosen lookups."""
        if (span := self._state.span) is None or self._chosen.is_all:
            return "scope.causes", lambda: self._scope.causes
        chosen = f'scope.lookups.loc[{between("scope.lookups", span)}, "lookup"]'
        line = f'scope.misses.loc[scope.misses["lookup"].isin({chosen})].reset_index(drop=True)'
        return line, lambda: self._chosen.rows_of_each(self._scope.misses).reset_index(drop=True)

    def show_chosen(self) -> None:
        """Count only the chosen lookups."""
        self._count()
        self.cards.show(*first_cards(self._chosen))
        self.over_time.narrow(self._chosen)
        self.outcomes.redraw()
        self.graphs.redraw()

    def _count(self) -> None:
        rates = (f"{label}: {number} ({of})" for label, number, of in rate_numbers(self._chosen)[:3])
        said = [Line(headline(self._chosen), style="bold"), Line(" · ".join(rates), style="dim")]
        runs = None if self._chosen.is_all else {row.run for row in self._chosen.rows}
        self.numbers.show(*failed_lines(self._scope, runs), *said)

    def _drawn(self, figure: Callable[..., Picture]) -> Picture:
        if not len(self._chosen) and not self._chosen.is_all:
            return empty("No lookup is of this time.")
        return figure(self._chosen.rows, self._scope.tables.runs.rows)

    def _clicked_outcome(self, data: object) -> None:
        if isinstance(data, list) and len(data) == 3:
            self._state.show_lookups(run=first_number(data), cache=data[1], outcome=data[2])

    def _clicked_lookup(self, data: object) -> None:
        lookup = first_number(data)
        if lookup is not None and lookup in self._scope.facts.lookups:
            self._state.show_why(lookup)


def _wrong(scope: Read) -> list[Block]:
    nothing = "No problems while reading, and no key that seems to stand for two things."
    return [*wrong_blocks(scope)] or [Line(nothing, style="dim")]


def _what_now(scope: Read) -> Iterator[Line]:
    if scope.facts.entries:
        yield Line("The pane Entries shows what is in the cache directory.")
    if scope.tables.contexts.rows:
        yield Line("The pane Machines shows the contexts that were captured.")
    if not scope.facts.runs:
        yield Line(f"To see why lookups miss, {HOW_TO_RECORD}.")
