"""The lookups and entries in time order, as plain rows that the analysis walks through."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from itertools import pairwise

import pandas as pd

from cachescope.columns import plain_columns, rows_of
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
    details: str | None = None
    segment: int = 0
    save_error: str | None = None
    compile_error: str | None = None
    compile_ended: bool | None = None
    entry_path: str | None = None
    function: str | None = None
    file: str | None = None
    aot_mode: bool | None = None
    bypass_exception: str | None = None
    prediction: str | None = None
    preflight_note: str | None = None
    """The basis of its outcome, if a pre-flight predicts it: the lookup was not made."""

    @property
    def is_miss(self) -> bool:
        """Whether no usable entry was found."""
        return self.outcome in ("full_miss", "guard_miss")

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
    fx_keys: tuple[str, ...] = ()
    """Of an AOTAutograd entry, the keys of the graphs that it points to."""


@dataclass(frozen=True, slots=True)
class RunRow:
    """One process as the analysis sees it."""

    run: int
    rank: int | None
    start_time: int | None
    cache_dir: str | None
    command: str | None = None
    exit_status: int | None = None
    torch_version: str | None = None
    python_version: str | None = None
    pid: int | None = None
    end_time: int | None = None

    @property
    def program(self) -> str | None:
        """The script or module that was run, without its options; None if the command is unknown."""
        try:
            words = shlex.split(self.command or "")
        except ValueError:
            return None
        for word, after in pairwise([*words, ""]):
            if word == "-m":
                return after
            if word.endswith(".py"):
                return word
        return words[0] if words else None


def entry_rows(entries: pd.DataFrame, details: HashDetails) -> list[EntryRow]:
    """The rows of the frame entries that have a key."""
    if entries.empty:
        return []
    keyed = entries[entries["cache"].isin(CACHES) & entries["cache_key"].notna()]
    names = list(EntryRow.__dataclass_fields__)
    columns = plain_columns(keyed, [name for name in names if name not in ("gm", "direction")])
    sets = columns["detail_set"]
    direction = {code: details.direction(code) for code in dict.fromkeys(sets) if code is not None}
    columns["direction"] = [direction.get(code) for code in sets]
    columns["gm"] = _graphs_of(sets, details)
    return list(map(EntryRow, *(columns[name] for name in names)))


def run_rows(runs: pd.DataFrame) -> list[RunRow]:
    """The rows of the frame runs."""
    return rows_of(runs, RunRow)


def _graphs_of(sets: list[int | None], details: HashDetails) -> list[int | None]:
    """The hash code of the graph of each set."""
    found = {code: details.hash_code(code, "gm") for code in {*sets} if code is not None}
    return [None if code is None else found[code] for code in sets]
