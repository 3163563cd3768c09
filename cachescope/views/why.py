"""The pane Why: one lookup explained, or two compared; the others of its cause, and a way back."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Final

import ipywidgets
from traitlets.utils.bunch import Bunch

from cachescope.analysis.differences import FieldChange
from cachescope.analysis.resolve_name import is_number
from cachescope.answers.chosen import Chosen
from cachescope.answers.comparison import Comparison
from cachescope.answers.difference import side_named
from cachescope.answers.explanation import Explanation, costliest_root
from cachescope.answers.names import lookup_in_run
from cachescope.errors import NotFoundError
from cachescope.figures.key_strip import key_difference
from cachescope.figures.picture import Picture
from cachescope.report.blocks import Block, Group
from cachescope.report.comparison import key_difference_blocks
from cachescope.report.explanation import change_blocks, to_do_lines, told_lines
from cachescope.report.html import opening_html
from cachescope.views.controls import InPython, Pane, Shows, button, markup, row, text_box
from cachescope.views.lookups import LookupRows, listed_lookups
from cachescope.views.plot import Plot
from cachescope.views.table import Table

_SHOWN: Final = 1000


class Why(Shows):
    """Why one lookup missed."""

    beyond = "Misses to step through, and those of the same cause, are of it. What they are compared with may be earlier."

    explained: Explanation | None = None
    _first: int | None = None
    _changes: tuple[FieldChange, ...] = ()

    def parts(self) -> Iterable[ipywidgets.Widget]:
        """The lookup to explain, what explains it, and the others of its cause."""
        state = self._state
        self.lookup = text_box("Lookup", "number", 200, continuous_update=False)
        self.other = text_box("Compare with", "the baseline", 200, continuous_update=False)
        self.lookup.observe(state.guarded(self._picked), "value")
        self.other.observe(state.guarded(self._picked), "value")
        self.verdict, self.changes = markup(), markup()
        self.plot = Plot(self._draw, "fields of the key, changed ones named")
        self.plot.layout = ipywidgets.Layout()
        # The others of its cause, each of which opens Why.
        self._title = markup()
        why, name = state.guarded(state.show_why), "other lookups with the same cause"
        self.others = Table(LookupRows([]), name, on_choose=why, page_size=20)
        self.same = Pane(self._title, self.others, layout=ipywidgets.Layout())
        clear, hint = partial(setattr, state, "other", None), "The lookup or entry that cachescope chose"
        steps = [
            button("Previous miss", lambda: self._step(-1)),
            button("Next miss", lambda: self._step(1)),
            button("Compare with the baseline", clear, hint),
        ]
        state.observe(state.guarded(self._show), ["lookup", "other"])
        if state.lookup is None:
            self._first = first_to_show(self._chosen)
            state.lookup = self._first
        else:
            self._show()
        self.back = markup()
        state.observe(self._lead_back, "origin")
        self._lead_back()
        picked = row(self.lookup, self.other, *steps)
        return [self.back, picked, self.verdict, self.plot, self.changes, self.same]

    def _lead_back(self, change: object = None) -> None:
        to = f"Back to {self._state.origin}"
        self.back.value = opening_html("cs-button cs-back", "Back 0", to, to) if self._state.origin else ""

    def in_python(self) -> InPython:
        """The changed fields."""
        lookup, other, explained = self._state.lookup, self._state.other, self.explained
        if lookup is None or explained is None:
            return "scope.misses", lambda: self._scope.misses
        if other is None:
            return f"scope.explain({lookup}).frame", lambda: explained.frame
        line = f'cachescope.compare("{other}", "{lookup}", within=scope).frame'
        return line, lambda: self._compared(other, explained.lookup).frame

    def _compared(self, *lookups: int) -> Comparison:
        for one in lookups:
            if one not in self._scope.facts.lookups:
                raise NotFoundError(f"no lookup {one}")
        return Comparison.of(self._scope, *(side_named(self._scope, str(one)) for one in lookups))

    def show_chosen(self) -> None:
        """Step through the chosen misses alone; a lookup that nobody picked gives way to one of these."""
        chosen = self._chosen
        if self._state.lookup == self._first and len(chosen) and self._first not in chosen:
            self._first = first_to_show(chosen)
            self._state.lookup = self._first
        self._list_same()

    def _list_same(self) -> None:
        # Between two that were picked there is no cause.
        lookup = None if self._state.other is not None else self._state.lookup
        mine = None if lookup is None else self._scope.facts.misses.get(lookup)
        every = [] if mine is None else self._chosen.misses_of(mine.cause)
        others = [one.lookup for one in every[:_SHOWN] if one.lookup != lookup]
        cut = f" (of {len(every):,} the first {_SHOWN:,})" if len(every) > _SHOWN else ""
        self._title.show(Group("", f"Other lookups with the same cause{cut}", ()))
        self.same.layout.display = "" if others else "none"
        self.others.show(LookupRows([*listed_lookups(self._scope, others)]))

    def _draw(self) -> Picture:
        assert self.explained is not None
        lookup = self._scope.facts.lookups[self.explained.lookup]
        recorded = lookup.detail_set
        fields = [] if recorded is None else self._scope.tables.hash_details.details(recorded)
        return key_difference(self._changes, fields)

    def _picked(self, change: Bunch) -> None:
        name = "lookup" if change["owner"] is self.lookup else "other"
        text = change["new"].strip()
        if not text and name == "other":
            self._state.other = None
            return
        number = int(text) if is_number(text) else None
        if number not in (lookups := self._scope.facts.lookups):
            raise NotFoundError(f"no lookup {text!r}; there are {min(lookups)} to {max(lookups)}")
        setattr(self._state, name, number)

    def _step(self, by: int) -> None:
        misses = self._chosen.misses
        here = self._state.lookup or 0
        later = [m for m in misses if m > here] if by > 0 else [m for m in reversed(misses) if m < here]
        if later:
            self._state.show_why(later[0])

    def _show(self, change: object = None) -> None:
        lookup, other = self._state.lookup, self._state.other
        if lookup is None:
            return
        self.explained = Explanation.of(self._scope, lookup)
        self.lookup.value, self.other.value = str(lookup), "" if other is None else str(other)
        if other is None:
            self._changes = self.explained.changes
            told: list[Block] = [*told_lines(self.explained), *to_do_lines(self.explained)]
            changed = change_blocks(self._changes, "explorer.frame()")
        else:
            graphs = self._compared(other, lookup).graphs
            assert graphs is not None
            self._changes = graphs.groups[0][0] if graphs.groups else ()
            facts = self._scope.facts
            names = [f"lookup {one}, {lookup_in_run(facts, facts.lookups[one])}" for one in (other, lookup)]
            told, changed = [], key_difference_blocks(graphs, names)
        self.verdict.show(*told)
        self.changes.show(*changed)
        self.plot.layout.display = "" if self._changes else "none"
        self.plot.redraw()
        self._list_same()


def first_to_show(chosen: Chosen) -> int:
    """The lookup that Why opens with: the root miss that cost the most, or the first lookup if nothing missed."""
    return costliest_root(chosen) if chosen.misses else int(chosen.lookups["lookup"].min())
