"""The pane Machines: contexts side by side, what differs between two, what a process would find, and the devices."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

import ipywidgets
import pandas as pd
from traitlets.utils.bunch import Bunch

from cachescope.answers.chosen import Chosen
from cachescope.answers.comparison import Comparison
from cachescope.answers.predictions import predictions_of_run
from cachescope.answers.read import Read
from cachescope.answers.sharing import Form, Sharing, SideBySide, context_names
from cachescope.columns import frame_of, rows_of
from cachescope.figures.context_grid import context_sharing
from cachescope.figures.datasheets import device_rates
from cachescope.figures.texts import run_labels
from cachescope.frames.context_rows import ContextRow
from cachescope.frames.device_rows import DeviceRow
from cachescope.frames.sharing_rows import FormDifference, PairRow, PredictionRow
from cachescope.report.comparison import comparison_lines
from cachescope.report.contexts import folded_differences, shared_lines
from cachescope.report.devices import card_html
from cachescope.report.html import lines_html, safe
from cachescope.views import html
from cachescope.views.controls import Pane, button, dropdown, heading, markup, row, sentence
from cachescope.views.plot import Plot, Tabled
from cachescope.views.state import State
from cachescope.wording import and_more, listed, rank_names

_NOTE = "A prediction for a process that was recorded, from the fields of its keys; it assumes the program that made each entry."

_MOST: Final = 12
_NAMED: Final = 4
_FIELDS: Final = 60
# Of more contexts than these, names with times are not beside each other in one line.
_FULL_NAMES: Final = 6
_NOTHING: Final = "No context was read: neither a snapshot (cachescope capture) nor a run whose hash details say what it was keyed by."


class WillHit(Pane):
    """Choose a process; see its prediction for every entry."""

    def __init__(self, scope: Read, state: State) -> None:
        self._scope = scope
        looked_up = scope.asked_torch
        if not looked_up or not scope.facts.entries:
            super().__init__(markup(html.title("Will it hit") + html.faint(_missing(bool(looked_up)))))
            return
        labels = run_labels(scope.runs)
        runs = [(labels[run], run) for run in looked_up]
        self.run = dropdown("A process like", runs, value=looked_up[-1])
        self.answer = markup()
        self.run.observe(state.guarded(self._show), "value")
        super().__init__(heading("Will it hit", _NOTE), self.run, self.answer)
        self._show()

    def frame(self) -> pd.DataFrame:
        """The predictions, as returned by ``cachescope.will_hit(scope, scope, run=…)``."""
        return frame_of(predictions_of_run(self._scope, self.run.value), PredictionRow)

    def _show(self, change: object = None) -> None:
        predicted = predictions_of_run(self._scope, self.run.value)
        found = Comparison("the directory", "the process", predicted=predicted)
        self.answer.value = lines_html(comparison_lines(found))


def _missing(has_lookups: bool) -> str:
    lacks = "a cache directory" if has_lookups else "the trace or log of a run"
    return (
        f"Read {lacks} as well, and every entry is compared with the process;"
        " cachescope.will_hit does it for a snapshot that was captured on another machine."
    )


class Machines(Pane):
    """Which processes and machines are equal in what torch puts into its keys."""

    beyond = "Contexts are those of the runs that looked something up in it, and captured ones. What differs between two, and devices, are of all."

    def __init__(self, scope: Read, state: State) -> None:
        self._scope, self._state, self._chosen = scope, state, Chosen(scope)
        self.contexts = rows_of(scope.contexts, ContextRow)
        devices = [markup(html.title("Devices") + _devices(scope)), self._devices_plot()]
        if not self.contexts:
            super().__init__(sentence(_NOTHING), *devices)
            return
        self._names = context_names(scope)
        names = [(self._names[one.context], one.context) for one in self.contexts]
        self.side_by_side = markup(self._side_by_side())
        self.will_hit = WillHit(scope, state)
        self.sharing = self._sharing()
        pair = self._pair(names) if len(names) > 1 else []
        super().__init__(self.side_by_side, self.sharing, *pair, self.will_hit, *devices)

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

    def narrow(self, chosen: Chosen) -> None:
        """Show the contexts of the runs of some lookups alone."""
        self._chosen = chosen
        if self.contexts:
            self.side_by_side.value = self._side_by_side()

    def _pair(self, names: list[tuple[str, int]]) -> list[ipywidgets.Widget]:
        """What differs between two contexts, and the two to choose."""
        state = self._state
        self.before, self.after = (dropdown(label, names) for label in ("Before", "After"))
        self.difference = markup()
        if not state.contexts:
            state.contexts = self._first_pair()
        for box in (self.before, self.after):
            box.observe(state.guarded(self._picked), "value")
        state.observe(state.guarded(self._show), "contexts")
        self._show()
        swap = button("Swap", self._swap, "Before and after the other way round")
        return [heading("What differs"), row(self.before, self.after, swap), self.difference]

    def _first_pair(self) -> tuple[int, int]:
        pairs = rows_of(self._scope.context_pairs().head(1), PairRow)
        if pairs:
            return pairs[0].before, pairs[0].after
        return self.contexts[0].context, self.contexts[-1].context

    def _picked(self, change: Bunch) -> None:
        self._state.contexts = (self.before.value, self.after.value)

    def _swap(self) -> None:
        self._state.contexts = self._state.contexts[::-1]

    def _show(self, change: object = None) -> None:
        before, after = self._state.contexts
        with self.before.hold_trait_notifications(), self.after.hold_trait_notifications():
            self.before.value, self.after.value = before, after
        rows = rows_of(self.frame(), FormDifference)
        known = [r for r in rows if r.status != "unknown"]
        unknown = sorted({r.form for r in rows if r.status == "unknown"})
        changed, folded = folded_differences(known)
        lines = [_difference_row(r) for r in changed[:_FIELDS]]
        # Without remarks there is room for the values.
        shown = len(_DIFFERENCE) - (not any(line[-1] for line in lines))
        parts = [html.table(_DIFFERENCE[:shown], [line[:shown] for line in lines])]
        if len(changed) > _FIELDS:
            parts.append(html.faint(and_more(len(changed) - _FIELDS, where="explorer.frame() has all")))
        parts += map(html.paragraph, folded)
        if not known:
            parts.append(html.paragraph("Nothing that is known of the two differs."))
        if unknown:
            parts.append(html.faint(f"Not known whether these differ: {', '.join(unknown)}."))
        self.difference.value = "".join(parts)

    def _side_by_side(self) -> str:
        """Only the forms that differ have a row: what is equal or not known everywhere is a line."""
        runs = None if self._chosen.is_all else set(self._chosen.lookups["run"])
        found = SideBySide.of(self._scope, runs)
        title = html.title("Contexts", _CONTEXTS)
        if not found.columns:
            return title + html.paragraph("No run looked anything up in this time.")
        shown = found.columns[:_MOST]
        is_short = len(found.columns) > _FULL_NAMES
        heads = ["", *(self._members(column, is_short) for column in shown)]
        rows = [["torch", *(safe(column[0].torch_version or "–") for column in shown)]]
        rows += [[_form_name(f), *(html.cut(cell, 40) for cell in f.cells[:_MOST])] for f in found.forms]
        more = len(found.columns) - _MOST
        notes = [and_more(more, where="scope.contexts has all")] if more > 0 else []
        return title + html.table(heads, rows) + "".join(map(html.faint, [*notes, *shared_lines(found)]))

    def _members(self, column: Sequence[ContextRow], is_short: bool) -> str:
        """What a column is of, without the times of many runs."""
        if len(column) == 1 and not (is_short and column[0].run is not None):
            return self._names[column[0].context]
        names = [self._names[one.context] for one in column if one.run is None]
        if runs := [one.run for one in column if one.run is not None]:
            names.append(f"{'run' if len(runs) == 1 else 'runs'} {rank_names(runs)}")
        alike = f"{len(column):,} alike: " if len(column) > 1 else ""
        return f"{alike}{listed(names, _NAMED)}"

    def _sharing(self) -> ipywidgets.Widget:
        # There would be a grid of question marks.
        if not Sharing.of(self._scope).is_decided:
            return markup()
        groups = self._scope.context_groups()
        draw = partial(context_sharing, groups, self._scope.contexts)
        plot = Plot(draw, "which contexts share a key under which schema", guarded=self._state.guarded)
        return Pane(heading("Who shares a key", _SHARING), Tabled(plot, lambda: groups))

    def _devices_plot(self) -> ipywidgets.Widget:
        if self._scope.devices["datasheet"].isna().all():
            return markup()
        draw = partial(device_rates, self._scope.devices)
        return Plot(draw, "devices and their datasheets", guarded=self._state.guarded)


_CONTEXTS: Final = "What torch keys a process by, where it differs: in one row, equal letters are equal values, ? is not known."
_SHARING: Final = "A row for each smallest change to the schema that joins two contexts."
_DIFFERENCE: Final = ("Form", "Field", "Before", "After", "Note")


def _form_name(form: Form) -> str:
    name = f"<code class='cs-keep'>{form.form}</code>"
    if not form.settings:
        return name
    return f"{name}<br><span class='cs-faint'>{safe(listed(form.settings, _NAMED))}</span>"


def _difference_row(found: FormDifference) -> list[str]:
    before, after = html.cut(found.before), html.cut(found.after)
    if found.status == "changed" and found.before is None and found.after is None:
        before = after = "<span class='cs-faint'>known by its hash</span>"
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
    rest = html.faint(and_more(more, where="scope.devices has all")) if more > 0 else ""
    return f"<div class='cs-cards'>{cards}</div>{rest}"
