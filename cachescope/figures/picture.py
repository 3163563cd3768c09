"""A figure as plain values, and the script that draws them in a browser: both do without plotly, which is slow to check and to load."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import wraps
from importlib.resources import files
from inspect import cleandoc, signature
from typing import TYPE_CHECKING, Any, Final, get_args, get_type_hints

from cachescope.json_types import JsonObject
from cachescope.rows import names_of

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go


# In this order: each uses the ones before it.
PARTS: Final = ("texts", "scales", "marks", "boxes", "shapes", "frame", "pointing", "draw")


class Picture:
    """What a plotly Figure is made from: its traces and its layout, in plotly's words.

    Parameters
    ----------
    layout : dict
    """

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

    def to_json(self) -> str:
        """What the browser draws."""
        return json.dumps({"data": self.data, "layout": self.layout}, allow_nan=False)


def as_plotly(draw: Callable[..., Picture]) -> Callable[..., go.Figure]:
    """The function that draws the same of frames, for people's own notebooks, with what its last parameter is."""

    @wraps(draw)
    def figure(*args: Any, **kwargs: Any) -> go.Figure:
        import plotly.graph_objects as go

        given, hints = signature(draw).bind(*args, **kwargs), get_type_hints(draw)
        for name, value in given.arguments.items():
            if hasattr(value, "columns"):
                given.arguments[name] = _rows(value, hints[name])
        picture = draw(*given.args, **given.kwargs)
        return go.Figure(picture.data, picture.layout)

    figure.__doc__ = f"{cleandoc(draw.__doc__ or '')}\ndark : bool\n    For a dark background."
    figure.__signature__ = signature(draw).replace(return_annotation="go.Figure")  # type: ignore[attr-defined]
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
