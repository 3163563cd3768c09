"""The lookups and entries in the order of time, as plain rows that the analysis walks through."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from cachescope.columns import records
from cachescope.details import HashDetails
from cachescope.terms import CACHES


@dataclass(frozen=True, slots=True)
class LookupRow:
    """One lookup as the analysis sees it; times in nanoseconds, missing values None."""

    lookup: int
    run: int
    order: int
    time: int | None
    end_time: int | None
    cache: str
    cache_key: str | None
    outcome: str
    status_detailed: str | None
    cache_state: str | None
    compile_id: str | None
    direction: str | None
    aot_lookup: int | None
    bypass_reason: str | None
    save_bypass: str | None
    load_error: str | None
    guards_expr: str | None
    time_taken_ns: int | None
    detail_set: int | None
    gm: int | None
    """Hash code of the graph; equal codes are equal graphs."""

    @property
    def is_hit(self) -> bool:
        """Whether an entry was found and used."""
        return self.outcome == "hit"


@dataclass(frozen=True, slots=True)
class EntryRow:
    """One entry as the analysis sees it."""

    entry: int
    cache: str
    cache_key: str
    root: str
    path: str
    modified_time: int | None
    status: str
    damage: str | None
    guards_expr: str | None
    time_taken_ns: int | None
    code_key: str | None
    direction: str | None
    detail_set: int | None
    gm: int | None


@dataclass(frozen=True, slots=True)
class RunRow:
    """One process as the analysis sees it."""

    run: int
    rank: int | None
    start_time: int | None
    cache_dir: str | None


def lookup_rows(lookups: pd.DataFrame, details: HashDetails) -> list[LookupRow]:
    """The rows of the frame lookups, in time order; a run without times keeps the place of its number."""
    names = [n for n in LookupRow.__dataclass_fields__ if n != "gm"]
    rows = [LookupRow(**values, gm=_gm(values["detail_set"], details)) for values in records(lookups, names)]
    latest = 0
    times: dict[int, int] = {}
    for row in rows:
        latest = latest if row.time is None else row.time
        times[row.lookup] = latest
    return sorted(rows, key=lambda r: (times[r.lookup], r.lookup))


def entry_rows(entries: pd.DataFrame, details: HashDetails) -> list[EntryRow]:
    """The rows of the frame entries that stand for a key."""
    skipped = ("gm", "direction")
    names = [n for n in EntryRow.__dataclass_fields__ if n not in skipped]
    return [
        EntryRow(
            **values,
            gm=_gm(values["detail_set"], details),
            direction=None if values["detail_set"] is None else details.direction(values["detail_set"]),
        )
        for values in records(entries, names)
        if values["cache"] in CACHES and values["cache_key"] is not None
    ]


def run_rows(runs: pd.DataFrame) -> list[RunRow]:
    """The rows of the frame runs."""
    return [RunRow(**values) for values in records(runs, list(RunRow.__dataclass_fields__))]


def _gm(detail_set: int | None, details: HashDetails) -> int | None:
    return None if detail_set is None else details.hash_code(detail_set, "gm")
