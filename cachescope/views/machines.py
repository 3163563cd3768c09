"""The pane Machines: contexts side by side, which of them share a key, what differs between two, and the devices."""

from __future__ import annotations

from typing import Any, Final

import ipywidgets
import pandas as pd
from traitlets.utils.bunch import Bunch

from cachescope import figures
from cachescope.answers.names import run_name
from cachescope.answers.read import Read
from cachescope.columns import rows_of
from cachescope.figures.texts import run_labels
from cachescope.frames.context_rows import ContextRow, FormDifference, PairRow
from cachescope.frames.device_rows import DeviceRow
from cachescope.report.device_card import card_html
from cachescope.report.html import safe
from cachescope.terms import COMPILE_FORMS, RUNTIME_FORMS
from cachescope.views import html
from cachescope.views.controls import Pane, button, markup, row
from cachescope.views.plot import Plot
from cachescope.views.state import State
from cachescope.views.tabled import Tabled
from cachescope.views.will_hit import WillHit
from cachescope.wording import and_more

_FORMS: Final = (*RUNTIME_FORMS, *COMPILE_FORMS)
_MOST: Final = 12
_FIELDS: Final = 200
_NOTHING: Final = "No context was read: neither a snapshot (cachescope capture) nor a run whose hash details say what it was keyed by."


class Machines(Pane):
    """Which processes and machines are equal in what torch puts into its keys."""

    def __init__(self, scope: Read, state: State) -> None:
        self._scope, self._state = scope, state
        self.contexts = rows_of(scope.contexts, ContextRow)
        devices = [markup(html.title("Devices") + _devices(scope)), self._devices_plot()]
        if not self.contexts:
            super().__init__([markup(html.paragraph(_NOTHING)), *devices])
            return
        names = [(_name(scope, one), one.context) for one in self.contexts]
        first, last = self._first_pair()
        self.before, self.after = (_choice(label, names) for label in ("Before", "After"))
        if not state.contexts:
            state.contexts = (first, last)
        self.difference = markup()
        self.will_hit = WillHit(scope, state)
        groups = scope.context_groups()
        self.sharing_plot = Plot(
            lambda dark: figures.context_sharing(groups, scope.contexts, dark=dark),
            "which contexts share a key under which schema",
            guarded=state.guarded,
        )
        for box in (self.before, self.after):
            box.observe(state.guarded(self._picked), "value")
        state.observe(state.guarded(self._show), "contexts")
        swap = button("Swap", self._swap, "Before and after the other way round")
        super().__init__(
            [
                markup(html.title("Contexts", _CONTEXTS) + self._side_by_side()),
                Tabled(self.sharing_plot, lambda: groups),
                markup(html.title("What differs")),
                row(self.before, self.after, swap),
                self.difference,
                self.will_hit,
                *devices,
            ]
        )
        self._show()

    @property
    def query(self) -> str:
        """The line of Python that returns the differences."""
        if not self._state.contexts:
            return "scope.contexts"
        return "scope.context_difference({}, {})".format(*self._state.contexts)

    def frame(self) -> pd.DataFrame:
        """The differences between the two contexts."""
        if not self._state.contexts:
            return self._scope.contexts
        return self._scope.context_difference(*self._state.contexts)

    def _first_pair(self) -> tuple[int, int]:
        pairs = rows_of(self._scope.context_pairs().head(1), PairRow)
        if pairs:
            return pairs[0].before, pairs[0].after
        return self.contexts[0].context, self.contexts[-1].context

    def _picked(self, change: Bunch) -> None:
        self._state.contexts = (self.before.value, self.after.value)

    def _swap(self) -> None:
        before, after = self._state.contexts
        self._state.contexts = (after, before)

    def _show(self, change: object = None) -> None:
        before, after = self._state.contexts
        with self.before.hold_trait_notifications(), self.after.hold_trait_notifications():
            self.before.value, self.after.value = before, after
        rows = rows_of(self.frame(), FormDifference)
        known = [r for r in rows if r.status != "unknown"]
        unknown = sorted({r.form for r in rows if r.status == "unknown"})
        lines = [_difference_row(r) for r in known[:_FIELDS]]
        # Without remarks there is room for the values.
        shown = len(_DIFFERENCE) - (not any(line[-1] for line in lines))
        parts = [html.table(_DIFFERENCE[:shown], [line[:shown] for line in lines])]
        if len(known) > _FIELDS:
            parts.append(
                html.paragraph(and_more(len(known) - _FIELDS, where="explorer.frame() has all"), "faint")
            )
        if not known:
            parts.append(html.paragraph("Nothing that is known of the two differs."))
        if unknown:
            parts.append(html.paragraph(f"Not known whether these differ: {', '.join(unknown)}.", "faint"))
        self.difference.value = "".join(parts)

    def _side_by_side(self) -> str:
        shown = self.contexts[:_MOST]
        letters = {form: _letters(shown, form) for form in _FORMS}
        heads = ["", *(str(one.context) for one in shown)]
        labels = run_labels(self._scope.runs)
        names = [labels[one.run] if one.run in labels else _name(self._scope, one) for one in shown]
        rows = [["From", *map(safe, names)]]
        rows.append(["torch", *(safe(one.torch_version or "–") for one in shown)])
        rows += [
            [f"<code class='cs-keep'>{form}</code>", *(safe(word) for word in letters[form])]
            for form in _FORMS
        ]
        more = len(self.contexts) - _MOST
        rest = html.paragraph(and_more(more, where="scope.contexts has all"), "faint") if more > 0 else ""
        return html.table(heads, rows) + rest

    def _devices_plot(self) -> ipywidgets.Widget:
        if self._scope.devices["datasheet"].isna().all():
            return markup()
        return Plot(
            lambda dark: figures.device_rates(self._scope.devices, dark=dark),
            "devices beside their datasheets",
            guarded=self._state.guarded,
        )


