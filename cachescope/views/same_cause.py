"""The other lookups that missed for the same cause."""

from __future__ import annotations

from typing import Any, Final

from ipywidgets import Layout

from cachescope.answers.chosen import Chosen
from cachescope.answers.read import Read
from cachescope.figures.texts import run_labels
from cachescope.frames.answer_rows import MissRow
from cachescope.frames.recorded_rows import LookupRow
from cachescope.views import html
from cachescope.views.controls import Pane, markup
from cachescope.views.state import State
from cachescope.views.table import Head, ListedRows, Shown, Table
from cachescope.wording import duration

_SHOWN: Final = 1000
_PAGE: Final = 20
_HEADS: Final = (
    Head("lookup", "Lookup", number=True),
    Head("run", "Run"),
    Head("cache", "Cache"),
    Head("compile_id", "Compile"),
    Head("function", "Function"),
    Head("root", "Role"),
    Head("time", "Compile time", number=True, unit="ns"),
)


class SameCause(Pane):
    """A table of them, each of which opens Why; nothing where there is no other.

    Parameters
    ----------
    scope : Read
    state : State
    """

    def __init__(self, scope: Read, state: State) -> None:
        self._scope = scope
        self.title = markup()
        self.table = Table(
            ListedRows(_HEADS, []),
            "other lookups with the same cause",
            on_choose=state.guarded(state.show_why),
            page_size=_PAGE,
        )
        super().__init__([self.title, self.table], Layout())

    def show(self, lookup: int | None, chosen: Chosen) -> None:
        """List the chosen lookups of the cause of one lookup."""
        facts = self._scope.facts
        mine = None if lookup is None else facts.misses.get(lookup)
        every = [] if mine is None else chosen.misses_of(mine.cause)
        labels = run_labels(self._scope.runs)
        rows = [
            (miss.lookup, _row(facts.lookups[miss.lookup], labels, miss))
            for miss in every[:_SHOWN]
            if miss.lookup != lookup
        ]
        cut = f" (of {len(every):,} the first {_SHOWN:,})" if len(every) > _SHOWN else ""
        self.title.value = html.title(f"Other lookups with the same cause{cut}")
        self.layout.display = "" if rows else "none"
        self.table.show(ListedRows(_HEADS, rows))


def _row(lookup: LookupRow, labels: dict[int, str], miss: MissRow) -> list[Any]:
    time = lookup.time_taken_ns
    return [
        lookup.lookup,
        labels[lookup.run],
        lookup.cache,
        lookup.compile_id,
        lookup.function,
        "root miss" if miss.root else "consequence",
        None if time is None else Shown(duration(time), time),
    ]
