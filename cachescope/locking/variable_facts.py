"""The environment variables of this machine, compared with the keys of a lock."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Final

from cachescope.locking.facts import DIFFERS, EQUAL, UNKNOWN, Context, Fact, state_of
from cachescope.locking.lock import CacheLock, Variable
from cachescope.locking.variables import OFF, hashes_of, shown_value
from cachescope.wording import listed, plural

_FIELDS_NAMED: Final = 3
_THREADS: Final = "OMP_NUM_THREADS"
_THREAD_COUNT: Final = "cpp_runtime_thread_count"


def variable_facts(lock: CacheLock, here: Mapping[str, str | None]) -> Iterator[Fact]:
    """A fact for each variable that changed, and a single one if none did.

    Parameters
    ----------
    lock : CacheLock
    here : mapping
        What the variables are here.
    """
    found = [
        fact
        for name, variable in lock.variables.items()
        if here.get(name) != variable.value and (fact := _fact(name, variable, here.get(name), lock))
    ]
    if all(fact.state == EQUAL for fact in found):
        known = plural(len(lock.variables), "variable")
        yield Fact("variables", EQUAL, None, None, f"{known} that enter keys or switch caches off")
    yield from found
    if here.get(_THREADS) is None and (threads := _threads(lock)) is not None:
        yield threads


def _threads(lock: CacheLock) -> Fact | None:
    """The number of threads, which keys of code for the CPU hold since torch 2.13; None if none does."""
    held = {
        field.text or "" for context in lock.contexts if (field := context.get(_THREAD_COUNT)) is not None
    }
    if not held:
        return None
    reason = (
        f"torch counts the cores itself unless {_THREADS} says the number; the system has {os.cpu_count()}"
    )
    return Fact("threads", UNKNOWN, listed(sorted(held), _FIELDS_NAMED), None, reason, None)


def _fact(name: str, variable: Variable, here: str | None, lock: CacheLock) -> Fact | None:
    """A variable that is not what it was; None if that changes nothing."""
    locked, mine = shown_value(variable.value), shown_value(here)
    if name in OFF:
        off = OFF[name]
        if here != off.value or not any(file.kind in off.caches for file in lock.entries()):
            return None
        return Fact(name, DIFFERS, locked, mine, off.what, loses=off.caches)
    what = f"it sets {listed(variable.fields, _FIELDS_NAMED)}"
    concerned = [any(field in context for field in variable.fields) for context in lock.contexts]
    if not any(concerned):
        return None if lock.contexts else Fact(name, DIFFERS, locked, mine, what, None)
    holds = [
        _holds(context, variable, here) if is_concerned else True
        for context, is_concerned in zip(lock.contexts, concerned, strict=True)
    ]
    if all(holds):
        return Fact(name, EQUAL, locked, mine, f"{what}, here to what the keys hold")
    lost = frozenset(at for at, one in enumerate(holds) if one is False)
    if not lost:
        reason = f"{what}; the keys hold something else than it gives here, or what it gives is not known"
        return Fact(name, DIFFERS, locked, mine, reason, None)
    return Fact(name, state_of(holds), locked, mine, f"{what}, which the keys hold", lost)


def _holds(context: Context, variable: Variable, here: str | None) -> bool | None:
    """Whether the keys of a context hold what a variable gives here.

    False only if they hold what it gave where the lock was made: else a program may have set the option itself.
    """
    found: list[bool | None] = []
    for field, rule in variable.fields.items():
        if field not in context:
            continue
        mine, was = hashes_of(rule, here), hashes_of(rule, variable.value)
        held = context[field].detail_hash
        if mine is not None and held in mine:
            found.append(True)
        elif mine is not None and was is not None and held in was:
            found.append(False)
        else:
            found.append(None)
    if False in found:
        return False
    return None if None in found else True
