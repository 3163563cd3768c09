"""Carries selections from one reading of the sources to the next: numbers change when a log grows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from typing import Any

from cachescope.answers.read import Read
from cachescope.answers.what_if import WhatIf
from cachescope.errors import NotFoundError
from cachescope.keys.key_schema import KeySchema
from cachescope.views.state import State


def carried(state: State, old: Read, new: Read) -> dict[str, Any]:
    """The traits of the state with the numbers of another reading: None for what is gone.

    A field that is in no key any more cannot be left out: it is dropped.
    """
    was, now = old.facts, new.facts
    runs = _moved(
        *({run: (row.source, row.pid, row.rank) for run, row in of.runs.items()} for of in (was, now))
    )
    lookups = _moved(
        {lookup: (runs.get(row.run), row.order) for lookup, row in was.lookups.items()},
        {lookup: (row.run, row.order) for lookup, row in now.lookups.items()},
    )
    causes = _moved(*({row.cause: (row.verdict, row.fields) for row in of.causes} for of in (was, now)))
    entries = _moved(*({entry: row.path for entry, row in of.entries.items()} for of in (was, now)))
    contexts = _moved(
        {row.context: (row.source, runs.get(row.run)) for row in old.all_contexts.rows},
        {row.context: (row.source, row.run) for row in new.all_contexts.rows},
    )
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


def _moved(old: Mapping[int, Hashable], new: Mapping[int, Hashable]) -> dict[int | None, int]:
    """Old number to new number, by what identifies each; equal ones are matched in order."""
    now = {name: one for one, name in _named(new)}
    return {one: now[name] for one, name in _named(old) if name in now}


def _named(of: Mapping[int, Hashable]) -> Iterator[tuple[int, Hashable]]:
    seen: Counter[Hashable] = Counter()
    for one, name in of.items():
        yield one, (name, seen[name])
        seen[name] += 1
