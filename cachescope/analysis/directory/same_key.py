"""What else lies under the key of an entry: damage, other guards, the same guards again, other code.

torch keeps several entries under one key if their guards differ, and takes the first whose guards hold.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from cachescope.frames.directory_rows import EntryRow
from cachescope.terms import CACHES

# In the order in which a reader should learn of them.
DAMAGED: Final = "damaged"
OTHER_CODE: Final = "other_code"
OTHER_GUARDS: Final = "other_guards"
EQUAL_GUARDS: Final = "equal_guards"


def marks_beside(rows: Iterable[EntryRow]) -> dict[int, tuple[str, ...]]:
    """Marks of the FX and AOTAutograd entries that share a key with others, by id, from rows of the frame entries.

    Equal keys in different directories are separate: a process never looks into another directory.
    """
    of_key: dict[tuple[str, str, str], list[EntryRow]] = defaultdict(list)
    for row in rows:
        if row.cache in CACHES and row.status in ("ok", "damaged") and row.cache_key is not None:
            of_key[row.root, row.cache, row.cache_key].append(row)
    return {
        row.entry: _marks(row, [other for other in group if other is not row])
        for group in of_key.values()
        if len(group) > 1
        for row in group
    }


def _marks(row: EntryRow, others: list[EntryRow]) -> tuple[str, ...]:
    marks = {DAMAGED} if any(other.status == "damaged" for other in others) else set()
    # The contents of a damaged entry are not compared with anything.
    sound = [other for other in others if other.status == "ok"] if row.status == "ok" else []
    for other in sound:
        marks.add(EQUAL_GUARDS if other.guards_expr == row.guards_expr else OTHER_GUARDS)
        if None not in (row.code_key, other.code_key) and row.code_key != other.code_key:
            marks.add(OTHER_CODE)
    return tuple(mark for mark in (DAMAGED, OTHER_CODE, OTHER_GUARDS, EQUAL_GUARDS) if mark in marks)
