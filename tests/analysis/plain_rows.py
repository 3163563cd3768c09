"""Rows made by hand: what a test does not tell is missing."""

from collections.abc import Iterable
from dataclasses import fields, replace
from typing import Any, Final

from cachescope.analysis.history.history import History
from cachescope.details import HashDetails
from cachescope.frames.context_rows import ContextRow
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.linked_rows import PastMiss
from cachescope.frames.recorded_rows import LookupRow, RunRow

_LOOKUP: dict[str, Any] = dict.fromkeys((field.name for field in fields(LookupRow)), None) | {
    "lookup": 0, "run": 0, "order": 0, "cache": "fxgraph", "outcome": "full_miss", "segment": 0,
    "details": "recorded",
}  # fmt: skip
_ENTRY: dict[str, Any] = dict.fromkeys((field.name for field in fields(EntryRow)), None) | dict.fromkeys(
    ("device_types", "fx_keys", "fx_guards", "kernel_keys", "triton_hashes"), ()
)
_RUN: dict[str, Any] = dict.fromkeys((field.name for field in fields(RunRow)), None) | {
    "source": "log", "sources": ("log",), "is_cut": False, "looked_up": True, "is_preflight": False,
    "unrecorded_compiles": (),
}  # fmt: skip


def lookup_row(**told: Any) -> LookupRow:
    """A lookup: a full miss of an FX graph, if nothing else is told."""
    return LookupRow(**(_LOOKUP | told))


TEMPLATE: Final = lookup_row(cache_key="f0", compile_id="0/0", direction="inference")
"""An FX lookup of a first compile, for inference."""


def entry_row(
    entry: int,
    cache: str,
    cache_key: str,
    root: str = "/cache",
    path: str = "/cache/e",
    modified_time: int | None = None,
    status: str = "ok",
    damage: str | None = None,
    **told: Any,
) -> EntryRow:
    given = {"entry": entry, "cache": cache, "cache_key": cache_key, "root": root, "path": path}
    state = {"modified_time": modified_time, "status": status, "damage": damage}
    return EntryRow(**(_ENTRY | given | state | told))


def run_row(run: int, rank: int | None = None, **told: Any) -> RunRow:
    return RunRow(**(_RUN | {"run": run, "rank": rank} | told))


def context_row(context: int, **told: Any) -> ContextRow:
    nothing = dict.fromkeys(field.name for field in fields(ContextRow))
    return ContextRow(**{**nothing, "context": context, "source": "/c", **told})


def past_miss(entry: int, baseline_entry: int, **told: Any) -> PastMiss:
    nothing = dict.fromkeys(field.name for field in fields(PastMiss))
    return PastMiss(**{**nothing, "entry": entry, "baseline_entry": baseline_entry, **told})


def history_of(
    lookups: Iterable[LookupRow],
    store: HashDetails | None = None,
    entries: Iterable[EntryRow] = (),
    runs: Iterable[RunRow] = (),
) -> History:
    """What happened; without a store no row may have hash details."""
    return History(lookups, entries, runs, HashDetails() if store is None else store)


def seen_at(rows: Iterable[EntryRow], moment: int) -> list[EntryRow]:
    """Files as if they had been listed at a moment."""
    return [replace(row, seen_time=moment) for row in rows]
