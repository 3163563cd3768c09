"""What can go from a cache directory: what was wholly read and proven. Nothing here removes anything."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pandas as pd

from cachescope.analysis.directory.links.unread import is_refused
from cachescope.columns import records
from cachescope.frames.directory import REMOVABLE
from cachescope.terms import CACHES, CODE

_HOUR_NS: Final = 3_600_000_000_000
# torch renames an entry when it is whole; one that is not may be being copied here, which takes seconds. A temporary
# is renamed within seconds too, unless its process is stopped. An entry follows its code when the graph is compiled,
# which with max-autotune takes hours.
_COPIED_NS: Final = 60_000_000_000
_WRITTEN_NS: Final = _HOUR_NS
_COMPILED_NS: Final = 24 * _HOUR_NS

AGAIN: Final = "; a graph that torch does not cache would have it compiled again"


def removable_frame(entries: pd.DataFrame, orphans: pd.DataFrame, now_ns: int | None = None) -> pd.DataFrame:
    """The frame removable, from the frames entries and orphans.

    Without these files every entry that torch finds today is still found, and loads what it needs:

    - entries that torch itself refuses at every lookup, as their bytes are no whole pickle. Not those whose damage
      it does not see (a name or a key that differs), that are hostile (it runs them), or that were not read wholly;
    - temporaries of dead processes. Not whole ones under a key, which torch before 2.13 loads;
    - code that no entry names, in a directory that was read wholly.

    What lies behind a link may be another directory's too, so of that only refused entries can go.
    An AOTAutograd entry whose FX entry is gone stays: a remote cache may hold that, or another compile make it again.
    Locks stay: another process may be waiting on one. So do best configurations, which a mega-cache brings before
    their kernels, and Triton directories: a kernel with one configuration has nothing that refers to its own.

    What may still be written stays: refused entries have to be a minute old, temporaries an hour, code a day. A time that is
    missing, 0 or in the future proves no age, and of temporaries and code neither does the time of writing alone,
    which any program can set.

    Parameters
    ----------
    entries, orphans : DataFrame
    now_ns : int, optional
        The time to count ages from, nanoseconds since the epoch. By default the time when each file was seen: what
        was not needed then may be by now.
    """
    rows = records(entries)
    alone = {row["entry"]: row for row in records(orphans)}
    found = []
    for row in rows:
        now = row["seen_time"] if now_ns is None else now_ns
        reason = None if now is None else _reason(row, alone.get(row["entry"]), now)
        if reason is not None:
            found.append(_removable(row, reason))
    return REMOVABLE.build([*found, *_compiled_from(rows, found, now_ns)])


def _reason(row: dict[str, Any], orphan: dict[str, Any] | None, now: int) -> str | None:
    if row["status"] == "damaged" and row["cache"] in CACHES:
        # What is being copied here is written under its own name.
        is_old = _is_past(row["modified_time"], now - _COPIED_NS)
        return f"damaged: {row['damage']}" if is_refused(row) and is_old else None
    if row["link"] is not None:
        return None
    if row["status"] == "temporary":
        is_loaded = row["cache"] in CACHES and not is_refused(row)
        is_old = _is_older(row, now - _WRITTEN_NS)
        return "left behind by a process that died" if is_old and not is_loaded else None
    # Code is written before its entry: while a compile goes on, nothing names it yet.
    if orphan is None or row["cache"] != CODE or not _is_older(row, now - _COMPILED_NS):
        return None
    return str(orphan["reason"]) + AGAIN


def _is_older(row: dict[str, Any], limit: int) -> bool:
    return _is_past(row["modified_time"], limit) and _is_past(row["changed_time"], limit)


def _is_past(moment: int | None, limit: int) -> bool:
    return moment is not None and 0 < moment < limit


def _compiled_from(
    rows: list[dict[str, Any]], found: list[dict[str, Any]], now_ns: int | None
) -> Iterator[dict[str, Any]]:
    """Other files under the key of code that can go."""
    chosen = {row["entry"] for row in found}
    keys = {
        (row["root"], row["cache_key"]) for row in rows if row["entry"] in chosen and row["cache"] == CODE
    } - {(row["root"], None) for row in rows}
    for row in rows:
        now = (row["seen_time"] or 0) if now_ns is None else now_ns
        is_other = row["cache"] == CODE and row["entry"] not in chosen and row["link"] is None
        if is_other and (row["root"], row["cache_key"]) in keys and _is_older(row, now - _COMPILED_NS):
            yield _removable(row, "belongs to code that no FX entry uses" + AGAIN)


def _removable(row: dict[str, Any], reason: str) -> dict[str, Any]:
    kept = ("entry", "cache", "path", "size_bytes")
    return {name: row[name] for name in kept} | {"reason": reason}
