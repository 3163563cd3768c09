"""Which cache directory each lookup was made in, and which of them each directory that was read is."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np

from cachescope.analysis.history.history import History
from cachescope.analysis.what_if.recorded import Positions, Recorded


class Directories:
    """Which runs share a cache directory, and which of these directories each directory read is.

    A recording may have been moved since it was made: a directory at a path that no run used is matched by the
    keys it contains.

    Attributes
    ----------
    count : int
    are_all_known : bool
        Whether every run says which directory it had.
    of_lookup : array of int
        The number of the directory of each lookup.
    of_root : dict
        The numbers of the directories that each directory read may be, by its path.
    """

    def __init__(self, history: History, recorded: Recorded) -> None:
        known = {run.run: run.cache_dir for run in history.runs if run.cache_dir is not None}
        code = {name: at for at, name in enumerate(dict.fromkeys(known.values()))}
        runs, which = np.unique(recorded.lookups.run, return_inverse=True)
        of_torch = ~recorded.lookups.is_of_vllm
        self.are_all_known = known.keys() >= set(recorded.lookups.run[of_torch].tolist())
        of_run = {run: code[name] for run, name in known.items()}
        if of_run and not self.are_all_known:
            _find_by_hits(of_run, history, recorded)
        # All runs that nothing is known of share one directory: the only one, or one more.
        shared = 0 if len(code) == 1 else len(code)
        self.count = shared + 1
        codes = [of_run.get(run, shared) for run in runs.tolist()]
        self.of_lookup: Positions = np.array(codes, dtype=np.int64)[which]
        self.of_root = self._roots(
            history, recorded, code, np.unique(self.of_lookup[of_torch]).tolist() or [0]
        )

    def _roots(
        self, history: History, recorded: Recorded, code: dict[str, int], used: list[int]
    ) -> dict[str, list[int]]:
        looked_up = np.isin(recorded.key, np.unique(recorded.key_of_entry)) & (recorded.key >= 0)
        pairs = np.unique(np.stack([recorded.key[looked_up], self.of_lookup[looked_up]]), axis=1)
        where: dict[int, set[int]] = defaultdict(set)
        for key, directory in pairs.T.tolist():
            where[key].add(directory)
        votes: dict[str, Counter[int]] = defaultdict(Counter)
        for entry, key in zip(history.entries, recorded.key_of_entry, strict=True):
            votes[entry.root].update(where.get(key, ()))
        found = {}
        for root, count in votes.items():
            if root in code:
                found[root] = [code[root]]
            else:
                found[root] = [count.most_common(1)[0][0]] if count else used
        return found


def _find_by_hits(of_run: dict[int, int], history: History, recorded: Recorded) -> None:
    """Add the runs that found what only one directory contained."""
    lookups, not_stored = recorded.lookups, history.timeline.not_stored
    is_open = ~np.isin(lookups.run, list(of_run))
    wanted = np.unique(recorded.key[is_open & lookups.is_hit])
    directory_of: dict[int, int] = {}
    for at in np.flatnonzero(np.isin(recorded.key, wanted) & (recorded.key >= 0)).tolist():
        run, key = int(lookups.run[at]), int(recorded.key[at])
        if lookups.is_hit[at]:
            if run not in of_run and key in directory_of:
                of_run[run] = directory_of[key]
        elif run in of_run and at not in not_stored:
            directory_of[key] = of_run[run]
