"""Carries selections from one reading of the sources to the next: numbers change when a log grows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pandas as pd

from cachescope.answers.read import Read
from cachescope.answers.what_if import WhatIf
from cachescope.columns import plain_columns
from cachescope.errors import NotFoundError
from cachescope.keys.key_schema import KeySchema
from cachescope.views.state import State

Numbers = dict[int | None, int]


def carried(state: State, old: Read, new: Read) -> dict[str, Any]:
    """The traits of the state with the numbers of another reading: None for what is gone.

    A field that is in no key any more cannot be left out: it is dropped.
    """
    runs = _moved(old.runs, new.runs, "run", ["source", "pid", "rank"])
    lookups = _moved(old.lookups, new.lookups, "lookup", ["run", "order"], runs)
    causes = _moved(old.causes, new.causes, "cause", ["verdict", "fields"])
    entries = _moved(old.entries, new.entries, "entry", ["path"])
    contexts = _moved(old.contexts, new.contexts, "context", ["source", "run"], runs)
    pair = tuple(contexts[one] for one in state.contexts if one in contexts)
    sides = tuple(tuple(runs[run] for run in side if run in runs) for side in state.compared)
    numbers = {"run": runs, "cause": causes, "lookup": lookups, "other": lookups, "entry": entries}
    return {
        **{name: of.get(getattr(state, name)) for name, of in numbers.items()},
        "contexts": pair if len(pair) == len(state.contexts) else (),
        "compared": sides if all(sides) else (),
        "without": tuple(name for name in state.without if _can_be_left_out(name, new)),
    }


def _can_be_left_out(name: str, scope: Read) -> bool:
    try:
        WhatIf.of(scope, KeySchema(without=(name,)))
    except NotFoundError:
        return False
    return True


def _moved(
    old: pd.DataFrame, new: pd.DataFrame, number: str, by: list[str], runs: Numbers | None = None
) -> Numbers:
    """Old number to new number, by the columns that identify each; equal ones are matched in order.

    `runs` has the new numbers of the runs, where the run is one of these columns.
    """
    now = {name: one for one, name in _named(new, number, by)}
    return {one: now[name] for one, name in _named(old, number, by, runs) if name in now}


def _named(
    frame: pd.DataFrame, number: str, by: list[str], runs: Numbers | None = None
) -> Iterator[tuple[int, Any]]:
    columns = plain_columns(frame, [number, *by])
    if runs is not None:
        columns["run"] = list(map(runs.get, columns["run"]))
    seen: Counter[Any] = Counter()
    for one, *name in zip(*columns.values(), strict=True):
        yield one, (*name, seen[tuple(name)])
        seen[tuple(name)] += 1
