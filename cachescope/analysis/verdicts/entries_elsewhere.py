"""Entries of a missed key in directories that its run did not search, such as a baked cache that is not used, or the folders of other ranks."""

from __future__ import annotations

from bisect import bisect_right

from cachescope.analysis.history.entry_times import LONG_AGO, EntryTimes
from cachescope.analysis.history.history import History
from cachescope.analysis.verdicts.misses import Why
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.recorded_rows import LookupRow
from cachescope.kept import kept
from cachescope.verdict_kinds import ELSEWHERE
from cachescope.wording import duration


class EntriesElsewhere:
    """The entries of each missed key in other directories. A copy of the run's own directory is no other one.

    A directory that holds what the run compiled is a copy. Lookups are named by their index in time order.
    """

    def __init__(self, history: History) -> None:
        self._history = history
        self.times = EntryTimes(history)

    def known(self, at: int) -> tuple[Why, EntryRow | int] | None:
        """An entry that a compile which was not read had stored under the key, in a directory that the run did not search.

        It was read, or another process, such as another rank of the start, found it there.
        """
        row, here = self._history.lookups[at], self._history.folders[at]
        if here is None:
            return None
        for entry in self._history.of_other_compiles.get((row.cache, row.cache_key), ()):
            # Whether guards would have held is not known.
            guards = [one.guards_expr for one in (entry, *self._history.graphs_below(entry))]
            if self._is_elsewhere(entry, here) and self._is_earlier(entry, row) and not any(guards):
                reason = f"the same key lies in another directory: {entry.root}, not {here}"
                why = "the entry was written before, and no miss that was read made it: its compile time or its file is another"
                return Why("entry_unavailable", reason, "inferred", why, kind="another directory"), entry
        return self._found_there(at)

    def _found_there(self, at: int) -> tuple[Why, int] | None:
        """A later hit of the key in another directory, if the compile that stored the entry had begun before the lookup."""
        row, here, key = self._history.lookups[at], self._history.folders[at], self._history.key[at]
        hits = [] if key is None or row.time is None else self._found_in(key)
        for one in hits[bisect_right(hits, at) :]:
            found, there = self._history.lookups[one], self._history.folders[one]
            later, took = (found.time or 0) - (row.time or 0), found.time_saved_ns
            if there == here or found.guards_expr is not None:
                continue
            if took is None or not 0 <= later < took:
                break
            reason = f"the same key lies in another directory: {there}, not {here}"
            why = f"run {found.run} found it there {duration(later)} later, and it takes {duration(took)} to compile"
            return Why("entry_unavailable", reason, "inferred", why, kind="another directory"), one
        return None

    @kept
    def _found_in(self, key: int) -> list[int]:
        """The hits of a key in named directories for which nothing that was read had compiled it."""
        history, compiled, hits = self._history, set[str | None]({None}), []
        for at in history.of_key[key]:
            row, folder = history.lookups[at], history.folders[at]
            if row.outcome != "hit":
                compiled.add(folder)
            elif folder not in compiled and row.prediction is None:
                hits.append(at)
        return hits

    def possible(self, at: int) -> tuple[Why, EntryRow | None] | None:
        """A doubt about a first lookup: an entry of the key that may have been in another directory, or a bundle that holds the key."""
        row, here = self._history.lookups[at], self._history.folders[at]
        entries = self._history.local_entries_of(row)
        # The directories that hold what a miss that was read stored under the key, or may hold it.
        own = {one.root for one in entries if not self._history.is_of_another_compile(one)}
        looked = "no log names the directory of the run" if here is None else f"the run looked in {here}"
        for entry in entries:
            of_another = self._history.is_of_another_compile(entry)
            if of_another is False or entry.status != "ok":
                continue
            is_certain = of_another or self._is_earlier(entry, row)
            if self._is_elsewhere(entry, here):
                # Where times show nothing, what lies there may also be a copy of what the run stored.
                found = looked if is_certain else f"{looked}, or that is a copy of what the run stored"
                is_doubt = is_certain or self.times.interval(entry)[0] == LONG_AGO
            else:
                # Another directory may have been mounted there, or it was filled since.
                found = "what the run stored under it does not"
                is_doubt = entry.root not in own and self._history.has_stored(at)
            if is_doubt:
                why = f"the same key lies in {entry.root}, and {found}; whether it would have been found there is not known"
                return Why("first_lookup", why, "not_known", why, kind=ELSEWHERE), entry
        asked = (self._history.lookups[one] for one in (at, *self._history.timeline.graphs_of(at)))
        missed = {one.cache_key for one in asked if one.outcome == "full_miss"}
        for bundle in self._history.bundles:
            is_earlier = row.time is not None and (bundle.modified_time or row.time) < row.time
            if is_earlier and not missed.isdisjoint(bundle.fx_keys):
                reason = f"{bundle.path} holds what was missed, and its time is earlier: the run had not loaded it, or not all of it"
                why = "no log shows whether the run was to load it"
                return Why("first_lookup", reason, "not_known", why, kind=ELSEWHERE), None
        return None

    def _is_elsewhere(self, entry: EntryRow, here: str | None) -> bool:
        """Whether an entry lies in a directory that is neither that of a lookup nor a copy of it."""
        history = self._history
        return history.place_of(entry.root) != here and here not in history.copied_from.get(entry.root, ())

    def _is_earlier(self, entry: EntryRow, row: LookupRow) -> bool:
        """Whether an entry is older than a lookup; False where all entries of its directory have one time."""
        return row.time is not None and self.times.interval(entry)[1] <= row.time
