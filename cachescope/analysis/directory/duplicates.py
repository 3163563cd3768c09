"""Files that duplicate each other: equal content, or one key with equal guards. Judged by names and sizes; no file is read.

torch names entries by the hash of their content (`GuardedCache._write_to_local_cache`, torch/_inductor/codecache.py)
and generated code by the hash of its text (`code_hash` there), so equal names are equal content.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

import pandas as pd

from cachescope.columns import frame_of, rows_of
from cachescope.frames.directory_rows import DuplicateRow, EntryRow
from cachescope.terms import CACHES, CODE, CODE_KEY

# For what was compiled from it, only the name is known, not that the bytes are equal.
_SOURCES: Final = (".py", ".cpp", ".cu", ".h")
_UNHASHED_NAME: Final = "entry"

BY_CONTENT: Final = "equal size, and equal name, which is the hash of the content"
BY_SOURCE: Final = "equal size, and equal name, which is the hash of the source"
BY_KEY: Final = "equal key, equal guards, in one directory: raced for, or made again"


def duplicates_frame(entries: pd.DataFrame) -> pd.DataFrame:
    """The frame duplicates, from the frame entries; the largest saving first.

    A file is in one group at most: if its content is equal to another's, equal guards add nothing.
    """
    # The target of a link may be one of the others, and takes no more room.
    sound = [row for row in rows_of(entries, EntryRow) if row.status == "ok" and row.link is None]
    by_name: dict[tuple[str, str, int | None], list[EntryRow]] = defaultdict(list)
    by_key: dict[tuple[str, str, str, str | None], list[EntryRow]] = defaultdict(list)
    for row in sound:
        name = os.path.basename(row.path)
        if _is_hashed(row, name):
            by_name[row.cache, name, row.size_bytes].append(row)
        if row.cache in CACHES and row.cache_key is not None:
            by_key[row.root, row.cache, row.cache_key, row.guards_expr].append(row)
    found = list(_groups(by_name.values(), None))
    reported = {entry for group in found for entry in group.entries}
    others = ([row for row in group if row.entry not in reported] for group in by_key.values())
    found += _groups(others, BY_KEY)
    found.sort(key=lambda group: (-group.saved_bytes, group.entries))
    return frame_of(found, DuplicateRow)


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
