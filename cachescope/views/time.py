"""The pane Time: where the time went, process by process, and what was compiled when."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, TypeVar

import pandas as pd

from cachescope.answers.chosen import Chosen, is_within
from cachescope.answers.names import run_name
from cachescope.answers.read import Read
from cachescope.answers.time_spent import TimeSpent
from cachescope.columns import frame_of
from cachescope.figures.compile_time import compiles, phases
from cachescope.frames.compile_rows import CompileRow, PhaseRow
from cachescope.grouping import by_key
from cachescope.json_types import JsonObject
from cachescope.report.tables import Column, Sorted, shared, timed
from cachescope.report.time_spent import time_lines
from cachescope.views.controls import Shows, choice, heading, markup, row
from cachescope.views.plot import Plot, Tabled, first_number
from cachescope.views.state import State
from cachescope.views.table import ListedRows, Table
from cachescope.wording import harmless

OfRun = TypeVar("OfRun", PhaseRow, CompileRow)

# Of the rows of `_phase_rows`.
_PHASES: Final = (
    Column("Phase", "text", lambda row: harmless(row[0])),
    Column("Event", "text", lambda row: harmless(row[1])),
    Column("Events", "number", lambda row: Sorted(f"{row[2]:,}", row[2])),
    Column("Self time", "number", lambda row: timed(row[3])),
    Column("Share", "number", lambda row: shared(row[4])),
)
_COMPILES: Final = [
    "run", "compile_id", "kind", "function", "start_time", "time_taken_ns", "error", "lookups", "hits",
]  # fmt: skip


class Time(Shows):
    """The phases of all processes or of the chosen one, and its compiles."""

    beyond = "Compiles are those that began in it; phases are of whole processes."

    def __init__(self, scope: Read, state: State) -> None:
        self._scope, self._state = scope, state
        self.spent = TimeSpent.of(scope)
        if not self.spent.runs:
            super().__init__(markup(*time_lines(self.spent)))
            return
        runs = [(run_name(row), run) for run, row in scope.facts.runs.items()]
        guarded = state.guarded
        self.phases_plot = Plot(
            lambda dark: phases(self._of_run(scope.phases_read[0].rows), scope.tables.runs.rows, dark=dark),
            "self time of each phase, by run",
            self._clicked_phase,
            guarded,
        )
        self.compiles_plot = Plot(
            lambda dark: compiles(self._compiles(), scope.tables.runs.rows, dark=dark),
            "compiles over time",
            self._clicked_compile,
            guarded,
        )
        self.compiles = Tabled(self.compiles_plot, lambda: frame_of(self._compiles(), CompileRow)[_COMPILES])
        self.phases = Table(ListedRows(_PHASES, []), "phases and their events", page_size=20)
        self.said = markup()
        state.observe(guarded(self._show), "run")
        super().__init__(
            row(choice(state, "run", "Run", runs)),
            heading("Where the time went", "A bar chooses its run, here and in Lookups."),
            self.phases_plot,
            self.said,
            heading("Compiles", "A bar opens the lookups of its compile."),
            self.compiles,
            heading("Phases and their events"),
            self.phases,
        )
        self._show()

    @property
    def query(self) -> str:
        """The line of Python that returns the phases shown."""
        run = self._state.run
        return "scope.phases" if run is None else f"scope.phases.query('run == {run}').reset_index(drop=True)"

    def frame(self) -> pd.DataFrame:
        """The phases of the chosen run, or of all."""
        return frame_of(self._of_run(self._scope.phases_read[0].rows), PhaseRow)

    def narrow(self, chosen: Chosen) -> None:
        """Draw the compiles of the span alone."""
        if self.spent.runs:
            self.compiles.redraw()

    def _of_run(self, rows: list[OfRun]) -> list[OfRun]:
        run = self._state.run
        return rows if run is None else [row for row in rows if row.run == run]

    def _compiles(self) -> list[CompileRow]:
        """The compiles of the chosen run, those that began in the chosen span."""
        compiles, span = self._of_run(self._scope.compiles_read[0].rows), self._state.span
        return compiles if span is None else [row for row in compiles if is_within(row.start_time, span)]

    def _clicked_phase(self, clicked: JsonObject) -> None:
        run = first_number(clicked.get("data"))
        if run is not None and run in self._scope.facts.runs:
            self._state.run = None if self._state.run == run else run

    def _clicked_compile(self, clicked: JsonObject) -> None:
        data = clicked.get("data")
        if isinstance(data, list) and len(data) == 2 and isinstance(data[1], str):
            self._state.show_lookups(run=first_number(data), text=data[1])

    def _show(self, change: object = None) -> None:
        phases_shown = self._of_run(self._scope.phases_read[0].rows)
        self.phases.show(ListedRows(_PHASES, list(enumerate(_phase_rows(phases_shown)))))
        self.said.show(*time_lines(self._spent()))
        self.phases_plot.redraw()
        self.compiles.redraw()

    def _spent(self) -> TimeSpent:
        """What is to be said of the chosen run, or of all."""
        spent, run = self.spent, self._state.run
        if run is None:
            return spent
        runs = tuple(one for one in spent.runs if one.run == run)
        members = tuple(one for one in spent.members if one.time.run == run)
        return replace(spent, runs=runs, members=members, without=(), contrast=None, starts=())


def _phase_rows(phases: list[PhaseRow]) -> list[tuple[str, str, int, int, float | None]]:
    """Phase, event, how many there are, their self time and its share; the longest first."""
    total = sum(row.self_time_ns for row in phases)
    made = []
    for (phase, event), rows in sorted(by_key(((one.phase, one.event), one) for one in phases).items()):
        taken = sum(row.self_time_ns for row in rows)
        made.append((phase, event, sum(row.count for row in rows), taken, taken / total if total else None))
    return sorted(made, key=lambda row: -row[3])
