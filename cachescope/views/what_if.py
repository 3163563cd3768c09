"""The pane What-if: the isolation schema as toggles; each of them replays all lookups at once."""

from __future__ import annotations

from typing import Any, Final

import pandas as pd

from cachescope import figures
from cachescope.analysis.what_if.evidence import SafetyOfFields
from cachescope.answers.read import Read
from cachescope.answers.what_if import WhatIf
from cachescope.columns import rows_of
from cachescope.figures.palette import OUTCOME_COLOURS
from cachescope.figures.texts import run_labels
from cachescope.frames.replay_rows import SensitivityRow, WhatIfRate
from cachescope.json_types import JsonObject
from cachescope.keys.key_schema import KeySchema
from cachescope.views import html
from cachescope.views.controls import Pane, button, columns, markup, row
from cachescope.views.frame_rows import FrameRows
from cachescope.views.lookups import NOTHING
from cachescope.views.plot import Plot
from cachescope.views.state import State
from cachescope.views.table import Head, ListedRows, Shown, Table
from cachescope.views.tabled import Tabled
from cachescope.views.tree import Tree, tree_groups
from cachescope.views.what_if_text import answer
from cachescope.wording import duration, plural

_HEADS: Final = (
    Head("lookup", "Lookup", number=True),
    Head("run", "Run"),
    Head("cache", "Cache"),
    Head("compile_id", "Compile"),
    Head("function", "Function"),
    Head("outcome", "Recorded", colours=OUTCOME_COLOURS),
    Head("outcome_after", "Would be", colours=OUTCOME_COLOURS),
    Head("time_won_ns", "Saves", number=True),
)
_RANKING: Final = (
    Head("fields", "Leave out", wide=True),
    Head("misses", "Would hit", number=True),
    Head("time", "Saves", number=True),
    Head("advice", "Is it safe", wide=True),
)


class WhatIfView(Pane):
    """Toggles for what counts in a key, and what would have hit.

    Parameters
    ----------
    scope : Read
    state : State, optional
        Shared with other panes; a new one by default.
    """

    def __init__(self, scope: Read, state: State | None = None) -> None:
        self._scope, self._state = scope, state or State()
        self._past: list[tuple[str, ...]] = []
        self.found: WhatIf = WhatIf.of(scope, KeySchema())
        if not scope.facts.lookups:
            super().__init__([markup(html.paragraph(NOTHING))])
            return
        guarded = self._state.guarded
        self._labels = run_labels(scope.runs)
        self.ranking = scope.sensitivity()
        self.tree = Tree(tree_groups(self.found.fields, self.found.varying, SafetyOfFields(scope.evidence)))
        self.tree.observe(guarded(lambda change: self._set(tuple(change["new"]))), "off")
        self.undo = button("Undo", self._undo, "Take the last toggle back")
        self.reset = button("Reset", lambda: self._set(()), "Everything counts again")
        self.answer = markup()
        self.rates_plot = Plot(
            lambda dark: figures.what_if_rates(self.found.rates, dark=dark),
            "hit rates before and after",
            guarded=guarded,
        )
        self.rates = Tabled(self.rates_plot, lambda: self.found.rates)
        self.changed = Table(
            self._changed_rows(),
            "lookups that would have hit",
            empty="No lookup changes sides.",
            on_choose=guarded(self._state.show_why),
            page_size=15,
        )
        self.presets = Table(
            ListedRows(_RANKING, _ranking_rows(self.ranking)),
            "fields by what leaving them out would save",
            empty="No field, and no small set of fields, keeps anything from hitting.",
            on_choose=guarded(self._preset),
            page_size=8,
        )
        self.ranking_plot = Plot(
            lambda dark: figures.sensitivity(self.ranking, dark=dark),
            "what each field would save",
            self._clicked_field,
            guarded,
        )
        left = Pane([row(self.undo, self.reset), self.tree])
        right = Pane(
            [
                self.answer,
                self.rates,
                markup(html.title("Lookups that change sides", "A row opens Why.")),
                self.changed,
            ]
        )
        presets = Pane(
            [
                markup(html.title("What would help most", "A row leaves exactly these fields out.")),
                columns(self.presets, *([self.ranking_plot] if len(self.ranking) else []), widths=(520, 420)),
            ]
        )
        super().__init__(
            [markup(html.paragraph(_WHAT, "faint")), columns(left, right, widths=(340, 480)), presets]
        )
        self._state.observe(guarded(self._replay), "without")
        self._replay()

    @property
    def query(self) -> str:
        """The line of Python that returns every lookup before and after."""
        without = self._state.without
        return f"scope.what_if(without={without!r}).frame" if without else "scope.what_if().frame"

    def frame(self) -> pd.DataFrame:
        """Every lookup before and after."""
        return self.found.frame

    def _set(self, without: tuple[str, ...]) -> None:
        if without != self._state.without:
            self._past.append(self._state.without)
            self._state.without = without

    def _undo(self) -> None:
        if self._past:
            self._state.without = self._past.pop()

    def _preset(self, place: int) -> None:
        self._set(tuple(self.ranking["fields"].iloc[place]))

    def _clicked_field(self, clicked: JsonObject) -> None:
        data = clicked.get("data")
        fields = tuple(data) if isinstance(data, list) else (data,)
        if fields in self.ranking["fields"].tolist():
            self._set(fields)

    def _replay(self, change: object = None) -> None:
        without = self._state.without
        self.found = WhatIf.of(self._scope, KeySchema(without=without))
        self.tree.off = list(without)
        self.undo.disabled, self.reset.disabled = not self._past, not without
        self.answer.value = answer(self.found)
        self.changed.show(self._changed_rows())
        self.rates.redraw()

    def _changed_rows(self) -> FrameRows:
        frame = self.found.frame.assign(**self._scope.lookups[["compile_id", "function"]])
        changed = frame[frame["changed_side"].fillna(True)]
        return FrameRows(changed, _HEADS, {"run": self._labels.__getitem__, "time_won_ns": duration})

    def __repr__(self) -> str:
        rate = rows_of(self.found.rates, WhatIfRate)
        if not rate:
            return "WhatIfView(no lookups)"
        before, after = rate
        return f"WhatIfView({before.hits} -> {after.hits} of {plural(before.lookups, 'lookup')} hit)"


_WHAT = (
    "Untick what should not count in a key: all lookups are replayed in the order of time, as if torch had left it out."
    " By what-if keys, cachescope's own: torch's cannot be rebuilt from what was recorded."
)


def _ranking_rows(ranking: pd.DataFrame) -> list[tuple[int, list[Any]]]:
    rows = []
    for place, one in enumerate(rows_of(ranking, SensitivityRow)):
        time = one.time_alone_ns
        names = ", ".join(one.fields[:6]) + (" …" if len(one.fields) > 6 else "")
        shown = None if time is None else Shown(duration(time), time)
        rows.append((place, [names, one.misses_alone, shown, one.advice]))
    return rows
