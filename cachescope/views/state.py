"""The state that the panes of an explorer share: what is chosen, filtered and left out of the keys; and how it is carried to another reading."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import wraps
from typing import Any, Final

import traitlets

from cachescope.answers.read import Read
from cachescope.answers.what_if import WhatIf
from cachescope.errors import NotFoundError
from cachescope.keys.key_schema import KeySchema
from cachescope.report.subjects import SUBJECTS

LOOKUPS: Final = "Lookups"
WHY: Final = "Why"
TOLD: Final = tuple(name.capitalize() for name in SUBJECTS)
"""The panes of `cachescope.report.subjects`."""
PANES: Final = ("Overview", LOOKUPS, WHY, "Compare", "Time", *TOLD, "What-if", "Machines", "Entries")

FILTERS: Final = ("run", "rank", "cache", "outcome", "cause", "text")
"""The traits that select what Lookups lists; of the chosen span, which holds in every pane."""


class State(traitlets.HasTraits):
    """What is chosen. Panes write to it and observe it, and do not know each other."""

    pane = traitlets.Enum(PANES, PANES[0])

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
        """Open the pane from which Why was opened."""
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


def carried(state: State, old: Read, new: Read) -> dict[str, Any]:
    """The traits of the state with the numbers of another reading: None for what is gone.

    A field that is in no key any more cannot be left out: it is dropped.
    """
    was, now = old.facts, new.facts
    processes = ({run: (row.source, row.pid, row.rank) for run, row in of.runs.items()} for of in (was, now))
    runs = _moved(*processes)
    lookups = _moved(
        {lookup: (runs.get(row.run), row.order) for lookup, row in was.lookups.items()},
        {lookup: (row.run, row.order) for lookup, row in now.lookups.items()},
    )
    reasons = ({row.cause: (row.verdict, row.fields) for row in of.explained.rows} for of in (old, new))
    causes = _moved(*reasons)
    entries = _moved(*({entry: row.path for entry, row in of.entries.items()} for of in (was, now)))
    contexts = _moved(
        {row.context: (row.source, runs.get(row.run)) for row in old.all_contexts.rows},
        {row.context: (row.source, row.run) for row in new.all_contexts.rows},
    )
    pair = tuple(contexts[one] for one in state.contexts if one in contexts)
    sides = tuple(tuple(runs[run] for run in side if run in runs) for side in state.compared)
    numbers = {"run": runs, "cause": causes, "lookup": lookups, "other": lookups, "entry": entries}
    return {
        **{name: of.get(getattr(state, name)) for name, of in numbers.items()},
        "contexts": pair if len(pair) == len(state.contexts) else (),
        "compared": sides if all(sides) else (),
        "without": tuple(name for name in state.without if _can_be_left_out(name, new)),
    }


def _can_be_left_out(name: str, scope: Read) -> bool:
    try:
        WhatIf.of(scope, KeySchema(without=(name,)))
    except NotFoundError:
        return False
    return True


def _moved(old: Mapping[int, Hashable], new: Mapping[int, Hashable]) -> dict[int | None, int]:
    """Old number to new number, by what identifies each; equal ones are matched in order."""
    now = {name: one for one, name in _named(new)}
    return {one: now[name] for one, name in _named(old) if name in now}


def _named(of: Mapping[int, Hashable]) -> Iterator[tuple[int, Hashable]]:
    seen: Counter[Hashable] = Counter()
    for one, name in of.items():
        yield one, (name, seen[name])
        seen[name] += 1
