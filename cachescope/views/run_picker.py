"""The runs to compare, in the browser: a click on a cell picks a run for one side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import traitlets

from cachescope.answers.starts import OneRun, Sides, Start
from cachescope.json_types import JsonObject
from cachescope.views.widget_base import STYLE, Control, script
from cachescope.wording import clock, date, duration, harmless, percent, plural, short_names

_CELL: Final = 80
SIDES: Final = ("A", "B")


class RunPicker(Control):
    """A list of runs, the newest first, each with a cell for A and one for B.

    A click picks this run alone; with Ctrl or ⌘ it is added or taken away, with Shift all up to it are added. The row of
    a job represents all its ranks.
    """

    _esm = script("make.js", "run_picker.js")
    _css = STYLE

    label = traitlets.Unicode("runs to compare, the newest first").tag(sync=True)
    columns: Any = traitlets.List().tag(sync=True)
    rows: Any = traitlets.List().tag(sync=True)
    sides: Any = traitlets.List([[], []]).tag(sync=True)
    picked: Any = traitlets.List().tag(sync=True)
    """A side, runs, whether they are added, and a time that makes picking the same again a change."""

    def __init__(self, starts: Sequence[Start], on_pick: Callable[[Sides], None]) -> None:
        runs = [one for start in starts for one in start.members]
        self._runs = {one.row.run for one in runs}
        shown = _Columns(runs)
        super().__init__(
            columns=shown.names, rows=[row for start in reversed(starts) for row in shown.rows(start)]
        )
        self.observe(lambda change: self._pick(change["new"], on_pick), "picked")

    def _pick(self, picked: list[Any], on_pick: Callable[[Sides], None]) -> None:
        # The page could send anything.
        if (
            len(picked) == 4
            and picked[0] in SIDES
            and isinstance(picked[1], list)
            and self._runs.issuperset(picked[1])
        ):
            sides = tuple(self.sides[0]), tuple(self.sides[1])
            on_pick(after_picking(sides, SIDES.index(picked[0]), picked[1], picked[2]))

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


class _Columns:
    """The columns that say something: a rank, a program or a folder only where there are any, or several."""

    def __init__(self, runs: Sequence[OneRun]) -> None:
        self._folders = short_names(dict.fromkeys(one.folder for one in runs))
        self._programs = short_names(one.program for one in runs if one.program is not None)
        has_ranks = any(one.row.rank is not None for one in runs)
        optional = {"Rank": has_ranks, "Program": bool(self._programs), "Folder": len(self._folders) > 1}
        self.names = [name for name in _ALL if optional.get(name, True)]

    def rows(self, start: Start) -> list[JsonObject]:
        """A start; of a job with ranks a row for all of them, which opens one for each."""
        members = [self._row([one.row.run], self._cells(one)) for one in start.members]
        if len(members) == 1:
            return members
        cells = self._cells(start.members[0]) | {
            "Run": plural(len(members), "rank"),
            "Rank": "all",
            "Started": _moment(start.start_time),
            "Hit rate": percent(start.rate.hit_rate, "–"),
            "Compile time": _time(start.rate.time_lost_ns),
        }
        job = list(start.runs)
        return [self._row(job, cells), *({**row, "job": job} for row in members)]

    def _row(self, runs: list[int], cells: dict[str, str]) -> JsonObject:
        return {"runs": runs, "job": None, "cells": [harmless(cells[name][:_CELL]) for name in self.names]}

    def _cells(self, one: OneRun) -> dict[str, str]:
        return {
            "Run": f"run {one.row.run}",
            "Program": one.row.label or self._programs.get(one.program or "", "–"),
            "Rank": "–" if one.row.rank is None else str(one.row.rank),
            "Started": _moment(one.row.start_time),
            "Folder": self._folders[one.folder],
            "Hit rate": percent(one.rate.hit_rate, "–"),
            "Compile time": _time(one.rate.time_lost_ns),
        }


_ALL: Final = ("Run", "Program", "Rank", "Started", "Folder", "Hit rate", "Compile time")


def _moment(ns: int | None) -> str:
    return "–" if ns is None else f"{date(ns)} {clock(ns)}"


def _time(ns: int | None) -> str:
    return "–" if ns is None else duration(ns)
