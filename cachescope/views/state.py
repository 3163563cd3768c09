"""The state that the panes of an explorer share: what is chosen, filtered and left out of the keys."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Final

import traitlets

from cachescope.report.subjects import SUBJECTS

OVERVIEW: Final = "Overview"
LOOKUPS: Final = "Lookups"
WHY: Final = "Why"
COMPARE: Final = "Compare"
TIME: Final = "Time"
WHAT_IF: Final = "What-if"
MACHINES: Final = "Machines"
ENTRIES: Final = "Entries"
TOLD: Final = tuple(name.capitalize() for name in SUBJECTS)
"""Those of `cachescope.report.subjects`."""
PANES: Final = (OVERVIEW, LOOKUPS, WHY, COMPARE, TIME, *TOLD, WHAT_IF, MACHINES, ENTRIES)

FILTERS: Final = ("run", "rank", "cache", "outcome", "cause", "text")
"""The traits that select what Lookups lists; of the chosen span, which holds in every pane."""


class State(traitlets.HasTraits):
    """What is chosen. Panes write to it and observe it; none knows another."""

    pane = traitlets.Enum(PANES, OVERVIEW)

    run = traitlets.Int(None, allow_none=True)
    rank = traitlets.Int(None, allow_none=True)
    cache = traitlets.Unicode(None, allow_none=True)
    outcome = traitlets.Unicode(None, allow_none=True)
    cause = traitlets.Int(None, allow_none=True)
    text = traitlets.Unicode("")
    span: Any = traitlets.Tuple(default_value=None, allow_none=True)
    """The first and the last moment, in nanoseconds since 1970, of what every pane shows."""
    sort = traitlets.Tuple(("lookup", True))
    """A column, and whether ascending."""

    lookup = traitlets.Int(None, allow_none=True)
    other = traitlets.Int(None, allow_none=True)
    """The lookup to compare with, if one was picked."""
    origin = traitlets.Enum(("", *PANES), "")
    """The pane that opened Why; empty if its tab did."""

    compared = traitlets.Tuple()
    """The runs of two sides to compare; empty until they are picked."""
    change = traitlets.Unicode(None, allow_none=True)
    """The change that the compared lookups shown have."""

    without = traitlets.Tuple()
    """The context forms and fields that do not count in a key."""

    contexts = traitlets.Tuple()
    """Two contexts to compare."""

    entry = traitlets.Int(None, allow_none=True)
    kind = traitlets.Unicode(None, allow_none=True)
    """The kind of entries listed."""

    error = traitlets.Unicode("")

    @property
    def filters(self) -> dict[str, object]:
        """The filters that are set, and the span."""
        return {name: one for name in (*FILTERS, "span") if (one := getattr(self, name)) not in (None, "")}

    def show_lookups(self, **filters: Any) -> None:
        """Open Lookups with these filters and no other; the span stays."""
        with self.hold_trait_notifications():
            for name in FILTERS:
                setattr(self, name, filters.get(name, "" if name == "text" else None))
            self.pane = LOOKUPS

    def show_why(self, lookup: int) -> None:
        """Open Why for one lookup."""
        with self.hold_trait_notifications():
            self.lookup, self.other = lookup, None
            if self.pane != WHY:
                self.origin = self.pane
            self.pane = WHY

    def go_back(self) -> None:
        """Open the pane again that opened Why."""
        if self.origin:
            self.pane = self.origin

    def turn_to(self, pane: str) -> None:
        """Open a pane by its tab."""
        with self.hold_trait_notifications():
            if pane == WHY != self.pane:
                self.origin = ""
            self.pane = pane

    def guarded(self, act: Callable[..., None]) -> Callable[..., None]:
        """A callback whose error is shown in its place: what a callback prints ends in Jupyter's log."""

        @wraps(act)
        def guarded(*args: Any, **named: Any) -> None:
            # Cleared first, to keep what the callback itself reports.
            self.error = ""
            try:
                act(*args, **named)
            except Exception as error:  # whatever it is, the user must see it
                self.error = f"{type(error).__name__}: {error}"

        return guarded
