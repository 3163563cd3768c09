"""The file that a lock guards: one in its cache directory whose name begins with the lock's."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable

from cachescope.frames.directory_rows import EntryRow


class LockOwners:
    """Finds the files that a lock guards.

    torch/_inductor/codecache.py locks ``<key>``, PGO ``code_state_….pkl``, the on-disk cache the first four
    characters of a name; the caching package locks a folder with ``dir.lock``.
    """

    def __init__(self, rows: Iterable[EntryRow]) -> None:
        self._names: dict[str, list[tuple[str, int]]] = defaultdict(list)
        self._folders: dict[str, list[EntryRow]] = defaultdict(list)
        self._rows: dict[int, EntryRow] = {}
        for row in rows:
            self._rows[row.entry] = row
            folder, name = os.path.split(row.path)
            self._folders[folder].append(row)
            self._names[row.root].append((name, row.entry))
            if row.cache_key is not None:
                self._names[row.root].append((row.cache_key, row.entry))
        for names in self._names.values():
            names.sort()

    def of(self, lock: EntryRow, key: str) -> list[EntryRow]:
        """The files in the lock's cache directory that match the key of its name."""
        if key == "dir":
            return self._folders.get(os.path.dirname(lock.path), [])
        names = self._names.get(lock.root, [])
        at = bisect_left(names, (key, -1))
        found: dict[int, EntryRow] = {}
        while at < len(names) and names[at][0].startswith(key):
            found[names[at][1]] = self._rows[names[at][1]]
            at += 1
        return list(found.values())
