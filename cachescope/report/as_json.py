"""The JSON forms: plain objects made from frames; `json_text` writes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from cachescope.answers.read import Read
from cachescope.json_types import JsonObject
from cachescope.report.json_text import values_of

if TYPE_CHECKING:
    from cachescope.analysis.differences import FieldChange
    from cachescope.answers.explanation import Explanation
    from cachescope.answers.time_spent import TimeSpent

# Codes of the scope's own store, which mean nothing outside it.
_INTERNAL: Final = frozenset({"detail_set"})
_OF_A_MISS: Final = (
    "verdict", "baseline", "changed", "root", "cause", "reason", "kind", "evidence", "evidence_text",
)  # fmt: skip
_NO_MISS: Final[Mapping[str, object]] = {**dict.fromkeys(_OF_A_MISS), "changed": []}


def explain_object(scope: Read) -> JsonObject:
    """The object printed by ``cachescope explain --json``: runs, lookups with their verdicts, causes and problems."""
    of_vllm = ("vllm_folders", "vllm_changes", "vllm_fragments", "vllm_ranks", "vllm_starts")
    return {
        "hit_rates": frame_rows(scope.hit_rates())[0] if len(scope.lookups) else None,
        "runs": frame_rows(scope.runs),
        "lookups": _lookups(scope),
        "causes": _causes(scope),
        **frames_object(**values_of(scope, "past_misses", *of_vllm, "false_hits", "problems")),
    }


def entries_object(scope: Read, locks: pd.DataFrame | None = None) -> JsonObject:
    """The object printed by ``cachescope entries --json``; if locks were checked, each records whether it is held."""
    entries = frame_rows(scope.entries)
    if locks is not None:
        held = {row["entry"]: row["lock_held"] for row in frame_rows(locks)}
        entries = [{**row, "lock_held": held.get(row["entry"])} for row in entries]

    return {
        "entries": entries,
        **frames_object(**values_of(scope, "guards", "duplicates", "orphans", "removable", "problems")),
    }


def explanation_object(explained: Explanation) -> JsonObject:
    """One explanation, with the full texts of its changed fields."""
    first = ("lookup", "verdict", "title", "reason", "sizes", "evidence", "evidence_text", "baseline", "root")
    return {
        **values_of(explained, *first),
        "changes": list(map(whole_change_object, explained.changes)),
        **values_of(explained, "same_cause", "more_of_same_cause", "advice"),
    }


def time_object(read: Read, spent: TimeSpent) -> JsonObject:
    """The object printed by ``cachescope time --json``."""
    return {
        "runs": frame_rows(read.runs),
        "phases": frame_rows(read.phases),
        "time": [
            {
                **values_of(one, "run", "phases"),
                "total_ns": one.readings.total_ns,
                **values_of(one, "could_save_ns", "stays_ns"),
                **values_of(one.readings, "saved_ns", "hits", "hits_without_time", "unended"),
                **values_of(one.besides, "before_ns", "between_ns", "after_ns"),
            }
            for one in spent.runs
        ],
        "vllm_starts": frame_rows(read.vllm_starts),
        "contrast": _contrast(spent),
        "waited_for_ranks": _waited(spent),
        "different_collectives": [
            {
                **values_of(one, "compile_id", "is_backward", "place"),
                "of_ranks": [{"ranks": ranks, "collectives": names} for names, ranks in one.of_ranks],
            }
            for one in spent.apart
        ],
        "problems": [*frame_rows(read.problems), *frame_rows(read.phase_problems)],
    }


def _contrast(spent: TimeSpent) -> JsonObject | None:
    found = spent.contrast
    if found is None:
        return None
    members = [{"path": one.path, "run": one.time.run, "of": one.of} for one in (found.slower, found.other)]
    return {"slower": members[0], "other": members[1], "longer_ns": found.longer_ns, "phases": found.phases}


def _waited(spent: TimeSpent) -> JsonObject | None:
    ranks = spent.ranks
    if ranks is None:
        return None
    times = [{"run": run, "waited_ns": ns} for run, ns in ranks.waited_ns.items()]
    return {"runs": times, "waited_least": None if ranks.last is None else ranks.last.run}


def compiles_object(read: Read) -> JsonObject:
    """The object printed by ``cachescope compiles --json``."""
    return {
        **frames_object(**values_of(read, "runs", "compiles", "recompiles", "symbols")),
        "problems": [*frame_rows(read.problems), *frame_rows(read.compile_problems)],
    }


def change_object(change: FieldChange) -> JsonObject:
    """One changed field, without its source texts."""
    return {
        **values_of(change, "field", "kind", "summary"),
        "parts": [{"part": name, "before": a, "after": b} for name, a, b in change.parts],
        "differs_by": list(change.differs_by),
        "is_certain": change.is_certain,
        "diff": change.diff or None,
    }


def whole_change_object(change: FieldChange) -> JsonObject:
    """One changed field, with its source texts."""
    return {**change_object(change), **values_of(change, "before", "after")}


def frames_object(**frames: pd.DataFrame) -> JsonObject:
    """The rows of each frame, by its name."""
    return {name: frame_rows(frame) for name, frame in frames.items()}


def frame_rows(frame: pd.DataFrame) -> list[JsonObject]:
    """The rows of a frame as plain values: missing is None, a time is ISO 8601, a tuple is a list."""
    names = [name for name in frame.columns if name not in _INTERNAL]
    columns = [[_plain(value) for value in frame[name].tolist()] for name in names]
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


def _plain(value: Any) -> Any:
    if value is None or value is pd.NA or value is pd.NaT:
        return None
    if isinstance(value, float):
        return value if abs(value) < float("inf") else None
    if isinstance(value, pd.Timestamp):
        return value.isoformat()
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return value


def _lookups(scope: Read) -> list[JsonObject]:
    misses = {row["lookup"]: _verdict(row) for row in frame_rows(scope.misses)}
    first = ("lookup", "run", "order", "cache", "cache_key", "compile_id", "is_backward", "outcome")
    rows = frame_rows(scope.lookups)
    return [
        {**{name: row[name] for name in first}, **misses.get(row["lookup"], _NO_MISS), **row} for row in rows
    ]


def _verdict(miss: JsonObject) -> JsonObject:
    held = ((kind, miss[f"baseline_{kind}"]) for kind in ("lookup", "entry"))
    baseline = next(({kind: number} for kind, number in held if number is not None), None)
    return {name: baseline if name == "baseline" else miss[name] for name in _NO_MISS}


def _causes(scope: Read) -> list[JsonObject]:
    first = [scope.facts.roots_of(cause.cause)[0].lookup for cause in scope.facts.causes]
    changes = [list(map(change_object, scope.changes(lookup))) for lookup in first]
    rows = zip(frame_rows(scope.causes), changes, strict=True)
    return [{**row, "changes": changed} for row, changed in rows]
