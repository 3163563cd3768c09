"""What to fix first, in the browser: one item for each cause, which opens Why and its lookups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import traitlets

from cachescope.answers.chosen import Chosen
from cachescope.answers.worklist import Work, Worklist, nothing_to_fix
from cachescope.json_types import JsonObject
from cachescope.report.worklist import NEVER_ASKED, ChangeText, changes_of, notes_of
from cachescope.views.bare import Control
from cachescope.views.scripts import STYLE, script
from cachescope.views.state import LOOKUPS, WHY
from cachescope.wording import harmless


class WorklistView(Control):
    """The worklist of what was read, or of some of its lookups.

    Parameters
    ----------
    chosen : Chosen
        What is counted.
    on_open : callable
        Called with a pane and a number: ``Why`` and a lookup, or ``Lookups`` and a cause.
    """

    _esm = script("make.js", "focus.js", "worklist.js")
    _css = STYLE

    label = traitlets.Unicode("what to fix first, the costliest on top").tag(sync=True)
    worklist: Any = traitlets.Dict().tag(sync=True)
    opened: Any = traitlets.List().tag(sync=True)
    """A pane, a number, and a time that makes opening the same one again a change."""

    def __init__(self, chosen: Chosen, on_open: Callable[[str, int], None]) -> None:
        super().__init__()
        self.show(chosen)
        self.observe(lambda change: self._open(change["new"], on_open), "opened")

    def show(self, chosen: Chosen) -> None:
        """Show the worklist of other lookups."""
        found = Worklist.of(chosen.read, chosen)
        notes = notes_of(found)
        if not found.works and not found.apart:
            notes = [nothing_to_fix(chosen), *notes]
        self.worklist = {
            "works": [_plain(work) for work in found.works],
            "apart": [_plain(work) for work in found.apart],
            "apart_title": NEVER_ASKED,
            "notes": notes,
        }

    @staticmethod
    def _open(opened: list[Any], on_open: Callable[[str, int], None]) -> None:
        if len(opened) == 3 and opened[0] in (WHY, LOOKUPS):
            on_open(opened[0], int(opened[1]))

    def __repr__(self) -> str:
        return f"WorklistView({len(self.worklist['works'])} to fix)"


def _plain(work: Work) -> JsonObject:
    return {
        "cause": work.cause,
        "lookup": work.lookup,
        "title": harmless(work.title),
        "cost": work.cost,
        "share": work.share,
        "changes": list(map(_change, changes_of(work))),
        "where": harmless(work.where),
        "advice": None if work.advice is None else harmless(work.advice),
    }


def _change(change: ChangeText) -> JsonObject:
    return {
        "name": harmless(change.name),
        "change": harmless(change.change),
        "advice": list(map(harmless, change.advice)),
        "lead": change.lead,
        "lines": list(map(harmless, change.lines)),
        "left_out": change.left_out,
    }
