"""The pane What-if: the isolation schema as toggles; each of them replays all lookups at once."""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter
from typing import Any, Final

import ipywidgets
import traitlets

from cachescope.answers.chosen import Chosen
from cachescope.answers.read import Read
from cachescope.answers.what_if import WhatIf
from cachescope.figures.palette import OUTCOME_COLOURS
from cachescope.figures.rates import what_if_rates
from cachescope.figures.texts import run_labels
from cachescope.keys.key_schema import KeySchema
from cachescope.report.blocks import Column, Numbers, Toggle, timed
from cachescope.report.comparison import moved
from cachescope.report.page.replay import savings_of, toggle_groups
from cachescope.report.what_if_forms import (
    BY_CAUSE,
    CAUSE_SAVINGS,
    sensitivity_lines,
    time_won,
    titled_savings,
    what_if_lines,
)
from cachescope.views.controls import (
    STYLE,
    Control,
    InPython,
    Pane,
    Shows,
    button,
    columns,
    heading,
    markup,
    row,
    script,
    sentence,
)
from cachescope.views.lookups import between
from cachescope.views.plot import Tabled
from cachescope.views.state import State
from cachescope.views.table import ListedRows, Table
from cachescope.wording import percent, plural

# Sets of fields that would help.
_RANKED: Final = 20
_WARNING: Final = "bold red"


class Tree(Control):
    """Check boxes for what counts; what does not count is in `off`."""

    _esm = script("make.js", "tree.js") + "export default { render: showTree };"
    _css = STYLE

    groups: Any = traitlets.List().tag(sync=True)
    off: Any = traitlets.List().tag(sync=True)

    def __init__(self, groups: list[Toggle]) -> None:
        super().__init__(groups=[group.as_json() for group in groups])

    def __repr__(self) -> str:
        return f"Tree({len(self.off)} off)"


def numbers(found: WhatIf, chosen: Chosen) -> Numbers:
    """Hit rates, keys and groups of some lookups, before and after."""
    before, after = found.rates_of(chosen).rows
    keys, then, groups = found.key_counts(chosen)
    hits = f"{before.hits:,} → {after.hits:,} of {plural(before.lookups, 'lookup')}"
    counts = moved(percent(before.hit_rate, "–"), percent(after.hit_rate, "–"))
    times = moved(percent(before.time_hit_rate, "–"), percent(after.time_hit_rate, "–"))
    rates = (("Hit rate by count", counts, hits), ("By compile time", times, time_won(before, after)))
    become = f"{plural(groups, 'group')} of keys that become one"
    return Numbers((*rates, ("Keys", f"{keys:,} → {then:,}", become)))


