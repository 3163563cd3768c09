"""The JSON forms: plain objects made of rows; `json_text` writes them. Loads no pandas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from cachescope.analysis.directory.same_key import candidates
from cachescope.analysis.rates import rates
from cachescope.analysis.vllm.factors import all_changes
from cachescope.analysis.vllm.folders import fragments, ranks_apart
from cachescope.answers.recording import Recording
from cachescope.json_types import JsonObject
from cachescope.report.json_text import values_of
from cachescope.rows import TIME, columns_of, frame_name, names_of
from cachescope.table import Table

if TYPE_CHECKING:
    from cachescope.analysis.differences import FieldChange
    from cachescope.answers.explanation import Explanation
    from cachescope.answers.time_spent import TimeSpent
    from cachescope.frames.linked_rows import LockRow

# Codes of the scope's own store mean nothing outside it.
_INTERNAL: Final = frozenset({"detail_set"})
_OF_A_MISS: Final = (
    "verdict", "baseline", "changed", "root", "cause", "reason", "kind", "evidence", "evidence_text",
)  # fmt: skip
_NO_MISS: Final[Mapping[str, object]] = {**dict.fromkeys(_OF_A_MISS), "changed": []}


def explain_object(read: Recording) -> JsonObject:
    """The object printed by ``cachescope explain --json``: runs, lookups with their verdicts, causes and problems."""
    tables = read.tables
    return {
        "hit_rates": hit_rates_object(read),
        "runs": plain_rows(tables.runs.rows),
        "lookups": _lookups(read),
        "causes": _causes(read),
        **rows_object(
            past_misses=read.missed_before.rows,
            vllm_folders=read.folders_of_vllm,
            vllm_changes=all_changes(read.named_of_vllm),
            vllm_fragments=fragments(read.named_of_vllm),
            vllm_ranks=ranks_apart(tables.vllm_factors.rows, read.named_of_vllm),
            vllm_starts=tables.vllm_starts.rows,
            false_hits=read.suspected.rows,
            problems=tables.problems.rows,
        ),
    }


def hit_rates_object(read: Recording) -> JsonObject | None:
    """The hit rates of all lookups; None where there are none."""
    lookups = read.facts.lookups.values()
    return plain_rows([rates(lookups)])[0] if lookups else None


def entries_object(read: Recording, locks: Iterable[LockRow] | None = None) -> JsonObject:
    """The object printed by ``cachescope entries --json``; if locks were checked, each records whether it is held."""
    entries = plain_rows(read.tables.entries.rows)
    if locks is not None:
        held: dict[object, bool | None] = {row.entry: row.lock_held for row in locks}
        entries = [{**row, "lock_held": held.get(row["entry"])} for row in entries]
    return {
        "entries": entries,
        **rows_object(
            guards=candidates(read.tables.entries.rows),
            duplicates=read.duplicated.rows,
            orphans=read.orphaned.rows,
            removable=read.removed_unnoticed.rows,
            problems=read.tables.problems.rows,
        ),
    }


def explanation_object(explained: Explanation) -> JsonObject:
    """One explanation, with the full texts of its changed fields."""
    first = ("lookup", "verdict", "title", "reason", "sizes", "evidence", "evidence_text", "baseline", "root")
    return {
        **values_of(explained, *first),
        "changes": list(map(whole_change_object, explained.changes)),
        **values_of(explained, "same_cause", "more_of_same_cause", "settings", "advice"),
    }


def time_object(read: Recording, spent: TimeSpent) -> JsonObject:
    """The object printed by ``cachescope time --json``."""
    starts = zip(plain_rows(one.row for one in spent.starts), spent.starts, strict=True)
    return {
        **tables_object(read.tables.runs, read.phases_read[0]),
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
        "vllm_starts": [row | values_of(one, "run", "unsaved_by") for row, one in starts],
        "contrast": _contrast(spent),
        "waited_for_ranks": _waited(spent),
        "different_collectives": [
            {
                **values_of(one, "compile_id", "is_backward", "place"),
                "of_ranks": [{"ranks": ranks, "collectives": names} for names, ranks in one.of_ranks],
            }
            for one in spent.apart
        ],
        "problems": plain_rows([*read.tables.problems.rows, *read.phases_read[1]]),
    }


def _contrast(spent: TimeSpent) -> JsonObject | None:
    found = spent.contrast
    if found is None:
        return None
    members = [{"path": one.path, "run": one.run, "of": one.of_path} for one in (found.slower, found.other)]
    return {"slower": members[0], "other": members[1], "longer_ns": found.longer_ns, "phases": found.phases}


def _waited(spent: TimeSpent) -> JsonObject | None:
    ranks = spent.ranks
    if ranks is None:
        return None
    times = [{"run": run, "waited_ns": ns} for run, ns in ranks.waited_ns.items()]
    return {"runs": times, "waited_least": None if ranks.last is None else ranks.last.run}


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


def rows_object(**rows: Iterable[object]) -> JsonObject:
    """Rows of several classes, by the names of their frames."""
    return {name: plain_rows(one) for name, one in rows.items()}


def tables_object(*tables: Table[Any] | None) -> JsonObject:
    """The rows of the tables that exist, by the names of their frames."""
    return rows_object(**{frame_name(one.kind): one.rows for one in tables if one is not None})


def plain_rows(rows: Iterable[object]) -> list[JsonObject]:
    """Rows of one class as plain values: None for what is missing, times in ISO 8601, tuples as lists."""
    listed = list(rows)
    if not listed:
        return []
    kind: type = type(listed[0])
    times = {column.name for column in columns_of(kind) if column.dtype == TIME}
    plain = {name: _moment if name in times else _plain for name in names_of(kind) if name not in _INTERNAL}
    return [{name: made(getattr(row, name)) for name, made in plain.items()} for row in listed]


def _moment(ns: int | None) -> str | None:
    """A time with as many digits after the second as it has: none, six, or nine."""
    if ns is None:
        return None
    seconds, rest = divmod(ns, 10**9)
    fraction = "" if not rest else f".{rest:09d}" if rest % 1000 else f".{rest // 1000:06d}"
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}{fraction}+00:00"


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if abs(value) < float("inf") else None
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return {name: _plain(item) for name, item in value.items()} if isinstance(value, dict) else value


def _lookups(read: Recording) -> list[JsonObject]:
    misses = {row["lookup"]: _verdict(row) for row in plain_rows(read.missed.rows)}
    first = ("lookup", "run", "order", "cache", "cache_key", "compile_id", "is_backward", "outcome")
    rows = plain_rows(read.shown.rows)
    return [
        {**{name: row[name] for name in first}, **misses.get(row["lookup"], _NO_MISS), **row} for row in rows
    ]


def _verdict(miss: JsonObject) -> JsonObject:
    held = {kind: miss[f"baseline_{kind}"] for kind in ("lookup", "entry")}
    baseline = {kind: number for kind, number in held.items() if number is not None}
    return {name: baseline or None if name == "baseline" else miss[name] for name in _NO_MISS}


def _causes(read: Recording) -> list[JsonObject]:
    facts = read.facts
    first = [facts.roots_of(cause.cause)[0].lookup for cause in read.explained.rows]
    changes = [list(map(change_object, read.changes(lookup))) for lookup in first]
    rows = zip(plain_rows(read.explained.rows), changes, strict=True)
    return [{**row, "changes": changed} for row, changed in rows]
