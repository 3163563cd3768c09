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
    """The traits of the state for the new scope: with its numbers, None for what is gone.

    A field that is in no key any more cannot be left out: it is dropped.
    """
    runs = _moved(_runs(old), _runs(new))
    lookups = _moved(_lookups(old, runs), _lookups(new, None))
    causes = _moved(
        _named(old.causes, "cause", ["verdict", "fields"]), _named(new.causes, "cause", ["verdict", "fields"])
    )
    entries = _moved(_named(old.entries, "entry", ["path"]), _named(new.entries, "entry", ["path"]))
    contexts = _moved(_contexts(old, runs), _contexts(new, None))
    moved = {
        name: None if (number := getattr(state, name)) is None else numbers.get(number)
        for name, numbers in (
            ("run", runs),
            ("cause", causes),
            ("lookup", lookups),
            ("other", lookups),
            ("entry", entries),
        )
    }
    pair = tuple(contexts[one] for one in state.contexts if one in contexts)
    return {
        **moved,
        "contexts": pair if len(pair) == len(state.contexts) else (),
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


def _run(run: int | None, runs: Numbers | None) -> int | None:
    return run if runs is None or run is None else runs.get(run)


def _named(frame: pd.DataFrame, number: str, by: list[str]) -> list[tuple[int, Any]]:
    numbers, *names = plain_columns(frame, [number, *by]).values()
    return list(zip(numbers, zip(*names, strict=True), strict=True))


def _moved(old: Iterable[tuple[int, Any]], new: Iterable[tuple[int, Any]]) -> Numbers:
    """Old number to new number, by what each identifies; equal ones are matched in order."""
    now = {name: number for number, name in _told_apart(new)}
    return {number: now[name] for number, name in _told_apart(old) if name in now}


def _told_apart(named: Iterable[tuple[int, Any]]) -> Iterable[tuple[int, Any]]:
    seen: Counter[Any] = Counter()
    for number, name in named:
        yield number, (name, seen[name])
        seen[name] += 1
