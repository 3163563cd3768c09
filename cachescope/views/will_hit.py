"""Whether the process of a run would find the entries of the directories read."""

from __future__ import annotations

import ipywidgets
import pandas as pd

from cachescope.answers.comparison import Comparison
from cachescope.answers.predictions import predictions_of_run
from cachescope.answers.read import Read
from cachescope.figures.texts import run_labels
from cachescope.report.comparison import comparison_lines
from cachescope.views import html
from cachescope.views.controls import Pane, markup
from cachescope.views.state import State

_NOTE = "A prediction for a process that was recorded, from the fields of its keys; it assumes the program that made each entry."


class WillHit(Pane):
    """Choose a process; see its prediction for every entry."""

    def __init__(self, scope: Read, state: State) -> None:
        self._scope = scope
        looked_up = scope.asked_torch
        if not looked_up or not scope.facts.entries:
            super().__init__(
                [markup(html.title("Will it hit") + html.paragraph(_missing(bool(looked_up)), "faint"))]
            )
            return
        labels = run_labels(scope.runs)
        self.run = ipywidgets.Dropdown(
            options=[(labels[run], run) for run in looked_up],
            value=looked_up[-1],
            description="A process like",
            tooltip="",  # without it, the page says null
            style={"description_width": "initial"},
            layout=ipywidgets.Layout(width="auto", max_width="420px"),
        )
        self.answer = markup()
        self.run.observe(state.guarded(self._show), "value")
        super().__init__([markup(html.title("Will it hit", _NOTE)), self.run, self.answer])
        self._show()

    def frame(self) -> pd.DataFrame:
        """The predictions, as returned by ``cachescope.will_hit(scope, scope, run=…)``."""
        return predictions_of_run(self._scope, self.run.value)

    def _show(self, change: object = None) -> None:
        found = Comparison("the directory", "the process", predictions=self.frame())
        self.answer.value = html.lines(comparison_lines(found))


def _missing(has_lookups: bool) -> str:
    lacks = "a cache directory" if has_lookups else "the trace or log of a run"
    return (
        f"Read {lacks} as well, and every entry is compared with the process;"
        " cachescope.will_hit does it for a snapshot that was captured on another machine."
    )
