"""The candidates under each key of a cache directory."""

from __future__ import annotations

import pandas as pd

from cachescope.analysis.directory.same_key import marks_beside
from cachescope.analysis.guards import GuardError, guard_symbols
from cachescope.columns import frame_of, rows_of
from cachescope.frames.directory_rows import Candidate, EntryRow
from cachescope.terms import CACHES


def guards_frame(entries: pd.DataFrame) -> pd.DataFrame:
    """The frame guards, from the frame entries: sound entries only, by key and time."""
    everything = rows_of(entries, EntryRow)
    marks = marks_beside(everything)
    found = [
        Candidate(
            row.entry,
            row.cache,
            row.cache_key,
            row.modified_time,
            row.guards_expr,
            _symbols(row.guards_expr),
            marks.get(row.entry, ()),
        )
        for row in everything
        if row.cache in CACHES and row.status == "ok" and row.cache_key is not None
    ]
    found.sort(key=lambda one: (one.cache, one.cache_key, one.modified_time or 0))
    return frame_of(found, Candidate)


def _symbols(expression: str | None) -> tuple[str, ...]:
    try:
        return guard_symbols(expression)
    except GuardError:
        return ()
