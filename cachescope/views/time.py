"""The pane Time: where the time went, process by process, and what was compiled when."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final, TypeVar

import ipywidgets

from cachescope.answers.chosen import is_within
from cachescope.answers.names import run_name
from cachescope.answers.read import Read
from cachescope.answers.time_spent import TimeSpent
from cachescope.columns import frame_of
from cachescope.figures.compile_time import compiles, phases
from cachescope.frames.compile_rows import CompileRow, PhaseRow
from cachescope.report.blocks import Block
from cachescope.report.time_spent import time_blocks
from cachescope.views.controls import InPython, Shows, choice, heading, markup, row
from cachescope.views.plot import Tabled, first_number
from cachescope.views.state import State

OfRun = TypeVar("OfRun", PhaseRow, CompileRow)

_COMPILES: Final = [
    "run", "compile_id", "kind", "function", "start_time", "time_taken_ns", "error", "lookups", "hits",
]  # fmt: skip


class Time(Shows):
    """The phases of all processes or of the chosen one, and its compiles."""

    beyond = "Compiles are those that began in it; phases are of whole processes."

    def __init__(self, scope: Read, state: State) -> None:
        self.spent = TimeSpent.of(scope)
        super().__init__(scope, state)

    def words(self) -> Iterable[Block]:
        """That there are no events."""
        return () if self.spent.runs else time_blocks(self.spent)

    def parts(self) -> Iterable[ipywidgets.Widget]:
        """The phases, what is to be said of them, and the compiles."""
        scope, state, guarded = self._scope, self._state, self._state.guarded
        runs = [(run_name(scope.facts, run), run) for run in scope.facts.runs]
        self.phases = Tabled(
            lambda: phases(self._of_run(scope.phases_read[0].rows), scope.tables.runs.rows),
            "self time of each phase, by run",
            lambda: self.frame().sort_values("self_time_ns", ascending=False),
            guarded(self._clicked_phase),
        )
        self.compiles = Tabled(
            lambda: compiles(self._compiles(), scope.tables.runs.rows),
            "compiles over time",
            lambda: frame_of(self._compiles(), CompileRow)[_COMPILES],
            guarded(self._clicked_compile),
        )
        self.said = markup()
        state.observe(guarded(self._show), "run")
        self._show()
        where = heading("Where the time went", "A bar chooses its run, here and in Lookups.")
        when = heading("Compiles", "A bar opens the lookups of its compile.")
        chosen = row(choice(state, "run", "Run", runs))
        return [chosen, where, self.phases, self.said, when, self.compiles]

    def in_python(self) -> InPython:
        """The phases of the chosen run, or of all."""
        run = self._state.run
        line = "scope.phases" if run is None else f"scope.phases.query('run == {run}').reset_index(drop=True)"
        return line, lambda: frame_of(self._of_run(self._scope.phases_read[0].rows), PhaseRow)

    def show_chosen(self) -> None:
        """Draw the compiles of the span alone."""
        self.compiles.redraw()

    def _of_run(self, rows: list[OfRun]) -> list[OfRun]:
        run = self._state.run
        return rows if run is None else [row for row in rows if row.run == run]

    def _compiles(self) -> list[CompileRow]:
        """The compiles of the chosen run, those that began in the chosen span."""
        compiles, span = self._of_run(self._scope.compiles_read[0].rows), self._state.span
        return compiles if span is None else [row for row in compiles if is_within(row.start_time, span)]

    def _clicked_phase(self, data: object) -> None:
        if (run := first_number(data)) in self._scope.facts.runs:
            self._state.run = None if self._state.run == run else run

    def _clicked_compile(self, data: object) -> None:
        if isinstance(data, list) and len(data) == 2 and isinstance(data[1], str):
            self._state.show_lookups(run=first_number(data), text=data[1])

    def _show(self, change: object = None) -> None:
        self.said.show(*time_blocks(self._spent()))
        self.phases.redraw()
        self.compiles.redraw()

    def _spent(self) -> TimeSpent:
        """What is to be said of the chosen run, or of all."""
        spent, run = self.spent, self._state.run
        if run is None:
            return spent
        runs = tuple(one for one in spent.runs if one.run == run)
        members = tuple(one for one in spent.members if one.run == run)
        return replace(spent, runs=runs, members=members, without=(), contrast=None, starts=())
