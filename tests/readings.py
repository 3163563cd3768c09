"""Recordings that many tests read the same way, each reading made once for all tests of a process.

A Scope never changes, and its frames are copies: what one test does with them no other sees. `changed_readings` holds them
to it at the end.
"""

import os
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

import cachescope
from cachescope import scope
from cachescope.readers.reading import Reading

_FRAMES = ("runs", "lookups", "misses", "entries", "problems")
_held: dict[tuple[str, ...], tuple[cachescope.Scope, str]] = {}
_HELD = 12


@lru_cache(256)
def _read(paths: tuple[str, ...]) -> cachescope.Scope:
    scope = cachescope.read(*paths)
    if len(_held) < _HELD and paths not in _held:
        _held[paths] = scope, _all_of(scope)
    return scope


def read_once(*paths: Path) -> cachescope.Scope:
    """As `cachescope.read`, for files that no test writes to."""
    return _read(tuple(map(os.fspath, paths)))


def read_by(read: Callable[..., Any], *given: Any, strict: bool = False) -> Reading:
    """What one reader reads of what it is given."""
    reading = Reading(strict=strict)
    read(*given, reading)
    return reading


def changed_readings() -> Iterator[tuple[str, ...]]:
    """The sources whose scope is not what it was when they were read: of the first few, that would be seen."""
    for paths, (held, before) in _held.items():
        if _all_of(held) != before:
            yield paths


def _all_of(scope: cachescope.Scope) -> str:
    return "".join(repr(getattr(scope, name).to_dict("list")) for name in _FRAMES)


@pytest.fixture(scope="session")
def tour() -> cachescope.Scope:
    """The sample of six runs, three of which changed something."""
    return cachescope.read(cachescope.sample("tour"))


@pytest.fixture
def commands_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands that are given the same sources share what the first of them read: only what is said of it is tested."""
    read, known = scope.read, dict[object, cachescope.Scope]()

    def reading(*given: str, strict: bool, baseline: str, **others: object) -> cachescope.Scope:
        asked = given, strict, baseline
        if asked not in known:
            known[asked] = read(*given, strict=strict, baseline=baseline, **others)  # type: ignore[arg-type]
        return known[asked]

    monkeypatch.setattr(scope, "read", reading)
