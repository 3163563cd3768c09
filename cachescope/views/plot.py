"""A figure in the browser that is made when it is seen, follows the theme and reports clicks.

It is drawn without plotly.js, whose five megabytes take a browser seconds, as the figures of a report are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import traitlets

from cachescope.figures.javascript import drawing_js
from cachescope.json_types import JsonObject
from cachescope.views.bare import Control
from cachescope.views.scripts import STYLE, script

if TYPE_CHECKING:
    import plotly.graph_objects as go


class Plot(Control):
    """A figure, made for the theme of the page.

    Parameters
    ----------
    make : callable
        Makes the figure; called with whether the theme is dark, when the figure is first seen.
    label : str
        What the figure shows, for screen readers.
    on_click : callable, optional
        Called with the clicked point: ``x``, ``y``, ``label``, ``curve``, ``index`` and ``data``, its customdata.
    guarded : callable, optional
        Wraps calls from the page, to show their errors.
    """

    _esm = drawing_js() + script("plot.js")
    _css = STYLE

    label = traitlets.Unicode().tag(sync=True)
    figure = traitlets.Unicode("").tag(sync=True)
    dark = traitlets.Bool(None, allow_none=True).tag(sync=True)
    """The theme of the page; None until the figure is seen."""
    clicked = traitlets.Dict().tag(sync=True)
    zoomed = traitlets.List(traitlets.Float()).tag(sync=True)
    """The range of the first axis that is shown; empty where all of it is."""

    def __init__(
        self,
        make: Callable[[bool], go.Figure],
        label: str,
        on_click: Callable[[JsonObject], None] | None = None,
        guarded: Callable[[Callable[..., None]], Callable[..., None]] = lambda act: act,
    ) -> None:
        self._make, self._asked_at = make, 0
        super().__init__(label=label)
        self.observe(guarded(lambda change: self.redraw()), "dark")
        self.on_msg(guarded(lambda widget, content, buffers: self._themed(content)))
        if on_click is not None:
            self.observe(guarded(lambda change: on_click(change["new"])), "clicked")

    def redraw(self) -> None:
        """Make the figure again if it is seen."""
        dark = self.dark
        if dark is not None:
            figure = self._make(dark).to_json()
            # JupyterLab may have messages of a widget handled in several threads of the kernel.
            if dark == self.dark:
                self.figure = figure

    def _themed(self, asked: JsonObject) -> None:
        dark, at = asked.get("dark"), asked.get("at")
        # In several threads they may change places.
        if isinstance(dark, bool) and isinstance(at, int) and at >= self._asked_at:
            self._asked_at, self.dark = at, dark

    def __repr__(self) -> str:
        return f"Plot({self.label})"
