"""What a user compares: a path, a key, a lookup or a run, and what of a scope belongs to it."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import pandas as pd

from cachescope.analysis.named import is_number
from cachescope.answers.difference import SeenKey, side_of_runs
from cachescope.answers.read import Read
from cachescope.errors import NotFoundError
from cachescope.readers.remote_cache.address import is_redis, without_password


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a comparison.

    `keys` are its distinct keys, `runs` and `snapshots` numbers of runs and of captured contexts, `entries` the
    rows of the frame entries that lie in it.
    """

    name: str
    keys: list[SeenKey]
    runs: list[int]
    snapshots: list[int]
    entries: pd.DataFrame


def side_below(read: Read, path: str) -> Side:
    """What was read from a path, from what a pattern matches, or from a remote cache."""
    path = without_password(path)
    folders, is_below = _below(path)
    runs = runs_below(read, path)
    contexts = read.contexts[read.contexts["run"].isna()]
    snapshots = contexts.loc[contexts["source"].map(is_below).astype(bool), "context"].tolist()
    entries = read.entries[read.entries["path"].map(is_below).astype(bool)]
    return Side(path, side_of_runs(read, runs, folders), runs, snapshots, entries)


def runs_below(read: Read, path: str) -> list[int]:
    """The runs recorded in the files of a path or pattern."""
    _, is_below = _below(path)
    return [
        int(run)
        for run, sources in zip(read.runs["run"], read.runs["sources"], strict=True)
        if any(map(is_below, sources))
    ]


def _below(path: str) -> tuple[tuple[str, ...], Callable[[str], bool]]:
    """The folders that a path or pattern names, and whether a file is one of what it names, or lies in it."""
    given = [path] if is_redis(path) or os.path.lexists(path) else glob.glob(path, recursive=True)
    folders = tuple(os.path.join(name, "") for name in given)
    return folders, lambda source: source in given or source.startswith(folders)


def side_named(read: Read, name: str) -> Side:
    """A key, a lookup by its number, or ``run:N``."""
    none = read.entries.iloc[:0]
    kind, _, number = name.partition(":")
    if kind == "run" and is_number(number):
        if int(number) not in read.facts.runs:
            raise NotFoundError(f"no run {number}; there are runs 0 to {len(read.runs) - 1}")
        return Side(name, side_of_runs(read, [int(number)], []), [int(number)], [], none)
    everything = side_of_runs(read, read.runs["run"].tolist(), [""])
    return Side(name, [_one_key(read, everything, name)], [], [], none)


def _one_key(read: Read, everything: Iterable[SeenKey], name: str) -> SeenKey:
    if is_number(name):
        lookup = read.facts.lookups.get(int(name))
        if lookup is None:
            raise NotFoundError(f"no lookup {name}; there are {len(read.lookups)}")
        found = [row for row in everything if row.cache_key == lookup.cache_key]
    else:
        found = [row for row in everything if name and row.cache_key.startswith(name)]
    if not found:
        raise NotFoundError(f"no key {name!r} in what was read; A and B are paths only without further PATHs")
    if len(found) > 1:
        raise NotFoundError(f"{name!r} begins {len(found)} keys; give more of it")
    return found[0]
