"""A button that leads back to the pane from which one came."""

from __future__ import annotations

import traitlets

from cachescope.views.bare import Control
from cachescope.views.scripts import STYLE, script
from cachescope.views.state import State


class Back(Control):
    """Leads back to ``state.origin``; hidden if there is none."""

    _esm = script("focus.js", "back.js")
    _css = STYLE

    to = traitlets.Unicode("").tag(sync=True)
    asked = traitlets.Float(0).tag(sync=True)
    """A time, which makes each click a change."""

    def __init__(self, state: State) -> None:
        super().__init__(to=state.origin)
        state.observe(lambda change: setattr(self, "to", change["new"]), "origin")
        self.observe(state.guarded(lambda change: state.go_back()), "asked")

    def __repr__(self) -> str:
        return f"Back(to {self.to or 'nothing'})"
