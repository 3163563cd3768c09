"""Carries selections from one reading of the sources to the next: numbers change when a log grows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pandas as pd

from cachescope.answers.read import Read
from cachescope.answers.what_if import WhatIf
from cachescope.columns import plain_columns
from cachescope.errors import NotFoundError
from cachescope.keys.key_schema import KeySchema
from cachescope.views.state import State

Numbers = dict[int, int]


def carried(state: State, old: Read, new: Read) -> dict[str, Any]:
    """The traits of the state with the numbers of another reading: None for what is gone.

    A field that is in no key any more cannot be left out: it is dropped.
    """
    runs = _moved(_runs(old), _runs(new))
    lookups = _moved(_lookups(old, runs), _lookups(new, None))
    by = ["verdict", "fields"]
    causes = _moved(_named(old.causes, "cause", by), _named(new.causes, "cause", by))
    entries = _moved(_named(old.entries, "entry", ["path"]), _named(new.entries, "entry", ["path"]))
    contexts = _moved(_contexts(old, runs), _contexts(new, None))
    pair = tuple(contexts[one] for one in state.contexts if one in contexts)
    sides = tuple(tuple(runs[run] for run in side if run in runs) for side in state.compared)
    numbers = {"run": runs, "cause": causes, "lookup": lookups, "other": lookups, "entry": entries}
    return {
        **{name: _number(getattr(state, name), of) for name, of in numbers.items()},
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


def _runs(scope: Read) -> list[tuple[int, Any]]:
    return _named(scope.runs, "run", ["source", "pid", "rank"])


def _lookups(scope: Read, runs: Numbers | None) -> list[tuple[int, Any]]:
    columns = plain_columns(scope.lookups, ["lookup", "run", "order"])
    return [(lookup, (_run(run, runs), order)) for lookup, run, order in zip(*columns.values(), strict=True)]


def _contexts(scope: Read, runs: Numbers | None) -> list[tuple[int, Any]]:
    columns = plain_columns(scope.contexts, ["context", "source", "run"])
    return [
        (context, (source, _run(run, runs))) for context, source, run in zip(*columns.values(), strict=True)
    ]


def _number(old: int | None, numbers: Numbers) -> int | None:
    return None if old is None else numbers.get(old)


def _run(run: int | None, runs: Numbers | None) -> int | None:
    return run if runs is None else _number(run, runs)


def _named(frame: pd.DataFrame, number: str, by: list[str]) -> list[tuple[int, Any]]:
    numbers, *names = plain_columns(frame, [number, *by]).values()
    return list(zip(numbers, zip(*names, strict=True), strict=True))


def _moved(old: Iterable[tuple[int, Any]], new: Iterable[tuple[int, Any]]) -> Numbers:
    """Old number to new number, by what each identifies; equal ones are matched in order."""
    now = {name: number for number, name in _with_occurrence(new)}
    return {number: now[name] for number, name in _with_occurrence(old) if name in now}


def _with_occurrence(named: Iterable[tuple[int, Any]]) -> Iterable[tuple[int, Any]]:
    seen: Counter[Any] = Counter()
    for number, name in named:
        yield number, (name, seen[name])
        seen[name] += 1
