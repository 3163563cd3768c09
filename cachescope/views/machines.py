"""The pane Machines: contexts side by side, what differs between two, what a process would find, and the devices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import ipywidgets
from traitlets.utils.bunch import Bunch

from cachescope.analysis.contexts.differences import context_difference, context_pairs
from cachescope.answers.comparison import predictions_of_run
from cachescope.answers.read import Read
from cachescope.figures.texts import run_labels
from cachescope.report.blocks import Block, Group
from cachescope.report.contexts import (
    NO_CONTEXT,
    context_names,
    difference_blocks,
    prediction_lines,
    sharing_blocks,
    side_by_side_blocks,
    unpredicted,
)
from cachescope.report.devices import device_blocks
from cachescope.views.controls import InPython, Pane, Shows, button, dropdown, heading, markup, row, sentence
from cachescope.views.plot import pictured
from cachescope.views.state import State

_NOTE = "A prediction for a process that was recorded, from the fields of its keys; it assumes the program that made each entry."


class WillHit(Pane):
    """Choose a process; see its prediction for every entry."""

    def __init__(self, scope: Read, state: State) -> None:
        self._scope = scope
        if lacks := unpredicted(scope):
            super().__init__(heading("Will it hit", lacks))
            return
        looked_up = scope.asked_torch
        labels = run_labels(scope.tables.runs.rows)
        runs = [(labels[run], run) for run in looked_up]
        self.run = dropdown("A process like", runs, value=looked_up[-1])
        self.answer = markup()
        self.run.observe(state.guarded(self._show), "value")
        super().__init__(heading("Will it hit", _NOTE), self.run, self.answer)
        self._show()

    def _show(self, change: object = None) -> None:
        self.answer.show(*prediction_lines(predictions_of_run(self._scope, self.run.value)))


class Machines(Shows):
    """Compares processes and machines in what torch puts into its keys."""

    beyond = "Contexts are those of the runs that looked something up in it, and captured ones. What differs between two, and devices, are of all."

    def parts(self) -> Iterable[ipywidgets.Widget]:
        """The contexts, and below them the devices."""
        scope = self._scope
        self.contexts = scope.all_contexts.rows
        devices = pictured([Group("", "Devices", tuple(device_blocks(scope.named_devices.rows)))])
        if not self.contexts:
            return [sentence(NO_CONTEXT), *devices]
        names = [(name, context) for context, name in context_names(scope).items()]
        self.side_by_side = markup(*self._side_by_side())
        self.will_hit = WillHit(scope, self._state)
        sharing = pictured(sharing_blocks(scope))
        pair = self._pair(names) if len(names) > 1 else []
        return [self.side_by_side, *sharing, *pair, self.will_hit, *devices]

    def in_python(self) -> InPython:
        """The differences between the two contexts."""
        if not (pair := self._state.contexts):
            return "scope.contexts", lambda: self._scope.contexts
        return "scope.context_difference({}, {})".format(*pair), lambda: self._scope.context_difference(*pair)

    def show_chosen(self) -> None:
        """Show only the contexts of runs with chosen lookups."""
        if self.contexts:
            self.side_by_side.show(*self._side_by_side())

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
        if pairs := context_pairs(self._scope.known_contexts):
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
        rows = context_difference(self.contexts, before, after)
        self.difference.show(*difference_blocks(rows, "explorer.frame()"))

    def _side_by_side(self) -> Iterator[Block]:
        runs = None if self._chosen.is_all else set(self._chosen.lookups["run"])
        return side_by_side_blocks(self._scope, runs=runs)
