"""The pane Compare: two sides picked from the runs, their lookups side by side, and what differs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import ipywidgets
import traitlets
from traitlets.utils.bunch import Bunch

from cachescope.answers.aligned_lookups import Aligned, Change
from cachescope.answers.comparison import ComparedRuns, side_times
from cachescope.answers.names import cache_name, short_fields
from cachescope.answers.read import Read
from cachescope.answers.starts import Sides, Start, first_sides, starts_of
from cachescope.json_types import JsonObject
from cachescope.report.blocks import Block, Column, Sorted, timed
from cachescope.report.comparison import change_names, differences, headline, side_by_side, side_lines, went
from cachescope.report.layout import Line
from cachescope.views.controls import (
    NOTHING,
    STYLE,
    Control,
    InPython,
    Shows,
    button,
    heading,
    markup,
    row,
    script,
    toggle_buttons,
)
from cachescope.views.state import State
from cachescope.views.table import ListedRows, Table
from cachescope.wording import (
    clock,
    date,
    duration,
    harmless,
    listed,
    percent,
    plural,
    rank_names,
    short_names,
)

_FIELDS: Final = 3
_ALL: Final = "all"
_ROWS: Final = "Aligned by their graphs; Time is what a miss cost. A row opens Why."
_ONE: Final = (
    "Only one run looked anything up, so there is nothing to compare it with. Read another recording as well."
)
_NONE: Final = "No lookup of A or B is of this time."
_HOW: Final = "Click a row to select that run, or all ranks of a job: as A if it began before B, otherwise as B. Click A or B to choose the side. Ctrl-click or ⌘-click adds a run, Shift-click adds a range."
_CELL: Final = 80
SIDES: Final = ("A", "B")
_OF_RUNS: Final = ("Run", "Program", "Rank", "Started", "Folder", "Hit rate", "Compile time")


class RunPicker(Control):
    """A list of runs, the newest first, each with a cell for A and one for B; the row of a job represents all its ranks."""

    _esm = script("make.js", "run_picker.js")
    _css = STYLE

    label = traitlets.Unicode("runs to compare, the newest first").tag(sync=True)
    columns: Any = traitlets.List().tag(sync=True)
    rows: Any = traitlets.List().tag(sync=True)
    sides: Any = traitlets.List([[], []]).tag(sync=True)
    picked: Any = traitlets.List().tag(sync=True)
    """A side, runs, whether they are added, and a time, so that picking the same again is a change."""

    def __init__(self, starts: Sequence[Start], on_pick: Callable[[Sides], None]) -> None:
        self._runs = {run for start in starts for run in start.runs}
        columns, rows = _listed(starts)
        super().__init__(columns=columns, rows=rows)
        self.observe(lambda change: self._pick(change["new"], on_pick), "picked")

    def _pick(self, picked: list[Any], on_pick: Callable[[Sides], None]) -> None:
        # The page may send anything.
        match picked:
            case [side, [*runs], is_added, _] if side in SIDES and self._runs.issuperset(runs):
                sides = tuple(self.sides[0]), tuple(self.sides[1])
                on_pick(after_picking(sides, SIDES.index(side), runs, is_added))

    def __repr__(self) -> str:
        return f"RunPicker({plural(len(self._runs), 'run')})"


def after_picking(sides: Sides, at: int, runs: Sequence[int], is_added: bool) -> Sides:
    """The two sides after runs were picked for one of them. A run is never on both, and no side is left empty.

    Examples
    --------
    >>> after_picking(((0,), (1,)), 1, [2], is_added=False)
    ((0,), (2,))
    >>> after_picking(((0,), (1,)), 1, [2], is_added=True)
    ((0,), (1, 2))

    What is picked of the other side changes sides with what was here:

    >>> after_picking(((0,), (1,)), 1, [0], is_added=False)
    ((1,), (0,))
    """
    here, there = sides[at], sides[1 - at]
    if not is_added:
        picked = tuple(runs)
    elif set(runs) <= set(here):
        picked = tuple(run for run in here if run not in runs)
    else:
        picked = (*here, *(run for run in runs if run not in here))
    left = tuple(run for run in there if run not in picked) or tuple(run for run in here if run not in picked)
    if not picked or not left:
        return sides
    return (picked, left) if at == 0 else (left, picked)


def _listed(starts: Sequence[Start]) -> tuple[list[str], list[JsonObject]]:
    """The columns with values, and a row for each start. The row of a job stands for all ranks, and opens to one for each."""
    runs = [one for start in starts for one in start.members]
    folders = short_names(dict.fromkeys(one.folder for one in runs))
    programs = short_names(one.program for one in runs if one.program is not None)
    has_ranks = any(one.row.rank is not None for one in runs)
    optional = {"Rank": has_ranks, "Program": bool(programs), "Folder": len(folders) > 1}
    names = [name for name in _OF_RUNS if optional.get(name, True)]

    def line(start: Start, job: list[int] | None = None, **more: str) -> JsonObject:
        first, rate = start.members[0], start.rate
        cells = {
            "Run": f"run {first.row.run}",
            "Program": first.row.label or programs.get(first.program or "", "–"),
            "Rank": "–" if first.row.rank is None else str(first.row.rank),
            "Started": "–" if (at := start.start_time) is None else f"{date(at)} {clock(at)}",
            "Folder": folders[first.folder],
            "Hit rate": percent(rate.hit_rate, "–"),
            "Compile time": "–" if (ns := rate.time_lost_ns) is None else duration(ns),
        } | more
        shown = [harmless(cells[name][:_CELL]) for name in names]
        return {"runs": list(start.runs), "job": job, "cells": shown}

    rows = []
    for start in reversed(starts):
        job = list(start.runs) if len(start.members) > 1 else None
        if job:
            rows.append(line(start, Run=plural(len(job), "rank"), Rank="all"))
        rows += [line(Start((one,)), job) for one in start.members]
    return names, rows


class Compare(Shows):
    """Compares runs with others: which of their lookups hit on one side only, and what differs between their keys."""

    beyond = "Rows are those with a lookup of it on either side. Times in events and phases are of whole processes."

    whole: ComparedRuns | None = None
    found: ComparedRuns | None = None

    def __init__(self, scope: Read, state: State | None = None) -> None:
        self._starts = starts_of(scope)
        super().__init__(scope, state)

    def words(self) -> Iterable[Block]:
        """Why there are not two sides."""
        self._state.compared = tuple(self._state.compared or first_sides(self._scope, self._starts) or ())
        return () if self._state.compared else (Line(_ONE if self._starts else NOTHING),)

    def parts(self) -> Iterable[ipywidgets.Widget]:
        """The two sides, and what differs."""
        guarded = self._state.guarded
        self.picker = RunPicker(self._starts, guarded(lambda sides: setattr(self._state, "compared", sides)))
        self.said, self.headline, self.differences, self.side_by_side = (markup() for _ in range(4))
        self.changes = toggle_buttons("Show")
        self.changes.observe(guarded(self._filtered), "value")
        name, empty = "lookups of A and B, aligned", "No lookup went so."
        self.table = Table(ListedRows((), []), name, empty, on_choose=guarded(self._open), page_size=20)
        self._state.observe(guarded(self._show), "compared")
        self._state.observe(guarded(self._show_rows), "change")
        self._show()
        swap = row(button("Swap", self._swap, "A and B the other way round"), self.said)
        runs = (heading("Runs", _HOW), self.picker, swap, self.headline, self.differences)
        return [*runs, heading("Lookups", _ROWS), self.changes, self.table, self.side_by_side]

    @property
    def scope(self) -> Read:
        """The scope that the numbers of runs and lookups are of."""
        return self._scope

    def in_python(self) -> InPython:
        """The aligned lookups, those of all changes and times."""
        if (whole := self.whole) is None:
            return "scope.lookups", lambda: self._scope.lookups
        line = "scope.compare_view({}, {}).frame()".format(*(list(side) for side in self._state.compared))
        return line, lambda: whole.frame

    def _swap(self) -> None:
        self._state.compared = self._state.compared[::-1]

    def _open(self, place: int) -> None:
        assert self.found is not None
        self._state.show_why(self.found.aligned[place].to_explain)

    def _filtered(self, change: Bunch) -> None:
        self._state.change = None if change["new"] == _ALL else change["new"]

    def _show(self, change: object = None) -> None:
        before, after = self._state.compared
        self.whole = ComparedRuns.of(self._scope, before, after)
        self._times = side_times(self._scope, before, after)
        self.picker.sides = [list(before), list(after)]
        self.show_chosen()

    def show_chosen(self) -> None:
        """Show only the rows of the chosen lookups."""
        assert self.whole is not None
        self.found = found = self.whole.among(self._chosen)
        times = self._times
        self.said.show(*side_lines(found))
        self.headline.show(headline(found, times))
        is_any = found.aligned or not self.whole.aligned
        self.differences.show(differences(found) if is_any else Line(_NONE))
        self.side_by_side.show(*side_by_side(found, times))
        # The chosen change stays if it is among them.
        counts = {change: count for change, count in found.counts.items() if count}
        names, wanted = change_names(found), self._state.change
        options = [(f"{names[change]} {count:,}", change) for change, count in counts.items()]
        self.changes.options = [(f"All {len(found.aligned):,}", _ALL), *options]
        self.changes.value = wanted if wanted in counts else _ALL
        self._show_rows()

    def _show_rows(self, change: object = None) -> None:
        assert self.found is not None
        wanted = self._state.change
        if wanted not in {one.change for one in self.found.aligned}:
            wanted = None
        self.changes.value = wanted or _ALL
        order = list(self.found.counts)
        rows = [row for row in enumerate(self.found.aligned) if wanted in (None, row[1].change)]
        rows.sort(key=lambda row: order.index(row[1].change))
        self.table.show(ListedRows(self._heads(change_names(self.found)), rows))

    def _heads(self, names: Mapping[Change, str]) -> tuple[Column, ...]:
        return (
            Column("Change", "word", lambda row: names[row.change]),
            Column("Ranks", "word", self._ranks, is_optional=True),
            Column("Cache", "word", lambda row: cache_name(row.one)),
            Column("Compile", "word", "one.compile_id"),
            Column("Function", "word", "one.function", is_optional=True),
            Column("A", "word", lambda row: went(row.before)),
            Column("B", "word", lambda row: went(row.after)),
            Column("Time A", "number", lambda row: _time(row.before)),
            Column("Time B", "number", lambda row: _time(row.after)),
            Column("Fields that differ", "text", _fields),
        )

    def _ranks(self, one: Aligned) -> str | None:
        """The ranks of both sides, given once if they are the same."""
        runs = self._scope.facts.runs
        sides = []
        for rows in (one.before, one.after):
            known = sorted({rank for row in rows if (rank := runs[row.run].rank) is not None})
            sides += [rank_names(known)] if known else []
        return " → ".join(dict.fromkeys(sides)) or None

    def __repr__(self) -> str:
        if self.found is None:
            return "Compare(nothing to compare)"
        counts, every = self.found.counts, len(self.found.aligned)
        return f"Compare({counts['regressed']} regressed, {counts['fixed']} fixed of {every})"


def _fields(one: Aligned) -> str | None:
    if one.changes is not None:
        fields = [change.field for change in one.changes]
        if fields:
            return listed(short_fields(fields).values(), _FIELDS)
        return "same key" if one.by == "key" else "none that is recorded"
    if one.by != "place":
        return None
    return "not recorded" if all(row.cache_key for row in one.rows) else "no key"


def _time(rows: tuple[Any, ...]) -> Sorted | None:
    times = [row.time_taken_ns for row in rows if row.outcome != "hit" and row.time_taken_ns is not None]
    return timed(sum(times) if times else None)
