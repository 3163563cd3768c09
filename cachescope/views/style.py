"""The style sheet of the panes, on the page before anything that needs it."""

from __future__ import annotations

from cachescope.views.bare import Control
from cachescope.views.scripts import STYLE


class Style(Control):
    """Shows nothing: it brings the style sheet, which a page without a table or figure would not have."""

    _esm = "export default { render() {} };"
    _css = STYLE

    def __init__(self) -> None:
        super().__init__(_dom_classes=("cs-style",))

    def __repr__(self) -> str:
        return "Style()"
