"""Keys that had been looked up before but have no entry: what became of it, as far as is known.

torch loads an intact entry whose guards hold. So an entry found after a full miss did not exist at the lookup,
whatever its time says, and it proves nothing about the miss. Only records count: a failure to load, an earlier
hit or save of the key, a compile that failed, a process that was killed.
"""

from __future__ import annotations

from cachescope.analysis.history.history import History
from cachescope.analysis.history.past_of_keys import KeyPast
from cachescope.analysis.history.timeline import CANNOT_WRITE, CUT_SHORT, last_line
from cachescope.analysis.verdicts.misses import Why
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.recorded_rows import LookupRow
from cachescope.keys.paths import is_in_remote_cache
from cachescope.terms import AOTAUTOGRAD, Evidence
from cachescope.verdict_kinds import NOT_KNOWN

Judged = tuple[Why, int | None]
"""Why the entry of a key was unavailable, and the index of the earlier lookup of the key."""


class UnavailableEntries:
    """Judges full misses of keys that had been looked up before, or of which torch itself reports something."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._rows = history.lookups
        self._cache_dir = {run.run: run.cache_dir for run in history.runs}

    def judge(self, at: int, past: KeyPast) -> Judged:
        """Why the entry of a key that had been looked up before was unavailable."""
        row = self._rows[at]
        if (found := self.not_loaded(at, past)) is not None:
            return found
        if past.refused is not None:
            why = self._history.timeline.not_stored[past.refused]
            run = self._rows[past.refused].run
            reason = f"run {run} had compiled the same key and stored nothing: {why.why}"
            evidence: Evidence = "recorded" if why.is_recorded else "inferred"
            text = "torch or the operating system wrote it down" if why.is_recorded else why.why
            if why == CUT_SHORT:
                return _not_known(run, why.why, past.refused)
            return _unavailable(why.kind, reason, evidence, text, past.refused)
        return self._elsewhere(row, past) or self._damaged(row, past) or self._gone(row, past)

    def not_loaded(self, at: int, past: KeyPast | None = None) -> Judged | None:
        """What torch itself reports of an entry that it could not load, or whose graph it could not find."""
        row = self._rows[at]
        if row.cache == AOTAUTOGRAD and (row.status_detailed == "hit" or self._looked_up_twice(at)):
            reason = "the same key had been stored, but the FX graph entry that it points to could not be found or loaded"
            why = "torch found the AOTAutograd entry and then looked the FX graph up again"
            return _unavailable("graph entry", reason, "recorded", why, _known_index(past))
        if row.load_error is None:
            return None
        damaged = self._damaged_entries(row)
        reason = f"the same key had been stored, but it could not be loaded: {last_line(row.load_error)}"
        kind = "damaged" if damaged else "load error"
        return _unavailable(kind, reason, "recorded", "torch wrote the error", _known_index(past))

    def _looked_up_twice(self, at: int) -> bool:
        """Whether the FX key of an AOTAutograd entry was looked up through the entry, and again after that failed."""
        graphs = self._history.timeline.graphs_of(at)
        if len(graphs) < 2:
            return False
        keys = [fx.cache_key for fx in (self._rows[graph] for graph in graphs) if fx.outcome != "hit"]
        return len(set(keys)) < len(keys)

    def _elsewhere(self, row: LookupRow, past: KeyPast) -> Judged | None:
        if past.elsewhere is None:
            return None
        there = past.elsewhere
        here = self._cache_dir[row.run]
        happened = "looked up" if past.latest_stored is None else "stored"
        reason = f"the same key had been {happened}, but in another directory: {there}, not {here}"
        why = "the logs name the directories of both runs"
        return _unavailable("another directory", reason, "recorded", why, _known_index(past))

    def _damaged(self, row: LookupRow, past: KeyPast) -> Judged | None:
        """A damaged entry next to a sound one: torch leaves the first in place and writes the second."""
        damaged = self._damaged_entries(row)
        if not damaged or len(damaged) == len(self._of_key(row)):
            return None
        reason = f"the same key had been stored, but it is damaged: {damaged[0].damage}"
        why = "a damaged entry lies under the key, and a sound one that was written since"
        return _unavailable("damaged", reason, "inferred", why, _known_index(past))

    def _gone(self, row: LookupRow, past: KeyPast) -> Judged:
        """An entry that had been stored and is gone, as far as both are known."""
        earlier = _known_index(past)
        assert earlier is not None
        before = self._rows[earlier]
        if row.compile_error is not None and CANNOT_WRITE.search(row.compile_error):
            error = last_line(row.compile_error)
            reason = f"run {before.run} had looked up the same key, and this process could not use the directory: {error}"
            why = "the compile after the miss failed of it"
            return _unavailable("load error", reason, "inferred", why, earlier)
        if row.time is None and before.run != row.run:
            return _not_known(
                before.run, "the logs have no times, so nothing says which of them was first", earlier
            )
        if any(entry.status == "unreadable" for entry in self._of_key(row)):
            return _not_known(before.run, "there is an entry under the key that cannot be read here", earlier)
        if row.status_detailed is None and row.detail_set is None:
            why = "it was not found, or its guards did not hold (a trace shows which)"
            return _not_known(before.run, why, earlier)
        if past.latest_hit is None and not self._history.timeline.is_stored(earlier):
            why = f"nothing that was read says that run {before.run} stored it (trace and text log together would)"
            return _not_known(before.run, why, earlier)
        directories = self._cache_dir.get(row.run), self._cache_dir.get(before.run)
        if before.run != row.run and None in directories:
            why = "whether both used one cache directory is not recorded"
            return _not_known(before.run, why, earlier)
        if past.latest_stored is None and directories[0] != directories[1]:
            return _not_known(before.run, "it was compiling it for another directory", earlier)
        if past.latest_hit is not None:
            found = self._rows[past.latest_hit].run
            return self._deleted(
                "recorded", f"run {found} had found it in the same directory", past.latest_hit
            )
        why = f"run {before.run} compiled it to the end, where torch stores it, and its text log shows no failure"
        return self._deleted("inferred", why, earlier)

    def _deleted(self, evidence: Evidence, why: str, earlier: int) -> Judged:
        reason = "the same key had been stored, but it was not there any more: deleted, moved or cleared"
        return _unavailable("deleted", reason, evidence, why, earlier)

    def _damaged_entries(self, row: LookupRow) -> list[EntryRow]:
        """Entries under the key that torch refuses; torch does not notice other damage, such as a different name."""
        return [entry for entry in self._of_key(row) if entry.status == "damaged" and entry.is_refused]

    def _of_key(self, row: LookupRow) -> list[EntryRow]:
        # Whether a process asked a remote cache is not recorded.
        return [entry for entry in self._history.entries_of(row) if not is_in_remote_cache(entry.path)]


def _unavailable(kind: str, reason: str, evidence: Evidence, because: str, baseline: int | None) -> Judged:
    return Why("entry_unavailable", reason, evidence, because, kind=kind), baseline


def _not_known(run: int, why: str, earlier: int | None) -> Judged:
    reason = f"run {run} had looked up the same key, and what became of its entry is not known: {why}"
    return _unavailable(NOT_KNOWN, reason, "not_known", why, earlier)


def _known_index(past: KeyPast | None) -> int | None:
    if past is None:
        return None
    return past.latest if past.latest_stored is None else past.latest_stored
