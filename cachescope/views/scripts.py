"""Scripts of the browser that are put together from several files: a widget of anywidget is one module."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from cachescope.report.scripts import shared_script

_HERE: Final = Path(__file__).parent
# Those that the page of a report has too.
_SHARED: Final = frozenset({"make.js", "focus.js", "table.js"})

STYLE: Final = shared_script("table.css") + (_HERE / "style.css").read_text(encoding="utf-8")
"""The style sheet of all panes."""


def script(*names: str) -> str:
    """The files one after the other; the last one exports the widget."""
    return "\n".join(
        shared_script(name) if name in _SHARED else (_HERE / name).read_text(encoding="utf-8")
        for name in names
    )
