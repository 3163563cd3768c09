"""What can go from a cache directory: files wholly read and proven removable. Nothing here removes anything."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pandas as pd

from cachescope.analysis.directory.links.unread import is_refused
from cachescope.columns import frame_of, rows_of
from cachescope.frames.directory_rows import EntryRow, OrphanRow, RemovableRow
from cachescope.terms import CACHES, CODE

_HOUR_NS: Final = 3_600_000_000_000
# torch renames an entry when it is whole; a partial one may be a copy in progress, which takes seconds. A temporary
# is renamed within seconds too, unless its process is stopped. An entry is written after its code, when the graph is
# compiled, which takes hours with max-autotune.
_COPIED_NS: Final = 60_000_000_000
_WRITTEN_NS: Final = _HOUR_NS
_COMPILED_NS: Final = 24 * _HOUR_NS

AGAIN: Final = "; a graph that torch does not cache would have it compiled again"


def removable_frame(entries: pd.DataFrame, orphans: pd.DataFrame, now_ns: int | None = None) -> pd.DataFrame:
    """The frame removable, from the frames entries and orphans.

    Without these files torch still finds every entry that it finds today, and everything that the entry loads:

    - entries that torch itself refuses at every lookup, because their bytes are no whole pickle. Not entries with damage
      that torch does not see (a different name or key), hostile ones (torch runs them), or ones not read wholly;
    - temporaries of dead processes. Not whole ones under a key: torch before 2.13 loads those;
    - code that no entry names, in a directory that was read wholly.

    What lies behind a link may belong to another directory too, so only refused entries can go there.
    An AOTAutograd entry whose FX entry is gone stays: a remote cache may hold that entry, or another compile may store it again.
    Locks stay: another process may be waiting on one. So do best configurations, which a mega-cache writes before
    their kernels, and Triton directories: nothing refers to the directory of a kernel with one configuration.

    What may still be in use by a writer stays: refused entries must be a minute old, temporaries an hour, code a day. A time
    that is missing, 0 or in the future proves no age. For temporaries and code, neither does the modification time alone,
    which any program can set.

    Parameters
    ----------
    entries, orphans : DataFrame
    now_ns : int, optional
        The time to count ages from, nanoseconds since the epoch. By default the time when each file was seen: a file
        that was not needed then may be needed by now.
    """
    rows = rows_of(entries, EntryRow)
    alone = {row.entry: row for row in rows_of(orphans, OrphanRow)}
    found = []
    for row in rows:
        now = row.seen_time if now_ns is None else now_ns
        reason = None if now is None else _reason(row, alone.get(row.entry), now)
        if reason is not None:
            found.append(_removable(row, reason))
    return frame_of([*found, *_compiled_from(rows, found, now_ns)], RemovableRow)


def _reason(row: EntryRow, orphan: OrphanRow | None, now: int) -> str | None:
    if row.status == "damaged" and row.cache in CACHES:
        # A file that is being copied here is written under its own name.
        is_old = _is_past(row.modified_time, now - _COPIED_NS)
        return f"damaged: {row.damage}" if is_refused(row) and is_old else None
    if row.link is not None:
        return None
    if row.status == "temporary":
        is_loaded = row.cache in CACHES and not is_refused(row)
        is_old = _is_older(row, now - _WRITTEN_NS)
        return "left behind by a process that died" if is_old and not is_loaded else None
    # Code is written before its entry: nothing names it until the compile ends.
    if orphan is None or row.cache != CODE or not _is_older(row, now - _COMPILED_NS):
        return None
    return orphan.reason + AGAIN


def _is_older(row: EntryRow, limit: int) -> bool:
    return _is_past(row.modified_time, limit) and _is_past(row.changed_time, limit)


def _is_past(moment: int | None, limit: int) -> bool:
    return moment is not None and 0 < moment < limit


def _compiled_from(
    rows: list[EntryRow], found: list[RemovableRow], now_ns: int | None
) -> Iterator[RemovableRow]:
    """Other removable files under the key of the code."""
    chosen = {row.entry for row in found}
    keys = {(row.root, row.cache_key) for row in rows if row.entry in chosen and row.cache == CODE} - {
        (row.root, None) for row in rows
    }
    for row in rows:
        now = (row.seen_time or 0) if now_ns is None else now_ns
        is_other = row.cache == CODE and row.entry not in chosen and row.link is None
        if is_other and (row.root, row.cache_key) in keys and _is_older(row, now - _COMPILED_NS):
            yield _removable(row, "belongs to code that no FX entry uses" + AGAIN)


def _removable(row: EntryRow, reason: str) -> RemovableRow:
    return RemovableRow(row.entry, row.cache, row.path, row.size_bytes or 0, reason)
