"""The panes of `cachescope.report.subjects`: what each tells in every form."""

from __future__ import annotations

import pandas as pd

from cachescope.answers.read import Read
from cachescope.report.blocks import Group
from cachescope.report.subjects import SUBJECTS, told
from cachescope.views.controls import Shows, markup
from cachescope.views.state import State

_LISTED = 100


class Told(Shows):
    """An answer, by the name of its pane."""

    beyond = "This is of all that was read."

    def __init__(self, scope: Read, state: State, pane: str) -> None:
        self._scope, self._name = scope, pane.lower()
        self.query = f"scope.{self._name}"
        blocks = told(self._name).blocks(scope, _LISTED, self.query)
        super().__init__(markup(Group("", SUBJECTS[self._name].question, tuple(blocks))))

    def frame(self) -> pd.DataFrame:
        """The rows that it is of."""
        found: pd.DataFrame = getattr(self._scope, self._name)
        return found
