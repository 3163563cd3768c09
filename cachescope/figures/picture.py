"""A figure as plain values, and the script that draws them in a browser: both do without plotly, which is slow to check and to load."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import reduce, wraps
from importlib.resources import files
from inspect import Parameter, cleandoc, signature
from operator import getitem
from typing import TYPE_CHECKING, Any, Final, get_args, get_type_hints

from cachescope.figures.palette import in_the_dark
from cachescope.json_types import JsonObject
from cachescope.rows import names_of

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go


# In this order: each uses the ones before it.
PARTS: Final = ("texts", "scales", "marks", "boxes", "shapes", "frame", "pointing", "draw")


class Picture:
    """What a plotly Figure is made from: its traces and its layout, in plotly's words."""

    def __init__(self, layout: dict[str, Any]) -> None:
        self.data: list[JsonObject] = []
        self.layout = layout

    def add(self, kind: str, **trace: Any) -> None:
        """Add a trace; what is None is left out."""
        given = {name: value for name, value in trace.items() if value is not None}
        self.data.append({"type": kind, **given})

    def annotate(self, **annotation: Any) -> None:
        """Add a text, without an arrow to its place."""
        self.layout.setdefault("annotations", []).append({"showarrow": False, **annotation})

    def lay_out(self, **layout: Any) -> None:
        """Change the layout; what is not named stays."""
        _merge(self.layout, layout)

    def drawn(self) -> JsonObject:
        """What the browser draws, and what differs in the dark: places and values."""
        figure = json.loads(json.dumps({"data": self.data, "layout": self.layout}, allow_nan=False))
        return {**figure, "dark": list(in_the_dark(figure))}


def as_plotly(draw: Callable[..., Picture]) -> Callable[..., go.Figure]:
    """The function that draws the same of frames, for people's own notebooks, on request for a dark page."""

    @wraps(draw)
    def figure(*args: Any, dark: bool = False, **kwargs: Any) -> go.Figure:
        import plotly.graph_objects as go

        given, hints = signature(draw).bind(*args, **kwargs), get_type_hints(draw)
        for name, value in given.arguments.items():
            if hasattr(value, "columns"):
                given.arguments[name] = _rows(value, hints[name])
        drawn: Any = draw(*given.args, **given.kwargs).drawn()
        for (*path, last), darker in drawn["dark"] if dark else ():
            reduce(getitem, path, drawn)[last] = darker
        return go.Figure(drawn["data"], drawn["layout"])

    figure.__doc__ = f"{cleandoc(draw.__doc__ or '')}\ndark : bool\n    For a dark background."
    own = signature(draw)
    last = Parameter("dark", Parameter.KEYWORD_ONLY, default=False, annotation="bool")
    figure.__signature__ = own.replace(  # type: ignore[attr-defined]
        parameters=[*own.parameters.values(), last], return_annotation="go.Figure"
    )
    return figure


def _rows(frame: pd.DataFrame, hint: Any) -> list[Any]:
    """The rows of a frame, as a sequence of them is hinted at; what has no column is missing."""
    from cachescope.columns import rows_of

    (kind,) = get_args(hint)
    kind = next(iter(get_args(kind)), kind)
    return rows_of(frame.reindex(columns=names_of(kind)), kind)


def _merge(into: dict[str, Any], changes: dict[str, Any]) -> None:
    for name, value in changes.items():
        if isinstance(value, dict) and isinstance(into.get(name), dict):
            _merge(into[name], value)
        else:
            into[name] = value


def drawing_js() -> str:
    """The source of ``drawFigure(place, figure, {width, onClick})``; a script, or the beginning of a module."""
    folder = files(__package__).joinpath("drawing")
    parts = (folder.joinpath(f"{name}.js").read_text(encoding="utf-8") for name in PARTS)
    return f"const drawFigure = (() => {{\n{''.join(parts)}return drawFigure;\n}})();\n"
