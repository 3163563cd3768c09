"""The results of a replay, as frames: every lookup before and after, hit rates, causes, runs, warnings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from cachescope.analysis.directory.generated_code import GeneratedCode
from cachescope.analysis.history.history import History
from cachescope.analysis.history.rows import EntryRow
from cachescope.analysis.verdicts.rates import hit_rates
from cachescope.analysis.what_if.cells import HIT, MISS, UNKNOWN, Outcomes
from cachescope.analysis.what_if.keys import Lanes, what_if_key
from cachescope.analysis.what_if.replay import Replay
from cachescope.columns import pandas_type, records
from cachescope.details import HashDetails
from cachescope.frames.replay import (
    WHAT_IF,
    WHAT_IF_CAUSES,
    WHAT_IF_DIFFERENCES,
    WHAT_IF_RATES,
    WHAT_IF_RUNS,
    WHAT_IF_WARNINGS,
)
from cachescope.terms import FXGRAPH

Row = Mapping[str, Any]
_HOW_GONE: Final = "it had been stored and was not found: removed, damaged, or in a directory no log names"
_HOW_CAME: Final = "nothing that was stored explains it: the entry came from elsewhere"


class Times:
    """Compile times of the lookups in time order. Only FX lookups have one: an AOTAutograd hit contains theirs."""

    def __init__(self, replay: Replay) -> None:
        rows = replay.recorded.rows
        outcome = replay.recorded.outcome
        taken = [r.time_taken_ns if r.cache == FXGRAPH and not r.is_hit else None for r in rows]
        self.taken = np.array([-1 if t is None else t for t in taken], dtype=np.int64)
        self.miss = outcome == MISS

    def won(self, after: Outcomes) -> npt.NDArray[np.bool_]:
        """Which misses became hits and have a known compile time."""
        return self.turned(after) & (self.taken >= 0)

    def turned(self, after: Outcomes) -> npt.NDArray[np.bool_]:
        """Which misses became hits."""
        turned: npt.NDArray[np.bool_] = self.miss & (after == HIT)
        return turned

    def total(self, chosen: npt.NDArray[np.bool_]) -> int | None:
        """Compile time of some lookups; None if none is recorded."""
        times = self.taken[chosen & (self.taken >= 0)]
        return int(times.sum()) if len(times) else None


@dataclass(frozen=True, slots=True)
class ReplayInput:
    """The input that all replays of one scope share; made once, so a toggle is quick."""

    replay: Replay
    times: Times
    entries: Sequence[EntryRow]
    before: Row

    @classmethod
    def of(cls, history: History, lookups: pd.DataFrame, details: HashDetails) -> ReplayInput:
        """Create from the history and the frame lookups (settled)."""
        replay = Replay(history, details)
        (before,) = records(hit_rates(lookups))
        return cls(replay, Times(replay), history.entries, before)


def rates_frame(replayed: ReplayInput, after: Outcomes) -> pd.DataFrame:
    """The frame ``what_if_rates``: hit rates as recorded, and as they would have been."""
    before, times = replayed.before, replayed.times
    turned = int(times.turned(after).sum())
    won = times.total(times.turned(after)) or 0
    saved, lost = before["time_saved_ns"], before["time_lost_ns"]
    then: dict[str, Any] = dict(before) | {
        "hits": before["hits"] + turned,
        "misses": before["misses"] - turned,
        "hit_rate": _share(before["hits"] + turned, before["lookups"] - before["unknown"]),
        "time_saved_ns": None if saved is None and not won else (saved or 0) + won,
        "time_lost_ns": None if lost is None else lost - won,
    }
    if before["time_hit_rate"] is not None:
        saved_then = then["time_saved_ns"] or 0
        then["time_hit_rate"] = saved_then / (saved_then + (then["time_lost_ns"] or 0))
    undecided = int((times.miss & (after == UNKNOWN)).sum())
    return WHAT_IF_RATES.build(
        [{"when": "before", "undecided": 0, **before}, {"when": "after", "undecided": undecided, **then}]
    )


def lookups_frame(
    replayed: ReplayInput, lookups: pd.DataFrame, after: Outcomes, lanes: Lanes
) -> pd.DataFrame:
    """The frame ``what_if``."""
    recorded, times = replayed.replay.recorded, replayed.times
    order = np.argsort([row.lookup for row in recorded.rows], kind="stable")
    names = [what_if_key(lanes, key) for key in range(lanes.shape[1])]
    keys = [names[key] if key >= 0 else None for key in recorded.key[order].tolist()]
    turned, won, then = times.turned(after)[order], times.won(after)[order], after[order]
    outcome = lookups["outcome"].tolist()
    states = zip(outcome, turned.tolist(), (then == UNKNOWN).tolist(), strict=True)
    out = ["hit" if t else None if unknown else o for o, t, unknown in states]
    notes = {d.position: _HOW_GONE if d.kind == "gone" else _HOW_CAME for d in recorded.differences}
    data: dict[str, Any] = {name: lookups[name] for name in ("lookup", "run", "cache", "cache_key")}
    data["what_if_key"] = keys
    data["outcome"] = lookups["outcome"]
    data["outcome_after"] = out
    data["changed_side"] = pd.array(turned, dtype="boolean")
    data["changed_side"][(then == UNKNOWN) | (lookups["outcome"] == "unknown").to_numpy(dtype=bool)] = pd.NA
    data["time_won_ns"] = pd.arrays.IntegerArray(times.taken[order].copy(), ~won)
    data["note"] = [notes.get(at) for at in order.tolist()]
    frame = pd.DataFrame({column.name: data[column.name] for column in WHAT_IF.columns})
    return frame.astype({column.name: pandas_type(column.dtype) for column in WHAT_IF.columns})


def causes_frame(
    replayed: ReplayInput, after: Outcomes, causes: Sequence[Row], cause_of: Mapping[int, int]
) -> pd.DataFrame:
    """The frame ``what_if_causes``: the causes in their own order."""
    places: dict[int, list[int]] = defaultdict(list)
    for at, row in enumerate(replayed.replay.recorded.rows):
        if row.lookup in cause_of:
            places[cause_of[row.lookup]].append(at)
    return WHAT_IF_CAUSES.build(
        {
            **{name: cause[name] for name in ("cause", "verdict", "summary")},
            "misses": len(places[cause["cause"]]),
            **_counts(replayed.times, after, places[cause["cause"]]),
        }
        for cause in causes
    )


def runs_frame(replayed: ReplayInput, after: Outcomes) -> pd.DataFrame:
    """The frame ``what_if_runs``."""
    places: dict[int, list[int]] = defaultdict(list)
    for at, row in enumerate(replayed.replay.recorded.rows):
        places[row.run].append(at)
    rows = []
    for run, mine in sorted(places.items()):
        counts = _counts(replayed.times, after, mine)
        outcomes = [replayed.replay.recorded.rows[one].outcome for one in mine]
        hits, seen = outcomes.count("hit"), len(mine) - outcomes.count("unknown")
        then = hits + int(counts["hits_after"] or 0)
        rates = {"hit_rate": _share(hits, seen), "hit_rate_after": _share(then, seen)}
        rows.append({"run": run, "lookups": len(mine), "hits": hits, **counts, **rates, "hits_after": then})
    return WHAT_IF_RUNS.build(rows)


def _share(hits: int, seen: int) -> float | None:
    return hits / seen if seen else None


def _counts(times: Times, after: Outcomes, at: list[int]) -> dict[str, int | None]:
    chosen = np.zeros(len(after), dtype=bool)
    chosen[at] = True
    turned = times.turned(after) & chosen
    return {
        "hits_after": int(turned.sum()),
        "unknown": int((times.miss & chosen & (after == UNKNOWN)).sum()),
        "time_won_ns": times.total(turned),
    }


def differences_frame(replay: Replay, reasons: Mapping[int, str]) -> pd.DataFrame:
    """The frame ``what_if_differences``; the reasons are those in the explanations of the misses."""
    rows = replay.recorded.rows
    found = sorted(replay.recorded.differences, key=lambda difference: rows[difference.position].lookup)
    return WHAT_IF_DIFFERENCES.build(
        {
            "lookup": rows[d.position].lookup,
            "run": rows[d.position].run,
            "outcome": rows[d.position].outcome,
            "expected": "hit" if d.kind == "gone" else "full_miss",
            "reason": reasons.get(rows[d.position].lookup, _HOW_GONE if d.kind == "gone" else _HOW_CAME),
        }
        for d in found
    )


def warnings_frame(
    replayed: ReplayInput, lanes: Lanes, code: GeneratedCode, past_misses: pd.DataFrame
) -> pd.DataFrame:
    """The frame ``what_if_warnings``: one pair for every two keys that would become one and share no code.

    Entries under one key of torch may differ in code, each for its own guards. So two keys are reported only if
    they share no code. Equal source may have been compiled into other kernels, by flags
    that are in the key alone: the frame past_misses contains such pairs.
    """
    number = {(key.cache, key.cache_key): at for at, key in enumerate(replayed.replay.table.keys)}
    stored = {
        entry.entry: entry
        for entry in replayed.entries
        if entry.cache == FXGRAPH and entry.code_key is not None and entry.status == "ok"
    }
    name_of = {
        entry.entry: what_if_key(lanes, number[entry.cache, entry.cache_key]) for entry in stored.values()
    }
    groups: dict[str, dict[str, list[EntryRow]]] = defaultdict(lambda: defaultdict(list))
    for entry in stored.values():
        groups[name_of[entry.entry]][entry.cache_key].append(entry)
    rows = []
    for name, keys in groups.items():
        for one, other in _without_common_code(keys, code):
            rows.append(_warning(name, "generated code", one, other))
    for row in records(past_misses[past_misses["same_binaries"].eq(False).fillna(False)]):
        pair = (row["baseline_entry"], row["entry"])
        if all(entry in stored for entry in pair) and name_of[pair[0]] == name_of[pair[1]]:
            rows.append(_warning(name_of[pair[0]], "compiled kernels", *(stored[entry] for entry in pair)))
    return WHAT_IF_WARNINGS.build(rows)


def _without_common_code(
    keys: Mapping[str, list[EntryRow]], code: GeneratedCode
) -> Iterator[tuple[EntryRow, EntryRow]]:
    # Sources are read only if code keys differ: a source contains the number of the graph in its process.
    if len({entry.code_key for held in keys.values() for entry in held}) < 2:
        return
    codes = {key: frozenset(code.identity(entry.entry) for entry in held) for key, held in keys.items()}
    # Each kind of code once: for a hundred keys with two codes, one pair is enough.
    first = {found: key for key, found in reversed(codes.items())}
    distinct = list(first.items())
    for at, (found, key) in enumerate(distinct):
        for other_found, other in distinct[at + 1 :]:
            if found.isdisjoint(other_found):
                yield keys[other][0], keys[key][0]


def _warning(name: str, what: str, entry: EntryRow, other: EntryRow) -> dict[str, object]:
    return {
        "what_if_key": name,
        "what": what,
        "entry": entry.entry,
        "other_entry": other.entry,
        "cache_key": entry.cache_key,
        "other_key": other.cache_key,
        "code_key": entry.code_key,
        "other_code_key": other.code_key,
    }
