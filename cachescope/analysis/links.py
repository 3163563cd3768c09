"""What belongs together in a cache directory, and what is left alone.

AOTAutograd entry -> FX entries (the keys stored in it), FX entry -> generated code (the code key stored in it),
lock -> what it is for (its name). Links hold within one cache directory.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd

from cachescope.columns import records
from cachescope.frames.directory import LINKS, ORPHANS
from cachescope.terms import CODE, FXGRAPH, LOCK

_Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Reference:
    """A key that an entry names, the kind it is of, and where the name is from."""

    kind: str
    key: str
    known_by: str


def links_frame(entries: pd.DataFrame) -> pd.DataFrame:
    """The frame links, from the frame entries; a child that is gone has a row without one."""
    return LINKS.build(_links(records(entries)))


def orphans_frame(entries: pd.DataFrame) -> pd.DataFrame:
    """The frame orphans: entries whose other side is gone, and files that nothing refers to.

    Code counts as alone only in a directory whose FX entries say which code they use, and only Python
    wrappers: kernels are found by what they were compiled from.
    """
    rows = records(entries)
    links = list(_links(rows))
    kinds = {row["entry"]: row["cache"] for row in rows}
    lost = [
        {"entry": link["parent"], "cache": kinds[link["parent"]], "reason": _gone(link)}
        for link in links
        if link["child"] is None
    ]
    referred = {link["child"] for link in links}
    roots = {row["root"] for row in rows if row["cache"] == FXGRAPH and row["code_key"] is not None}
    alone = [
        {"entry": row["entry"], "cache": CODE, "reason": "no FX entry uses this code"}
        for row in rows
        if row["cache"] == CODE
        and row["root"] in roots
        and row["path"].endswith(".py")
        and row["status"] != "temporary"
        and row["entry"] not in referred
    ]
    return ORPHANS.build(sorted([*lost, *alone], key=lambda row: row["entry"]))


def _links(rows: list[_Row]) -> Iterator[_Row]:
    # What cannot be read is there all the same; what is temporary or not torch's is nobody's child.
    there = [row for row in rows if row["status"] in ("ok", "damaged") and row["cache"] != LOCK]
    of_key: dict[tuple[str, str, str], list[_Row]] = defaultdict(list)
    for row in there:
        if row["cache_key"] is not None:
            of_key[row["root"], row["cache"], row["cache_key"]].append(row)
    owners = _LockOwners(there)
    for row in rows:
        for reference in _references(row):
            if reference.kind == LOCK:
                found = owners.of(row, reference.key)
            else:
                found = of_key.get((row["root"], reference.kind, reference.key), [])
            yield from _link_rows(row, reference, found)


class _LockOwners:
    """Finds what a lock is for: a file of its directory whose name begins with the lock's.

    torch/_inductor/codecache.py locks ``<key>``, PGO ``code_state_….pkl``, the on-disk cache the first four
    characters of a name; the caching package locks a folder with ``dir.lock``.
    """

    def __init__(self, rows: list[_Row]) -> None:
        self._names: dict[str, list[tuple[str, int]]] = defaultdict(list)
        self._folders: dict[str, list[_Row]] = defaultdict(list)
        self._rows = {row["entry"]: row for row in rows}
        for row in rows:
            folder, name = os.path.split(row["path"])
            self._folders[folder].append(row)
            self._names[row["root"]].append((name, row["entry"]))
            if row["cache_key"] is not None:
                self._names[row["root"]].append((row["cache_key"], row["entry"]))
        for names in self._names.values():
            names.sort()

    def of(self, lock: _Row, key: str) -> list[_Row]:
        if key == "dir":
            return self._folders.get(os.path.dirname(lock["path"]), [])
        names = self._names.get(lock["root"], [])
        at = bisect_left(names, (key, -1))
        found: dict[int, _Row] = {}
        while at < len(names) and names[at][0].startswith(key):
            found[names[at][1]] = self._rows[names[at][1]]
            at += 1
        return list(found.values())


def _references(row: _Row) -> Iterator[_Reference]:
    if row["status"] != "ok":
        return
    match row["cache"]:
        case "aotautograd" if row["code_key"] is not None:
            # Its graphs lie in the entry itself: torch._functorch.config.bundled_autograd_cache.
            yield _Reference(CODE, row["code_key"], "cache_key of the graph bundled in the entry")
        case "aotautograd":
            for key in row["fx_keys"]:
                yield _Reference(FXGRAPH, key, "fx_graph_cache_info in the entry")
        case "fxgraph" if row["code_key"] is not None:
            yield _Reference(CODE, row["code_key"], "cache_key in the entry")
        case "lock" if row["cache_key"] is not None:
            yield _Reference(LOCK, row["cache_key"], "the name of the lock")


def _link_rows(row: _Row, reference: _Reference, found: list[_Row]) -> Iterator[_Row]:
    children: list[_Row | None] = [*found] or [None]
    for child in children:
        yield {
            "parent": row["entry"],
            "parent_kind": row["cache"],
            "child": None if child is None else child["entry"],
            "child_kind": reference.kind if child is None else child["cache"],
            "child_key": reference.key,
            "known_by": reference.known_by,
        }


def _gone(link: _Row) -> str:
    if link["parent_kind"] == LOCK:
        return "what it locks is not there"
    what = "its generated code" if link["child_kind"] == CODE else "its FX entry"
    return f"{what} {link['child_key']} is gone"