class WhatIfView(Shows):
    """Toggles for what counts in a key, and what would have hit."""

    beyond = "All lookups in torch's caches are replayed, and those of it counted. What single fields and causes save, and the text below them, covers all lookups."

    def __init__(self, scope: Read, state: State | None = None) -> None:
        self._past: list[tuple[str, ...]] = []
        self.found: WhatIf = WhatIf.of(scope, KeySchema())
        super().__init__(scope, state)

    def parts(self) -> Iterable[ipywidgets.Widget]:
        """What is left out, and what would have hit then."""
        scope, guarded = self._scope, self._state.guarded
        labels = run_labels(scope.tables.runs.rows)
        self._columns = (
            Column("Lookup", "name", lambda one: one[0].lookup),
            Column("Run", "word", lambda one: labels[one[0].run]),
            Column("Cache", "word", lambda one: one[0].cache),
            Column("Compile", "word", lambda one: one[0].compile_id),
            Column("Function", "word", lambda one: one[0].function),
            Column("Recorded", "word", lambda one: one[0].outcome, colours=OUTCOME_COLOURS),
            Column("Then", "word", itemgetter(1), colours=OUTCOME_COLOURS),
            Column("Saves", "number", lambda one: timed(one[2])),
        )
        fields, varying = scope.replay.table.fields, scope.replay.table.varying
        self.tree = Tree(toggle_groups(fields, varying, scope.field_safety, savings_of(scope, varying)))
        self.tree.observe(guarded(lambda change: self._set(tuple(change["new"]))), "off")
        self.ranking = markup(*sensitivity_lines(scope.sensitivity_rows(), _RANKED))
        self.undo = button("Undo", self._undo, "Take the last toggle back")
        self.reset = button("Reset", lambda: self._set(()), "Everything counts again")
        self.numbers, self.warnings, self.remarks = markup(), markup(), markup()
        # A row opens the first root miss.
        savings = [(scope.facts.roots_of(row[1].cause)[0].lookup, row) for row in titled_savings(scope)]
        name, empty = "causes without their own changed fields", "Nothing missed but first lookups."
        why = guarded(self._state.show_why)
        self.by_cause = Table(ListedRows(CAUSE_SAVINGS, savings), name, empty, why, page_size=8)
        self.rates = Tabled(
            lambda: what_if_rates(self.found.rates_of(self._chosen).rows),
            "hit rates before and after",
            lambda: self.found.rates_of(self._chosen).frame,
        )
        name, empty = "lookups that would have hit", "No lookup changes sides."
        self.changed = Table(self._changed_rows(), name, empty, why, page_size=15)
        causes = (heading(BY_CAUSE, "A row opens Why."), self.by_cause, self.remarks)
        lookups = (heading("Lookups that change sides", "A row opens Why."), self.changed)
        most = Pane(self.ranking, *causes, *lookups)
        counts = (heading("What counts in a key", _TREE), row(self.undo, self.reset), self.tree)
        every = Pane(heading("Before and after"), self.rates, *counts)
        self._state.observe(guarded(self._replay), "without")
        self._replay()
        both = columns(most, every, widths=(520, 380))
        return [self.numbers, self.warnings, both, sentence(_WHAT, "dim")]

    def in_python(self) -> InPython:
        """Every lookup of the span before and after."""
        without, span = self._state.without, self._state.span
        line = f"scope.what_if(without={without!r}).frame" if without else "scope.what_if().frame"
        if span is not None and not self._chosen.is_all:
            line = f"{line}[{between('scope.lookups', span)}].reset_index(drop=True)"
        return line, lambda: self._chosen.rows_of_each(self.found.frame).reset_index(drop=True)

    def _set(self, without: tuple[str, ...]) -> None:
        if without != self._state.without:
            self._past.append(self._state.without)
            self._state.without = without

    def _undo(self) -> None:
        if self._past:
            self._state.without = self._past.pop()

    def _replay(self, change: object = None) -> None:
        without = self._state.without
        self.found = WhatIf.of(self._scope, KeySchema(without=without))
        self.tree.off = list(without)
        self.undo.disabled, self.reset.disabled = not self._past, not without
        # The first bold line is the headline, which the numbers show already.
        lines = what_if_lines(self.found) if self.found.removed else []
        self.warnings.show(*(line for line in lines if line.style == _WARNING))
        self.remarks.show(*(line for line in lines if line.style not in ("bold", _WARNING)))
        self.show_chosen()

    def show_chosen(self) -> None:
        """Count the chosen lookups alone."""
        self.numbers.show(numbers(self.found, self._chosen))
        self.changed.show(self._changed_rows())
        self.rates.redraw()

    def _changed_rows(self) -> ListedRows:
        changed, unknown = self.found.changed, ("unknown", None)
        rows = [
            (row.lookup, (row, *changed.get(row.lookup, unknown)))
            for row in self._chosen.rows
            if row.lookup in changed or row.outcome == "unknown"
        ]
        return ListedRows(self._columns, rows)

    def __repr__(self) -> str:
        rate = self.found.rate_table.rows
        if not rate:
            return "WhatIfView(no lookups)"
        before, after = rate
        return f"WhatIfView({before.hits} -> {after.hits} of {plural(before.lookups, 'lookup')} hit)"


_TREE: Final = "Untick fields to leave them out of the keys. What each saves is counted by itself."
_WHAT: Final = "All lookups in torch's caches are replayed in the order of time, as if torch had left out what is not ticked."
