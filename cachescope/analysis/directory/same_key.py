"""What else lies under the key of an entry, the candidates under each key, and duplicate files.

torch keeps several entries under one key if their guards differ, and takes the first whose guards hold.

torch names entries by the hash of their content (`GuardedCache._write_to_local_cache`, torch/_inductor/codecache.py)
and generated code by the hash of its text (`code_hash` there), so equal names are equal content.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Final

from cachescope.analysis.guards import GuardError, guard_symbols
from cachescope.frames.directory_rows import Candidate, EntryRow
from cachescope.frames.linked_rows import DuplicateRow
from cachescope.grouping import by_key
from cachescope.rows import like
from cachescope.terms import CACHES, CODE, CODE_KEY

# The most important for a reader first.
DAMAGED: Final = "damaged"
OTHER_CODE: Final = "other_code"
OTHER_GUARDS: Final = "other_guards"
EQUAL_GUARDS: Final = "equal_guards"

# For what was compiled from it, only the names are known to be equal, not the bytes.
_SOURCES: Final = (".py", ".cpp", ".cu", ".h")
_UNHASHED_NAME: Final = "entry"

BY_CONTENT: Final = "equal size, and equal name, which is the hash of the content"
BY_SOURCE: Final = "equal size, and equal name, which is the hash of the source"
BY_KEY: Final = "equal key, equal guards, in one directory: raced for, or made again"


def marks_beside(rows: Iterable[EntryRow]) -> dict[int, tuple[str, ...]]:
    """Marks of the FX and AOTAutograd entries that share a key with others, by id, from rows of the frame entries.

    Equal keys in different directories are apart: a process never looks into another directory.
    """
    of_key = by_key(
        ((row.root, row.cache, row.cache_key), row)
        for row in rows
        if row.cache in CACHES and row.status in ("ok", "damaged") and row.cache_key is not None
    )
    return {
        row.entry: _marks(row, [other for other in group if other is not row])
        for group in of_key.values()
        if len(group) > 1
        for row in group
    }


def _marks(row: EntryRow, others: list[EntryRow]) -> tuple[str, ...]:
    marks = {DAMAGED} if any(other.status == "damaged" for other in others) else set()
    # A damaged entry is compared with nothing.
    sound = [other for other in others if other.status == "ok"] if row.status == "ok" else []
    for other in sound:
        marks.add(EQUAL_GUARDS if other.guards_expr == row.guards_expr else OTHER_GUARDS)
        if None not in (row.code_key, other.code_key) and row.code_key != other.code_key:
            marks.add(OTHER_CODE)
    return tuple(mark for mark in (DAMAGED, OTHER_CODE, OTHER_GUARDS, EQUAL_GUARDS) if mark in marks)


def candidates(entries: list[EntryRow]) -> list[Candidate]:
    """The rows of the frame guards: sound entries only, by key and time."""
    marks = marks_beside(entries)
    found = [
        like(Candidate, row, symbols=_symbols(row.guards_expr), beside=marks.get(row.entry, ()))
        for row in entries
        if row.cache in CACHES and row.status == "ok" and row.cache_key is not None
    ]
    found.sort(key=lambda one: (one.cache, one.cache_key, one.modified_time or 0))
    return found


def _symbols(expression: str | None) -> tuple[str, ...]:
    try:
        return guard_symbols(expression)
    except GuardError:
        return ()


def duplicate_rows(entries: Iterable[EntryRow]) -> list[DuplicateRow]:
    """The rows of the frame duplicates; the largest saving first.

    A file is in one group at most: if its content is equal to another's, equal guards add nothing.
    """
    # A link takes no room of its own: its target may be one of the others.
    sound = [row for row in entries if row.status == "ok" and row.link is None]
    hashed = ((row, name) for row in sound if _is_hashed(row, name := os.path.basename(row.path)))
    of_name = by_key(((row.cache, name, row.size_bytes), row) for row, name in hashed)
    of_key = by_key(
        ((row.root, row.cache, row.cache_key, row.guards_expr), row)
        for row in sound
        if row.cache in CACHES and row.cache_key is not None
    )
    found = list(_groups(of_name.values(), None))
    reported = {entry for group in found for entry in group.entries}
    others = ([row for row in group if row.entry not in reported] for group in of_key.values())
    found += _groups(others, BY_KEY)
    found.sort(key=lambda group: (-group.saved_bytes, group.entries))
    return found


def _is_hashed(row: EntryRow, name: str) -> bool:
    if row.cache in CACHES:
        return name != _UNHASHED_NAME
    is_source = row.cache == CODE and name.endswith(_SOURCES)
    return is_source and CODE_KEY.fullmatch(name.split(".")[0]) is not None


def _groups(groups: Iterable[list[EntryRow]], known_by: str | None) -> Iterator[DuplicateRow]:
    for group in groups:
        if len(group) < 2:
            continue
        rows = sorted(group, key=lambda row: (row.modified_time or 0, row.entry))
        first, *others = rows
        yield DuplicateRow(
            entries=tuple(row.entry for row in rows),
            cache=first.cache,
            cache_key=first.cache_key or "",
            copies=len(rows),
            size_bytes=first.size_bytes or 0,
            saved_bytes=sum(row.size_bytes or 0 for row in others),
            known_by=known_by or (BY_CONTENT if first.cache in CACHES else BY_SOURCE),
        )
