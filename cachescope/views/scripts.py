"""Scripts of the browser that are put together from several files: a widget of anywidget is one module."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_HERE: Final = Path(__file__).parent


def script(*names: str) -> str:
    """The files one after the other; the last one exports the widget."""
    return "\n".join((_HERE / name).read_text(encoding="utf-8") for name in names)
