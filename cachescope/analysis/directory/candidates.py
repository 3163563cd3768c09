"""The candidates under each key of a cache directory."""

from __future__ import annotations

import pandas as pd

from cachescope.analysis.directory.same_key import beside
from cachescope.analysis.guards import GuardError, guard_symbols
from cachescope.columns import records
from cachescope.frames.directory import GUARDS
from cachescope.terms import CACHES

_TAKEN = ("entry", "cache", "cache_key", "modified_time", "guards_expr")


def guards_frame(entries: pd.DataFrame) -> pd.DataFrame:
    """The frame guards, from the frame entries: sound entries only, by key and time."""
    rows = []
    everything = records(entries)
    marks = beside(everything)
    for row in everything:
        if row["cache"] in CACHES and row["status"] == "ok" and row["cache_key"] is not None:
            told = {"symbols": _symbols(row["guards_expr"]), "beside": marks.get(row["entry"], ())}
            rows.append({name: row[name] for name in _TAKEN} | told)
    rows.sort(key=lambda row: (row["cache"], row["cache_key"], row["modified_time"] or 0))
    return GUARDS.build(rows)


def _symbols(expression: str | None) -> tuple[str, ...]:
    try:
        return guard_symbols(expression)
    except GuardError:
        return ()
