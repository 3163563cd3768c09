"""The pane Machines: contexts side by side, what differs between two, what a process would find, and the devices."""

from __future__ import annotations

from collections.abc import Iterator

import ipywidgets
import pandas as pd
from traitlets.utils.bunch import Bunch

from cachescope.analysis.contexts.differences import context_difference, context_pairs
from cachescope.answers.chosen import Chosen
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
from cachescope.views.controls import Pane, Shows, button, dropdown, heading, markup, row, sentence
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
    """Which processes and machines are equal in what torch puts into its keys."""

    beyond = "Contexts are those of the runs that looked something up in it, and captured ones. What differs between two, and devices, are of all."

    def __init__(self, scope: Read, state: State) -> None:
        self._scope, self._state, self._chosen = scope, state, Chosen(scope)
        self.contexts = scope.all_contexts.rows
        devices = pictured([Group("", "Devices", tuple(device_blocks(scope.named_devices.rows)))])
        if not self.contexts:
            super().__init__(sentence(NO_CONTEXT), *devices)
            return
        names = [(name, context) for context, name in context_names(scope).items()]
        self.side_by_side = markup(*self._side_by_side())
        self.will_hit = WillHit(scope, state)
        sharing = pictured(sharing_blocks(scope))
        pair = self._pair(names) if len(names) > 1 else []
        super().__init__(self.side_by_side, *sharing, *pair, self.will_hit, *devices)

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
