"""The drawing of figures in the browser: what the figures of this package consist of, without plotly.js and its 5 MB."""

from __future__ import annotations

from importlib.resources import files
from typing import Final

# In this order: each uses the ones before it.
PARTS: Final = ("texts", "scales", "marks", "boxes", "shapes", "frame", "pointing", "draw")


def drawing_js() -> str:
    """The source of ``drawFigure(place, figure, {width, onClick})``; a script, or the beginning of a module."""
    folder = files(__package__).joinpath("drawing")
    parts = (folder.joinpath(f"{name}.js").read_text(encoding="utf-8") for name in PARTS)
    return f"const drawFigure = (() => {{\n{''.join(parts)}return drawFigure;\n}})();\n"
