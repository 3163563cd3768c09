"""Placeholders for a pane that is not made yet, or that could not be made."""

from __future__ import annotations

import ipywidgets
import pandas as pd

from cachescope.answers.chosen import Chosen
from cachescope.views import html
from cachescope.views.controls import Pane, markup


def waiting() -> ipywidgets.HTML:
    """Until it is made."""
    return markup(html.paragraph("One moment …", "faint"))


class Failed(Pane):
    """Why it could not be made."""

    query = "scope"
    beyond = ""

    def __init__(self, error: Exception) -> None:
        self._reason = f"{type(error).__name__}: {error}"
        super().__init__([markup(html.paragraph(f"This pane could not be made: {self._reason}", "error"))])

    def frame(self) -> pd.DataFrame:
        """An empty frame, because there is no data behind it."""
        return pd.DataFrame()

    def narrow(self, chosen: Chosen) -> None:
        """Nothing: there is no lookup in it."""
