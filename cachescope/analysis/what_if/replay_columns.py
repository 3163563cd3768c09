"""The recorded lookups as every replay needs them: their outcomes, keys and directories, and since when results exist.

Time is counted in *positions*: the place of a lookup among all lookups in time order.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping
from functools import cached_property
from itertools import accumulate
from typing import Final, NamedTuple

from cachescope.analysis.history.history import History, is_miss
from cachescope.terms import VLLM

NEVER: Final = 2**31 - 1
"""The position of what does not happen."""
HIT: Final = 0
MISS: Final = 1
UNKNOWN: Final = 2
"""Not an outcome of torch: a replay reports it if nothing decides."""
OTHER: Final = 3
"""Bypassed, disabled, or of vLLM: no replay changes it."""

Outcomes = list[int]


class Key(NamedTuple):
    """A key of torch, as far as it is known."""

    cache: str
    direction: str | None
    name: str
    detail_set: int | None  # None if no source has its hash details

    @property
    def home(self) -> tuple[str, str | None]:
        """Keys of different homes never become equal."""
        return self.cache, self.direction


class ReplayColumns:
    """The lookups in time order."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.key = history.key
        # The keys of lookups, then those of entries alone; and the index of each in them.
        self.keys, self.key_of_entry = _keys(history)
        self.outcome = [
            OTHER
            if key is None or row.cache == VLLM
            else HIT
            if row.outcome == "hit"
            else MISS
            if is_miss(row)
            else OTHER
            for row, key in zip(history.lookups, self.key, strict=True)
        ]
        # One without a time, or of a clock that was set back, gets the time of the one before it.
        self._times = list(accumulate((row.time or 0 for row in history.lookups), max))
        # From which position the result of each lookup exists; `NEVER` if it stored none, as far as is known.
        self.stored_since = self._since()

    def position_of(self, time: int | None) -> int:
        """The first lookup made after a time; 0 if the time is unknown."""
        return 0 if time is None else bisect_right(self._times, time)

    def _since(self) -> list[int]:
        history = self.history
        # In one compile the graph of an AOTAutograd entry is looked up again after the entry failed.
        last_of = {above: at for at, above in enumerate(history.aot) if above is not None}
        not_stored, ends = history.timeline.not_stored, history.timeline.end
        found = []
        for at, (outcome, above) in enumerate(zip(self.outcome, history.aot, strict=True)):
            if outcome != MISS or at in not_stored:
                found.append(NEVER)
            else:
                last = at if above is None else last_of[above]
                found.append(max(self.position_of(ends[at]), last + 1))
        return found

    @cached_property
    def run_directories(self) -> RunDirectories:
        """Which cache directory each run had."""
        return RunDirectories(self)


def _keys(history: History) -> tuple[list[Key], list[int]]:
    """All keys with the first details that any source has for them, and the key of every entry."""
    numbers = dict(history.key_numbers)
    keys = []
    for (cache, name), indexes in zip(history.key_numbers, history.of_key.values(), strict=True):
        rows = (history.lookups[at] for at in indexes)
        first = next((row for row in rows if row.detail_set is not None), None)
        direction, detail_set = (first.direction, first.detail_set) if first else (None, None)
        keys.append(Key(cache, direction, name, detail_set))
    key_of_entry = []
    for entry in history.entries:
        assert entry.cache_key is not None
        key = numbers.setdefault((entry.cache, entry.cache_key), len(keys))
        key_of_entry.append(key)
        if key == len(keys):
            keys.append(Key(entry.cache, None, entry.cache_key, None))
        if entry.detail_set is not None and keys[key].detail_set is None:
            direction = history.details.direction(entry.detail_set)
            keys[key] = Key(entry.cache, direction, entry.cache_key, entry.detail_set)
    return keys, key_of_entry


class RunDirectories:
    """Which runs share a cache directory, and which of these directories each directory read is.

    A recording may have been moved since it was made: a directory at a path that no run used is matched by the
    keys it contains.
    """

    def __init__(self, columns: ReplayColumns) -> None:
        history = columns.history
        known = {run.run: run.cache_dir for run in history.runs if run.cache_dir is not None}
        code = {name: at for at, name in enumerate(dict.fromkeys(known.values()))}
        of_torch = [row.cache != VLLM for row in history.lookups]
        # Whether every run says which directory it had.
        self.are_all_known = all(
            row.run in known for row, is_one in zip(history.lookups, of_torch, strict=True) if is_one
        )
        of_run = {run: code[name] for run, name in known.items()}
        if of_run and not self.are_all_known:
            _find_by_hits(of_run, columns)
        # All runs that nothing is known of share one directory: the only one, or one more.
        shared = 0 if len(code) == 1 else len(code)
        self.count = shared + 1
        # The number of the directory of each lookup.
        self.of_lookup = [of_run.get(row.run, shared) for row in history.lookups]
        used = {one for one, is_one in zip(self.of_lookup, of_torch, strict=True) if is_one}
        # The numbers of the directories that each directory read may be, by its path.
        self.of_root = self._roots(columns, code, sorted(used) or [0])

    def _roots(
        self, columns: ReplayColumns, code: Mapping[str, int], used: list[int]
    ) -> dict[str, list[int]]:
        where: dict[int, set[int]] = defaultdict(set)
        for key, directory in zip(columns.key, self.of_lookup, strict=True):
            if key is not None:
                where[key].add(directory)
        votes: dict[str, Counter[int]] = defaultdict(Counter)
        for entry, key in zip(columns.history.entries, columns.key_of_entry, strict=True):
            votes[entry.root].update(sorted(where.get(key, ())))
        found = {}
        for root, count in votes.items():
            if root in code:
                found[root] = [code[root]]
            else:
                found[root] = [count.most_common(1)[0][0]] if count else used
        return found


def _find_by_hits(of_run: dict[int, int], columns: ReplayColumns) -> None:
    """Add the runs that found what only one directory contained."""
    lookups, not_stored = columns.history.lookups, columns.history.timeline.not_stored
    wanted = {
        key
        for row, key in zip(lookups, columns.key, strict=True)
        if key is not None and row.outcome == "hit" and row.run not in of_run
    }
    directory_of: dict[int, int] = {}
    for at, (row, key) in enumerate(zip(lookups, columns.key, strict=True)):
        if key is None or key not in wanted:
            continue
        if row.outcome == "hit":
            if row.run not in of_run and key in directory_of:
                of_run[row.run] = directory_of[key]
        elif row.run in of_run and at not in not_stored:
            directory_of[key] = of_run[row.run]