_CONTEXTS: Final = (
    "What torch keys a process by, form by form: in one row, equal letters are equal values, ? is not known."
)
_DIFFERENCE: Final = ("Form", "Field", "Before", "After", "Note")


def _choice(label: str, names: list[tuple[str, int]]) -> ipywidgets.Dropdown:
    return ipywidgets.Dropdown(
        options=names,
        description=label,
        style={"description_width": "initial"},
        layout=ipywidgets.Layout(width="auto", max_width="420px"),
    )


def _name(scope: Read, context: ContextRow) -> str:
    if context.run is not None:
        return run_name(scope.facts.runs[context.run])
    host = f" of {context.host}" if context.host else ""
    return f"snapshot {context.context}{host}"


def _letters(contexts: list[ContextRow], form: str) -> list[str]:
    """One letter for each distinct value of a form, in order of appearance; ``?`` if it is unknown."""
    # For torch's own key a run records only a hash, which is equal if the key is.
    hashed = [one.torch_detail_hash if form == "torch_version_hash" else None for one in contexts]
    values: list[str | None] = [getattr(one, form) for one in contexts]
    if None in values and None not in hashed:
        values = hashed
    names: dict[Any, str] = {}
    for value in values:
        if value is not None:
            names.setdefault(value, chr(ord("A") + len(names) % 26))
    return ["?" if value is None else names[value] for value in values]


def _difference_row(found: FormDifference) -> list[str]:
    status = {"added": "not there", "removed": "not there"}
    before = html.cut(found.before) if found.status != "added" else status["added"]
    after = html.cut(found.after) if found.status != "removed" else status["removed"]
    names = [
        f"<code class='cs-keep'>{safe(name)}</code>" if name else "" for name in (found.form, found.field)
    ]
    return [*names, before, after, safe(found.note or "")]


def _devices(scope: Read) -> str:
    devices = scope.devices
    if devices.empty:
        return html.paragraph(
            "No device is named in what was read; entries of a cache directory and captures name them."
        )
    cards = "".join(card_html(row) for row in rows_of(devices.head(_MOST), DeviceRow))
    more = len(devices) - _MOST
    rest = html.paragraph(and_more(more, where="scope.devices has all"), "faint") if more > 0 else ""
    return f"<div class='cs-cards'>{cards}</div>{rest}"
