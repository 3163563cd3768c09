"""What may lie unseen in a cache directory: where something was not read, nothing is called gone or unused."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from cachescope.frames.directory_rows import EntryRow
from cachescope.terms import (
    AOTAUTOGRAD,
    AUTOTUNE,
    CACHES,
    CODE,
    FXGRAPH,
    LOCK,
    OTHER,
    OTHER_TEXT,
    PRECOMPILE,
    REFUSED,
    UNREADABLE,
)

# Kinds that name code: all of them must be read before code is called unused.
_NAMING: Final = (*CACHES, CODE, AUTOTUNE, PRECOMPILE)


def is_refused(row: EntryRow) -> bool:
    """Whether torch itself cannot load an entry: its bytes are not a complete pickle.

    torch may still load any other damaged entry: it compares neither names nor keys,
    and has no limits.
    """
    return row.damage is not None and row.damage.startswith(REFUSED)


class Unread:
    """The parts of cache directories that were not read.

    Parameters
    ----------
    rows : iterable of EntryRow
        The rows of the frame entries.
    """

    def __init__(self, rows: Iterable[EntryRow]) -> None:
        self._kinds: dict[str, set[str]] = defaultdict(set)
        self._whole: set[str] = set()
        self._doubtful: set[str] = set()
        for row in rows:
            root = row.root
            if row.status == UNREADABLE:
                self._kinds[root].add(row.cache)
            if row.cache in CACHES and row.path.startswith(os.path.join(root, row.cache, "")):
                self._whole.add(root)
            if _is_doubtful(row):
                self._doubtful.add(root)

    def may_hold(self, root: str, kind: str) -> bool:
        """Whether a file of a kind may lie unseen in a directory.

        True if only a part was read, such as the folder of one cache, or if a folder, a file of that kind or the
        whole could not be read.
        """
        kinds = self._kinds.get(root, ())
        return root not in self._whole or kind in kinds or (OTHER in kinds and kind != LOCK)

    def has_unread(self, root: str) -> bool:
        """Whether anything in a directory could not be read."""
        return bool(self._kinds.get(root))

    def names_all_code(self, root: str) -> bool:
        """Whether everything that could name code in a directory was read wholly."""
        is_read = self._kinds.get(root, set()) <= {LOCK}
        return is_read and root in self._whole and root not in self._doubtful


def _is_doubtful(row: EntryRow) -> bool:
    """Whether a file may name code that its row does not contain."""
    if row.cache == PRECOMPILE:
        return True  # its graphs are inside it, and are not read
    if row.cache == AOTAUTOGRAD and row.code_key is not None:
        return True  # its graphs are inside it, and only the code of the forward one is recorded
    if row.status == "ok" or row.cache not in _NAMING or is_refused(row) or row.damage == OTHER_TEXT:
        return False
    return not (row.cache == FXGRAPH and row.code_key is not None)
