"""The pane Time: where the time went, process by process, and what was compiled when."""

from __future__ import annotations

from typing import Final

import pandas as pd

from cachescope.answers.chosen import Chosen
from cachescope.answers.names import run_name
from cachescope.answers.read import Read
from cachescope.answers.time_spent import TimeSpent
from cachescope.figures.compile_time import compiles, phases
from cachescope.json_types import JsonObject
from cachescope.report.layout import Line, rest
from cachescope.report.tables import TIMES, Column, Sorted, shared, timed
from cachescope.report.time_spent import besides_text, said_texts
from cachescope.views.coded_columns import within
from cachescope.views.controls import Markup, Pane, choice, heading, markup, row, sentence
from cachescope.views.plot import Plot, Tabled, first_number
from cachescope.views.state import State
from cachescope.views.table import ListedRows, Table
from cachescope.wording import harmless

_NOTHING: Final = (
    "No trace with events was read: they are in the files that torch writes to the folder TORCH_TRACE names."
)
_MOST_PROBLEMS: Final = 10
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


class Time(Pane):
    """The phases of all processes or of the chosen one, and its compiles."""

    beyond = "Compiles are those that began in it; phases are of whole processes."

    def __init__(self, scope: Read, state: State) -> None:
        self._scope, self._state = scope, state
        self.spent = TimeSpent.of(scope)
        if not self.spent.runs:
            super().__init__(sentence(_NOTHING), self._problems())
            return
        runs = [(run_name(row), run) for run, row in scope.facts.runs.items()]
        guarded = state.guarded
        self.phases_plot = Plot(
            lambda dark: phases(self.frame(), scope.runs, dark=dark),
            "self time of each phase, by run",
            self._clicked_phase,
            guarded,
        )
        self.compiles_plot = Plot(
            lambda dark: compiles(self._compiles(), scope.runs, dark=dark),
            "compiles over time",
            self._clicked_compile,
            guarded,
        )
        self.compiles = Tabled(self.compiles_plot, lambda: self._compiles()[_COMPILES])
        self.readings = Table(
            ListedRows(TIMES, [(one.run, one) for one in self.spent.runs]),
            "what caches could do about it, by run",
            on_choose=guarded(self._choose),
            page_size=12,
        )
        self.phases = Table(ListedRows(_PHASES, []), "phases and their events", page_size=20)
        self.said = markup()
        state.observe(guarded(self._show), "run")
        super().__init__(
            row(choice(state, "run", "Run", runs)),
            self.said,
            heading("Where the time went", "A bar or a row chooses its run, here and in Lookups."),
            self.phases_plot,
            self.readings,
            heading("Compiles", "A bar opens the lookups of its compile."),
            self.compiles,
            heading("Phases and their events"),
            self.phases,
            self._problems(),
        )
        self._show()

    @property
    def query(self) -> str:
        """The line of Python that returns the phases shown."""
        run = self._state.run
        return "scope.phases" if run is None else f"scope.phases.query('run == {run}').reset_index(drop=True)"

    def frame(self) -> pd.DataFrame:
        """The phases of the chosen run, or of all."""
        return self._of_run(self._scope.phases)

    def narrow(self, chosen: Chosen) -> None:
        """Draw the compiles of the span alone."""
        if self.spent.runs:
            self.compiles.redraw()

    def _of_run(self, frame: pd.DataFrame) -> pd.DataFrame:
        run = self._state.run
        return frame if run is None else frame[frame["run"] == run].reset_index(drop=True)

    def _compiles(self) -> pd.DataFrame:
        """The compiles of the chosen run, those that began in the chosen span."""
        compiles, span = self._of_run(self._scope.compiles), self._state.span
        return compiles if span is None else compiles[within(compiles["start_time"], span)]

    def _choose(self, run: int) -> None:
        self._state.run = None if self._state.run == run else run

    def _clicked_phase(self, clicked: JsonObject) -> None:
        run = first_number(clicked.get("data"))
        if run is not None and run in self._scope.facts.runs:
            self._choose(run)

    def _clicked_compile(self, clicked: JsonObject) -> None:
        data = clicked.get("data")
        if isinstance(data, list) and len(data) == 2 and isinstance(data[1], str):
            self._state.show_lookups(run=first_number(data), text=data[1])

    def _show(self, change: object = None) -> None:
        self.phases.show(ListedRows(_PHASES, list(enumerate(_phase_rows(self.frame())))))
        self.said.show(*map(Line, self._sentences()))
        self.phases_plot.redraw()
        self.compiles.redraw()

    def _sentences(self) -> list[str]:
        spent, run = self.spent, self._state.run
        if run is not None:
            mine = [one for one in spent.runs if one.run == run]
            if not mine:
                return [f"{run_name(self._scope.facts.runs[run])}: no trace with events was read."]
            besides = besides_text(mine[0].besides, mine[0].readings.total_ns)
            return [f"{besides[:1].upper()}{besides[1:]}."] if besides else []
        return said_texts(spent)

    def _problems(self) -> Markup:
        problems = self._scope.phase_problems
        texts = zip(problems["source"].tolist(), problems["message"].tolist(), strict=True)
        # One file may be the source of many processes.
        every = list(dict.fromkeys(f"{source}: {message}" for source, message in texts))
        shown = [Line(harmless(text), style="red") for text in every[:_MOST_PROBLEMS]]
        return markup(*shown, *rest(len(every) - _MOST_PROBLEMS, indent=0))


def _phase_rows(phases: pd.DataFrame) -> list[tuple[str, str, int, int, float | None]]:
    """Phase, event, how many there are, their self time and its share; the longest first."""
    sums = phases.groupby(["phase", "event"], as_index=False)[["count", "self_time_ns"]].sum()
    ordered = sums.sort_values("self_time_ns", ascending=False, kind="stable")
    total = int(ordered["self_time_ns"].sum())
    rows = zip(*(ordered[name].tolist() for name in ("phase", "event", "count", "self_time_ns")), strict=True)
    return [(*row, row[3] / total if total else None) for row in rows]
