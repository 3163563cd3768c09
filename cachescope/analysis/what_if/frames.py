"""The results of a replay, as frames: every lookup before and after, hit rates, causes, runs, warnings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from operator import add
from typing import Final

import numpy as np
import pandas as pd

from cachescope.analysis.directory.equal_code import GeneratedCode
from cachescope.analysis.history.history import History
from cachescope.analysis.rates import rates
from cachescope.analysis.what_if.columns import MISSING
from cachescope.analysis.what_if.key_values import Lanes
from cachescope.analysis.what_if.keys import what_if_key
from cachescope.analysis.what_if.recorded import HIT, MISS, UNKNOWN, Flags, Outcomes, Positions
from cachescope.analysis.what_if.replay import Replay
from cachescope.columns import frame_of, pandas_type
from cachescope.details import HashDetails
from cachescope.frames.answer_rows import RateRow
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.recorded_rows import LookupRow
from cachescope.frames.replay_rows import WhatIfDifference, WhatIfRate, WhatIfRow, WhatIfRun, WhatIfWarning
from cachescope.rows import columns_of
from cachescope.terms import FXGRAPH

_REASONS: Final = {
    "gone": "it had been stored and was not found: removed, damaged, or in a directory no log names",
    "came": "nothing that was stored explains it: the entry came from elsewhere",
}


class Times:
    """Compile times of the lookups in time order. Only FX lookups have one: an AOTAutograd hit contains theirs."""

    def __init__(self, replay: Replay) -> None:
        lookups = replay.recorded.lookups
        is_timed = lookups.is_fx & ~lookups.is_hit & (lookups.time_taken_ns != MISSING)
        self.taken: Positions = np.where(is_timed, lookups.time_taken_ns, -1)
        self.miss: Flags = replay.recorded.outcome == MISS

    def won(self, after: Outcomes) -> Flags:
        """Which misses became hits and have a known compile time."""
        return self.turned(after) & (self.taken >= 0)

    def turned(self, after: Outcomes) -> Flags:
        """Which misses became hits."""
        turned: Flags = self.miss & (after == HIT)
        return turned

    def total(self, chosen: Positions) -> int | None:
        """Compile time of some lookups; None if none is recorded."""
        times = self.taken[chosen]
        times = times[times >= 0]
        return int(times.sum()) if len(times) else None


def with_more_hits(rate: RateRow, more: int, won: int) -> RateRow:
    """The rates if so many misses had hit, which would have spared so much compile time."""
    saved = None if rate.time_saved_ns is None and not won else (rate.time_saved_ns or 0) + won
    lost = None if rate.time_lost_ns is None else rate.time_lost_ns - won
    known = (saved or 0) + (lost or 0)
    return replace(
        rate,
        hits=rate.hits + more,
        misses=rate.misses - more,
        hit_rate=_share(rate.hits + more, rate.lookups - rate.unknown),
        time_saved_ns=saved,
        time_lost_ns=lost,
        # What was not recorded before is not known after.
        time_hit_rate=None if rate.time_hit_rate is None else (saved or 0) / known,
    )


@dataclass(frozen=True, slots=True)
class ReplayInput:
    """The input that all replays of one scope share; made once, so a toggle is quick."""

    replay: Replay
    times: Times
    history: History
    before: RateRow

    @classmethod
    def of(cls, history: History, lookups: Iterable[LookupRow], details: HashDetails) -> ReplayInput:
        """Create from what happened, and from the lookups, whose outcomes are settled."""
        replay = Replay(history, details)
        return cls(replay, Times(replay), history, rates(lookups))


def rates_frame(
    replayed: ReplayInput, after: Outcomes, lookups: Sequence[LookupRow] | None = None
) -> pd.DataFrame:
    """The frame ``what_if_rates``: hit rates as recorded, and as they would have been; of all lookups or of some."""
    before, counted = replayed.before, np.ones(len(after), dtype=bool)
    if lookups is not None:
        before = rates(lookups)
        counted = np.isin(replayed.replay.recorded.lookups.lookup, [row.lookup for row in lookups])
    turned = np.flatnonzero(replayed.times.turned(after) & counted)
    then = with_more_hits(before, len(turned), replayed.times.total(turned) or 0)
    undecided = int(np.count_nonzero((after == UNKNOWN) & counted))
    rows = [
        WhatIfRate(when="before", **asdict(before), undecided=0),
        WhatIfRate(when="after", **asdict(then), undecided=undecided),
    ]
    return frame_of(rows, WhatIfRate)


def lookups_frame(
    replayed: ReplayInput, lookups: pd.DataFrame, after: Outcomes, lanes: Lanes
) -> pd.DataFrame:
    """The frame ``what_if``."""
    replay, times = replayed.replay, replayed.times
    order = np.argsort(replay.recorded.lookups.lookup, kind="stable")
    names = np.array([*(what_if_key(lanes, key) for key in range(lanes.shape[1])), None], dtype=object)
    turned, is_unknown = times.turned(after)[order], after[order] == UNKNOWN
    notes = np.full(len(after), None, dtype=object)
    for position, kind in replay.cells.differences:
        notes[position] = _REASONS[kind]
    is_open = is_unknown | (lookups["outcome"] == "unknown").to_numpy(dtype=bool)
    data: dict[str, object] = {name: lookups[name] for name in ("lookup", "run", "cache", "cache_key")}
    data["what_if_key"] = names[replay.recorded.key[order]]
    data["outcome"] = lookups["outcome"]
    data["outcome_after"] = lookups["outcome"].mask(turned, "hit").mask(is_unknown, None)
    data["changed_side"] = pd.arrays.BooleanArray(turned, is_open)
    data["time_won_ns"] = pd.arrays.IntegerArray(times.taken[order], ~times.won(after)[order])
    data["note"] = notes[order]
    frame = pd.DataFrame({column.name: data[column.name] for column in columns_of(WhatIfRow)})
    return frame.astype({column.name: pandas_type(column.dtype) for column in columns_of(WhatIfRow)})


def runs_frame(replayed: ReplayInput, after: Outcomes) -> pd.DataFrame:
    """The frame ``what_if_runs``."""
    lookups = replayed.replay.recorded.lookups
    runs, group = np.unique(lookups.run, return_inverse=True)
    counts = Counts.of(replayed.times, after, group, len(runs))
    hits = np.bincount(group[lookups.is_hit], minlength=len(runs)).tolist()
    seen = np.bincount(group[~lookups.outcome.are("unknown")], minlength=len(runs)).tolist()
    then = list(map(add, hits, counts.turned))
    rows = (
        WhatIfRun(
            run=run,
            lookups=counts.lookups[at],
            hits=hits[at],
            hits_after=then[at],
            unknown=counts.unknown[at],
            hit_rate=_share(hits[at], seen[at]),
            hit_rate_after=_share(then[at], seen[at]),
            time_won_ns=counts.time_won_ns[at],
        )
        for at, run in enumerate(runs.tolist())
    )
    return frame_of(rows, WhatIfRun)


def _share(hits: int, seen: int) -> float | None:
    return hits / seen if seen else None


@dataclass(frozen=True, slots=True)
class Counts:
    """What became of the lookups of some groups, one number for each group."""

    lookups: list[int]
    turned: list[int]
    unknown: list[int]
    time_won_ns: list[int | None]

    @classmethod
    def of(cls, times: Times, after: Outcomes, group: Positions, count: int) -> Counts:
        """Count by group; a lookup in group -1 is in none."""
        is_there = group >= 0
        turned, won = times.turned(after) & is_there, times.won(after) & is_there
        total = np.zeros(count, dtype=np.int64)
        np.add.at(total, group[won], times.taken[won])
        has_any = np.bincount(group[won], minlength=count) > 0
        return cls(
            np.bincount(group[is_there], minlength=count).tolist(),
            np.bincount(group[turned], minlength=count).tolist(),
            np.bincount(group[(after == UNKNOWN) & is_there], minlength=count).tolist(),
            [time if is_any else None for time, is_any in zip(total.tolist(), has_any.tolist(), strict=True)],
        )


def differences_frame(replayed: ReplayInput, reasons: Mapping[int, str]) -> pd.DataFrame:
    """The frame ``what_if_differences``; the reasons are those in the explanations of the misses."""
    lookups = replayed.replay.recorded.lookups
    found = sorted(
        replayed.replay.cells.differences, key=lambda difference: lookups.lookup[difference.position]
    )
    rows = (
        WhatIfDifference(
            lookup=int(lookups.lookup[at]),
            run=int(lookups.run[at]),
            outcome=replayed.history.lookups[at].outcome,
            expected="hit" if kind == "gone" else "full_miss",
            reason=reasons.get(int(lookups.lookup[at]), _REASONS[kind]),
        )
        for at, kind in found
    )
    return frame_of(rows, WhatIfDifference)


def warnings_frame(
    replayed: ReplayInput, lanes: Lanes, code: GeneratedCode, past_misses: pd.DataFrame
) -> pd.DataFrame:
    """The frame ``what_if_warnings``: one pair for every two keys that would become one and share no code.

    Entries under one key of torch may differ in code, each for its own guards. So two keys are reported only if
    they share no code. Equal source may have been compiled into other kernels, by flags
    that are in the key alone: the frame past_misses contains such pairs.
    """
    stored: dict[int, EntryRow] = {}
    name_of: dict[int, str] = {}
    for entry, key in zip(replayed.history.entries, replayed.replay.recorded.key_of_entry, strict=True):
        if entry.cache == FXGRAPH and entry.code_key is not None and entry.status == "ok":
            stored[entry.entry], name_of[entry.entry] = entry, what_if_key(lanes, key)
    groups: dict[str, dict[str | None, list[EntryRow]]] = defaultdict(lambda: defaultdict(list))
    for entry in stored.values():
        groups[name_of[entry.entry]][entry.cache_key].append(entry)
    rows = []
    for name, keys in groups.items():
        for one, other in _without_common_code(keys, code):
            rows.append(_warning(name, "generated code", one, other))
    other_kernels = past_misses[past_misses["same_binaries"].eq(False).fillna(False)]
    for pair in other_kernels[["baseline_entry", "entry"]].to_numpy(dtype=np.int64).tolist():
        if all(entry in stored for entry in pair) and name_of[pair[0]] == name_of[pair[1]]:
            rows.append(_warning(name_of[pair[0]], "compiled kernels", *(stored[entry] for entry in pair)))
    return frame_of(rows, WhatIfWarning)


def _without_common_code(
    keys: Mapping[str | None, list[EntryRow]], code: GeneratedCode
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


def _warning(name: str, what: str, entry: EntryRow, other: EntryRow) -> WhatIfWarning:
    assert entry.code_key is not None and other.code_key is not None
    assert entry.cache_key is not None and other.cache_key is not None
    return WhatIfWarning(
        what_if_key=name,
        what=what,
        entry=entry.entry,
        other_entry=other.entry,
        cache_key=entry.cache_key or "",
        other_key=other.cache_key or "",
        code_key=entry.code_key,
        other_code_key=other.code_key,
    )
