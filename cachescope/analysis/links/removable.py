"""What can go from a cache directory without a later process noticing, and why. Nothing here removes anything."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Final

import pandas as pd

from cachescope.columns import records
from cachescope.frames.directory import REMOVABLE
from cachescope.terms import AOTAUTOGRAD, CACHES, CODE, OTHER_NAME

# A temporary file is renamed within seconds, an entry follows its code within minutes.
_LEFT_BEHIND_NS: Final = 3_600_000_000_000


def removable_frame(entries: pd.DataFrame, orphans: pd.DataFrame, now_ns: int | None = None) -> pd.DataFrame:
    """The frame removable, from the frames entries and orphans.

    Damaged entries are read and refused at every lookup (but one that was only renamed is found), temporaries of dead processes are never looked at,
    an AOTAutograd entry whose FX entry is gone misses every time, and code that no entry names is written
    again when it is needed. Temporaries and code have to be an hour old. Locks stay: another process may be
    waiting on one. So do best configurations, which a mega-cache brings before their kernels, and Triton
    directories: a kernel with one configuration has nothing that refers to its own.

    Parameters
    ----------
    entries, orphans : DataFrame
    now_ns : int, optional
        The time to count the age of temporaries from, nanoseconds since the epoch; now by default.
    """
    now = time.time_ns() if now_ns is None else now_ns
    rows = records(entries)
    alone = {row["entry"]: row for row in records(orphans)}
    found = []
    for row in rows:
        reason = _reason(row, alone.get(row["entry"]), now)
        if reason is not None:
            found.append(_removable(row, reason))
    return REMOVABLE.build([*found, *_compiled_from(rows, found)])


def _reason(row: dict[str, Any], orphan: dict[str, Any] | None, now: int) -> str | None:
    if row["status"] == "damaged" and row["cache"] in CACHES:
        if row["damage"] == OTHER_NAME:
            return None
        return f"damaged: {row['damage']}"
    is_old = now - (row["modified_time"] or now) > _LEFT_BEHIND_NS
    if row["status"] == "temporary":
        return "left behind by a process that died" if is_old else None
    # Code is written before its entry: while a compile goes on, nothing names it yet.
    if orphan is None:
        return None
    # An entry that holds its graphs itself writes their code again.
    misses_always = row["cache"] == AOTAUTOGRAD and row["code_key"] is None
    return str(orphan["reason"]) if misses_always or (row["cache"] == CODE and is_old) else None


def _compiled_from(rows: list[dict[str, Any]], found: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Other files under the key of code that can go."""
    chosen = {row["entry"] for row in found}
    keys = {
        (row["root"], row["cache_key"]) for row in rows if row["entry"] in chosen and row["cache"] == CODE
    }
    for row in rows:
        if row["cache"] == CODE and row["entry"] not in chosen and (row["root"], row["cache_key"]) in keys:
            yield _removable(row, "belongs to code that no FX entry uses")


def _removable(row: dict[str, Any], reason: str) -> dict[str, Any]:
    kept = ("entry", "cache", "path", "size_bytes")
    return {name: row[name] for name in kept} | {"reason": reason}
