"""The pane Lookups: every lookup, filtered and sorted; a row opens Why."""

from __future__ import annotations

import ipywidgets
import pandas as pd

from cachescope.answers.cards import cause_names
from cachescope.answers.chosen import Chosen
from cachescope.answers.names import run_name
from cachescope.answers.read import Read
from cachescope.report.layout import Line
from cachescope.views.controls import Shows, button, choice, markup, row, sentence, text_box
from cachescope.views.lookup_rows import LookupRows, listed_lookups, lookups_frame, query
from cachescope.views.state import FILTERS, State
from cachescope.views.table import Table


class Lookups(Shows):
    """The table of lookups with its filters."""

    def __init__(self, scope: Read, state: State) -> None:
        self._scope, self._state = scope, state
        self.rows = LookupRows(list(listed_lookups(scope)))
        if not len(self.rows):
            super().__init__(sentence(NOTHING))
            return
        self.text = text_box("Search", "key, compile, field, reason", 240, value=state.text)
        ipywidgets.link((self.text, "value"), (state, "text"))
        self.summary = markup()
        self.rows.filter(state.filters)
        self.rows.order(*state.sort)
        self.table = Table(
            self.rows,
            "lookups",
            empty="No lookup has all of these. Clear the filters to see them again.",
            on_choose=state.guarded(state.show_why),
            page_size=50,
        )
        self.table.sort = list(state.sort)
        self.table.observe(lambda change: setattr(state, "sort", tuple(change["new"])), "sort")
        state.observe(state.guarded(lambda change: self._filter()), FILTERS)
        state.observe(lambda change: setattr(self.table, "sort", list(change["new"])), "sort")
        state.observe(lambda change: setattr(self.table, "selected", change["new"]), "lookup")
        self.clear = button("Clear filters", state.show_lookups)
        super().__init__(
            row(*self._choices(scope), self.text),
            row(self.summary, self.clear),
            sentence(_HINT, "dim"),
            self.table,
        )
        self._say()

    def _choices(self, scope: Read) -> list[ipywidgets.Widget]:
        facts, state, rows = scope.facts, self._state, self.rows
        runs = [(run_name(facts, run), run) for run in facts.runs]
        made = [choice(state, "run", "Run", runs)]
        if ranks := rows.values("rank"):
            made.append(choice(state, "rank", "Rank", [(str(rank), rank) for rank in ranks]))
        for name, label in (("cache", "Cache"), ("outcome", "Outcome")):
            made.append(choice(state, name, label, [(value, value) for value in rows.values(name)]))
        return [*made, choice(state, "cause", "Cause", cause_names(scope))]

    @property
    def query(self) -> str:
        """The line of Python that returns the rows shown."""
        return query(self._state.filters, self._state.sort)

    def frame(self) -> pd.DataFrame:
        """The rows shown, all pages of them."""
        return lookups_frame(self._scope, self.rows.passing())

    def narrow(self, chosen: Chosen) -> None:
        """List the lookups of the span alone, which is one of the filters."""
        if self.rows.rows:
            self._filter()

    def _filter(self) -> None:
        self.rows.filter(self._state.filters)
        with self.table.hold_sync():
            self.table.page = 0
            self.table.refresh()
        self._say()

    def _say(self) -> None:
        count, all_of_them = self.rows.count, len(self.rows.rows)
        of = f"{count:,} of {all_of_them:,} lookups" if count < all_of_them else f"{count:,} lookups"
        self.clear.disabled = not self._state.filters.keys() - {"span"}
        self.summary.show(Line(of))


NOTHING = (
    "No lookups were read, so there is none to list. A trace (TORCH_TRACE) or a text log of the cache loggers holds"
    " them; cachescope record sets both."
)
_HINT = "Open a row to see why; Compile time is what a miss cost. ▸ shows the FX lookups below one of AOTAutograd."
