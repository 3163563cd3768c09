"""What a user compares: a path, a key, a lookup or a run, and what of a scope belongs to it."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from cachescope.analysis.named import is_number
from cachescope.answers.difference import SeenKey, side_of_runs
from cachescope.answers.recording import Recording
from cachescope.errors import NotFoundError
from cachescope.frames.directory_rows import EntryRow
from cachescope.readers.remote_cache.address import is_redis, without_password


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a comparison."""

    name: str
    keys: list[SeenKey]  # its distinct keys
    runs: list[int]
    snapshots: list[int]  # the numbers of captured contexts
    entries: list[EntryRow]  # those that lie in it


def side_below(read: Recording, path: str) -> Side:
    """What was read from a path, from what a pattern matches, or from a remote cache."""
    path = without_password(path)
    folders, is_below = _below(path)
    runs = runs_below(read, path)
    snapshots = [row.context for row in read.all_contexts.rows if row.run is None and is_below(row.source)]
    entries = [row for row in read.tables.entries.rows if is_below(row.path)]
    return Side(path, side_of_runs(read, runs, folders), runs, snapshots, entries)


def runs_below(read: Recording, path: str) -> list[int]:
    """The runs recorded in the files of a path or pattern."""
    _, is_below = _below(path)
    return [row.run for row in read.tables.runs.rows if any(map(is_below, row.sources))]


def _below(path: str) -> tuple[tuple[str, ...], Callable[[str], bool]]:
    """The folders that a path or pattern names, and whether a file is one of what it names, or lies in it."""
    given = [path] if is_redis(path) or os.path.lexists(path) else glob.glob(path, recursive=True)
    folders = tuple(os.path.join(name, "") for name in given)
    return folders, lambda source: source in given or source.startswith(folders)


def side_named(read: Recording, name: str) -> Side:
    """A key, a lookup by its number, or ``run:N``."""
    runs = read.facts.runs
    kind, _, number = name.partition(":")
    if kind == "run" and is_number(number):
        if int(number) not in runs:
            raise NotFoundError(f"no run {number}; there are runs 0 to {len(runs) - 1}")
        return Side(name, side_of_runs(read, [int(number)], []), [int(number)], [], [])
    everything = side_of_runs(read, runs, [""])
    return Side(name, [_one_key(read, everything, name)], [], [], [])


def _one_key(read: Recording, everything: Iterable[SeenKey], name: str) -> SeenKey:
    if is_number(name):
        lookup = read.facts.lookups.get(int(name))
        if lookup is None:
            raise NotFoundError(f"no lookup {name}; there are {len(read.facts.lookups)}")
        found = [row for row in everything if row.cache_key == lookup.cache_key]
    else:
        found = [row for row in everything if name and row.cache_key.startswith(name)]
    if not found:
        raise NotFoundError(f"no key {name!r} in what was read; A and B are paths only without further PATHs")
    if len(found) > 1:
        raise NotFoundError(f"{name!r} begins {len(found)} keys; give more of it")
    return found[0]
