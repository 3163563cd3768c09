"""What the widgets share: scripts of ours, one style sheet, and no layout or style of their own.

To ipywidgets each layout and style is another widget: a message of the kernel, and a model and a view of the page. With
those of every text and box, an explorer would be three times as many, and its first numbers would wait for them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import anywidget
import ipywidgets
import traitlets

from cachescope.report.scripts import shared_script

_HERE: Final = Path(__file__).parent
# Those that the page of a report has too.
_SHARED: Final = frozenset({"make.js", "tree.js"})

STYLE: Final = shared_script("tree.css") + (_HERE / "style.css").read_text(encoding="utf-8")
"""The style sheet of all panes."""


def bare(kind: type[ipywidgets.Widget]) -> Any:
    """The trait of a layout or style that is there only if it was given."""
    return traitlets.Instance(kind, allow_none=True).tag(sync=True, **ipywidgets.widget_serialization)


class Control(anywidget.AnyWidget):
    """A widget with JavaScript of ours."""

    layout = bare(ipywidgets.Layout)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def script(*names: str) -> str:
    """The files one after the other; the last one exports the widget."""
    return "\n".join(
        shared_script(name) if name in _SHARED else (_HERE / name).read_text(encoding="utf-8")
        for name in names
    )


class Style(Control):
    """Shows nothing: it brings the style sheet, which a page without a table or figure would not have."""

    _esm = "export default { render() {} };"
    _css = STYLE

    def __init__(self) -> None:
        super().__init__(_dom_classes=("cs-style",))
