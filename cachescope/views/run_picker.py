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
        self._runs = {run for start in starts for run in start.runs}
        columns, rows = _listed(starts)
        super().__init__(columns=columns, rows=rows)
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


def _listed(starts: Sequence[Start]) -> tuple[list[str], list[JsonObject]]:
    """The columns that say something, and a row for each start; of a job with ranks one for all of them, which opens one for each."""
    runs = [one for start in starts for one in start.members]
    folders = short_names(dict.fromkeys(one.folder for one in runs))
    programs = short_names(one.program for one in runs if one.program is not None)
    has_ranks = any(one.row.rank is not None for one in runs)
    optional = {"Rank": has_ranks, "Program": bool(programs), "Folder": len(folders) > 1}
    names = [name for name in _ALL if optional.get(name, True)]

    def row(of: OneRun | Start, one: OneRun, job: list[int] | None = None, **more: str) -> JsonObject:
        start_time = of.start_time if isinstance(of, Start) else one.row.start_time
        cells = {
            "Run": f"run {one.row.run}",
            "Program": one.row.label or programs.get(one.program or "", "–"),
            "Rank": "–" if one.row.rank is None else str(one.row.rank),
            "Started": "–" if start_time is None else f"{date(start_time)} {clock(start_time)}",
            "Folder": folders[one.folder],
            "Hit rate": percent(of.rate.hit_rate, "–"),
            "Compile time": "–" if of.rate.time_lost_ns is None else duration(of.rate.time_lost_ns),
        } | more
        shown = list(of.runs) if isinstance(of, Start) else [one.row.run]
        return {"runs": shown, "job": job, "cells": [harmless(cells[name][:_CELL]) for name in names]}

    rows = []
    for start in reversed(starts):
        first, *others = start.members
        if others:
            rows.append(row(start, first, Run=plural(len(start.members), "rank"), Rank="all"))
        job = list(start.runs) if others else None
        rows += [row(one, one, job) for one in start.members]
    return names, rows


_ALL: Final = ("Run", "Program", "Rank", "Started", "Folder", "Hit rate", "Compile time")
