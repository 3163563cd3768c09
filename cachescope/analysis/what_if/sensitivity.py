"""Which fields would help: for each field and each small set of fields, the misses that only these keep from hitting.

Every field that differs between keys is tried alone. Sets are not guessed: they are the differences between keys of
one graph, nearest first, and each gets a whole replay.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from cachescope.analysis.what_if.cells import MISS, UNKNOWN, Outcomes
from cachescope.analysis.what_if.evidence import SafetyOfFields
from cachescope.analysis.what_if.frames import Times
from cachescope.analysis.what_if.keys import Column, KeyTable, distinct
from cachescope.analysis.what_if.replay import Replay
from cachescope.frames.replay import SENSITIVITY
from cachescope.keys.key_fields import Removed

_Fields = frozenset[str]
# The number of sets to try: the most frequent.
_SETS: Final = 32
# How many comparisons of two values the search for sets may take; with few keys, every pair is compared.
_COMPARISONS: Final = 100_000_000
_FEWEST_PARTNERS: Final = 4
# Up to this many fields, each is put back in turn to see whether all of them are needed.
_PUT_BACK: Final = 8


def sensitivity_frame(replay: Replay, times: Times, evidence: pd.DataFrame, largest: int = 2) -> pd.DataFrame:
    """The frame ``sensitivity``; the most compile time first.

    Parameters
    ----------
    replay : Replay
    times : Times
    evidence : DataFrame
        The frame evidence.
    largest : int
        Sets of up to this many fields are tried wherever two keys differ in them. Of larger sets, only the
        smallest that separates a key from the others of its graph is tried.
    """
    trial = _Trial(replay, times)
    alone = [field for field in replay.table.varying if replay.table.joins(field)]
    rows = [_row(trial, frozenset([field])) for field in alone]
    rows += [_row(trial, fields) for fields in _sets(replay, largest)]
    spoken = SafetyOfFields(evidence)
    found = [row | asdict(spoken.on(row["fields"])) for row in rows if row is not None]
    found.sort(
        key=lambda row: (
            -(row["time_alone_ns"] or 0),
            -row["misses_alone"],
            len(row["fields"]),
            row["fields"],
        )
    )
    return SENSITIVITY.build(found)


@dataclass(frozen=True, slots=True)
class _Result:
    turned: npt.NDArray[np.int64]
    unknown: int


class _Trial:
    """Replays without some fields, each made once."""

    def __init__(self, replay: Replay, times: Times) -> None:
        self.replay = replay
        self.times = times
        self._distinct = distinct(replay.table.lanes(Removed())[0])
        self._known: dict[_Fields, _Result] = {}

    def without(self, fields: _Fields) -> _Result:
        """What turns into hits without some fields."""
        if fields not in self._known:
            self._known[fields] = self._replay(Removed(fields))
        return self._known[fields]

    def known_parts(self, fields: _Fields) -> Iterator[_Fields]:
        """The proper subsets of a set that can have turned some of its misses."""
        if len(fields) <= _PUT_BACK:
            yield from (fields - {field} for field in fields)
        else:
            yield from [other for other in self._known if other < fields]

    def _replay(self, removed: Removed) -> _Result:
        lanes = self.replay.table.lanes(removed)
        if distinct(lanes[0]) == self._distinct:
            # No keys have become equal: nothing turns.
            return _Result(np.zeros(0, dtype=np.int64), 0)
        after: Outcomes = self.replay.outcomes(removed, lanes)
        unknown = int((after[self.times.miss] == UNKNOWN).sum())
        return _Result(np.flatnonzero(self.times.turned(after)), unknown)


def _row(trial: _Trial, fields: _Fields) -> dict[str, Any] | None:
    result = trial.without(fields)
    if not len(result.turned):
        return None
    together = len(result.turned)
    if len(fields) > 1:
        smaller = np.zeros(len(trial.times.taken), dtype=bool)
        for part in trial.known_parts(fields):
            smaller[trial.without(part).turned] = True
        together = int((~smaller[result.turned]).sum())
        if not together:
            return None
    chosen = np.zeros(len(trial.times.taken), dtype=bool)
    chosen[result.turned] = True
    costliest = result.turned[np.argmax(trial.times.taken[result.turned])]
    return {
        "fields": tuple(sorted(fields)),
        "misses_alone": len(result.turned),
        "time_alone_ns": trial.times.total(chosen),
        "misses_together": together,
        "needs_all": len(fields) > 1 and together == len(result.turned),
        "unknown": result.unknown,
        "example_lookup": trial.replay.recorded.rows[int(costliest)].lookup,
    }


def _sets(replay: Replay, largest: int) -> list[_Fields]:
    """Sets of at least two fields that separate keys of one graph, the most frequent first."""
    table = replay.table
    names = table.varying
    missed = np.zeros(len(table.keys), dtype=bool)
    missed[replay.recorded.key[replay.recorded.outcome == MISS]] = True
    keys = np.flatnonzero(table.has_details)
    if len(keys) < 2 or len(names) < 2:
        return []
    graph = table.column("gm", keys) if "gm" in names else np.zeros(len(keys), dtype=np.uint16)
    kinds = pd.factorize(
        pd.Series([f"{table.keys[k].cache} {table.keys[k].direction}" for k in keys.tolist()])
    )[0]
    order = np.lexsort((np.arange(len(keys)), graph, kinds))
    partners = max(_FEWEST_PARTNERS, _COMPARISONS // (len(names) * len(keys)))
    pairs = _pairs(kinds[order], graph[order], partners)
    keys = keys[order]
    _compare(table, keys, pairs)
    count: Counter[_Fields] = Counter()
    nearest = _Nearest(len(keys))
    for pair in pairs:
        of_use = (
            pair.is_one_graph
            & (pair.size > 0)
            & ((pair.size <= largest) | nearest.is_nearer(pair.later, pair.size))
        )
        of_use &= missed[keys[pair.later]] | missed[keys[pair.earlier]]
        earlier, later = pair.earlier[of_use], pair.later[of_use]
        codes, unique = pd.factorize(pair.pattern[of_use])
        first = np.full(len(unique), len(later))
        np.minimum.at(first, codes, np.arange(len(later)))
        sets = _differing(table, keys[earlier[first]], keys[later[first]])
        times = np.bincount(codes, minlength=len(unique))
        for fields, n in zip(sets, times.tolist(), strict=True):
            if 2 <= len(fields) <= largest:
                count[fields] += n
        nearest.add(later, pair.size[of_use], codes, sets)
    for fields, n in nearest.sets().items():
        if len(fields) > max(largest, 1):
            count[fields] += n
    return [fields for fields, _ in sorted(count.items(), key=lambda item: (-item[1], sorted(item[0])))][
        :_SETS
    ]


@dataclass(slots=True)
class _Pairs:
    """Pairs of keys of one kind and graph; how many fields differ, and a number that is equal for equal fields."""

    earlier: npt.NDArray[np.int64]
    later: npt.NDArray[np.int64]
    is_one_graph: npt.NDArray[np.bool_]
    back: int
    size: npt.NDArray[np.int16]
    pattern: npt.NDArray[np.uint64]

    @classmethod
    def of(cls, earlier: npt.NDArray[np.int64], later: npt.NDArray[np.int64], back: int = 0) -> _Pairs:
        """Pairs that are not compared yet, all of them at one distance if `back` is given."""
        size, pattern = np.zeros(len(later), np.int16), np.zeros(len(later), np.uint64)
        return cls(earlier, later, np.ones(len(later), dtype=bool), back, size, pattern)


def _pairs(kinds: npt.NDArray[np.int64], graph: Column, partners: int) -> list[_Pairs]:
    """Every key with the first of its kind and graph, then with those just before it; keys in that order."""
    new = np.r_[True, (kinds[1:] != kinds[:-1]) | (graph[1:] != graph[:-1])]
    at = np.arange(len(new))
    start = np.maximum.accumulate(np.where(new, at, 0))
    rest = at[at > start]
    found = [_Pairs.of(start[rest], rest)]
    for back in range(1, partners + 1):
        pair = _Pairs.of(at[:-back], at[back:], back)
        pair.is_one_graph = pair.earlier > start[pair.later]
        if not pair.is_one_graph.any():
            break
        found.append(pair)
    return found


def _compare(table: KeyTable, keys: npt.NDArray[np.int64], pairs: list[_Pairs]) -> None:
    """Count the fields that differ in each pair, one field at a time to avoid a grid of all."""
    weights = np.random.default_rng(0).integers(1, 2**63, size=len(table.varying), dtype=np.uint64)
    for field, weight in zip(table.varying, weights, strict=True):
        column = table.column(field, keys)
        for pair in pairs:
            # Neighbouring keys are contiguous, which is quicker than picking them.
            back = pair.back
            differs = column[:-back] != column[back:] if back else column[pair.earlier] != column[pair.later]
            at = np.flatnonzero(differs)
            if len(at):
                pair.size[at] += 1
                pair.pattern[at] += weight


def _differing(
    table: KeyTable, earlier: npt.NDArray[np.int64], later: npt.NDArray[np.int64]
) -> list[_Fields]:
    """The fields in which each pair of keys differs."""
    found: list[list[str]] = [[] for _ in earlier]
    for field in table.varying:
        for at in np.flatnonzero(table.column(field, earlier) != table.column(field, later)).tolist():
            found[at].append(field)
    return [frozenset(fields) for fields in found]


class _Nearest:
    """Per key, the smallest set of fields that separates it from an earlier key of its graph."""

    def __init__(self, keys: int) -> None:
        self._size = np.full(keys, 2**31 - 1, dtype=np.int64)
        self._set = np.full(keys, -1, dtype=np.int64)
        self._sets: dict[_Fields, int] = {}

    def is_nearer(self, keys: npt.NDArray[np.int64], size: npt.NDArray[np.int16]) -> npt.NDArray[np.bool_]:
        """Whether sets of some sizes are smaller than what separates some keys so far."""
        nearer: npt.NDArray[np.bool_] = size < self._size[keys]
        return nearer

    def add(
        self,
        keys: npt.NDArray[np.int64],
        size: npt.NDArray[np.int16],
        codes: npt.NDArray[np.int64],
        sets: list[_Fields],
    ) -> None:
        if not sets:
            return
        numbers = np.array([self._sets.setdefault(fields, len(self._sets)) for fields in sets])
        nearer = self.is_nearer(keys, size)
        self._size[keys[nearer]] = size[nearer]
        self._set[keys[nearer]] = numbers[codes[nearer]]

    def sets(self) -> dict[_Fields, int]:
        """The sets that are the smallest for some key, and for how many."""
        names = list(self._sets)
        numbers, counts = np.unique(self._set[self._set >= 0], return_counts=True)
        return {names[int(n)]: int(count) for n, count in zip(numbers, counts, strict=True)}
