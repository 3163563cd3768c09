"""What had happened to each key before a lookup of it. Lookups are named by their index in time order.

Each key is walked once, in time order: a lookup is processed when it was made and when its compile ended, and
not again for every later one. So a thousand ranks that miss one key take a thousand steps.

Since 2.8 text logs do not mention guards. A key missed because of its guards if it had been stored for a graph with
symbolic sizes, no failure to load it was recorded, and, if the cache directory is known, entries with several guards
exist there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

from cachescope.analysis.history.directory import Directory, Event, Racing
from cachescope.analysis.history.history import History, is_miss, is_open
from cachescope.details import HashDetails
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.recorded_rows import LookupRow, RunRow
from cachescope.grouping import by_key

_NotFound = Literal["pending", "not stored", "elsewhere", "gone"]


class Past(NamedTuple):
    """What had happened to a key before a lookup of it."""

    latest: int  # the latest earlier lookup of it
    latest_hit: int | None  # the latest that found an entry
    latest_stored: int | None  # the latest that shows that an entry had been stored
    # The runs that were still compiling it; if the key is known in other directories only, those that compiled it for one of them.
    racing: Racing | None
    # If none was: why no entry was found, as far as is known, and the lookup that shows it. That one had not compiled its last graph,
    # stored nothing, or stored an entry, or looked the key up last.
    why: _NotFound
    by: int

    @property
    def known(self) -> int:
        """The lookup to compare with."""
        return self.latest if self.latest_stored is None else self.latest_stored


def _events(history: History, lookups: Iterable[int]) -> Iterator[Event]:
    """What the lookups of a key did, each in its own folder."""
    timeline = history.timeline
    rows = [(at, history.lookups[at]) for at in lookups]
    # Without times, the lookups under one compile id are taken for one compile, which stores nothing before the last of them.
    last = {(row.run, row.compile_id): at for at, row in rows}
    for at, row in rows:
        folder = history.folders[at]
        if row.outcome == "hit":
            yield Event(at + 1, folder, at, 1)
        elif is_miss(row):
            until = timeline.until[at]
            if timeline.end[at] is None:
                until = max(until, last[row.run, row.compile_id] + 1)
            yield Event(at + 1, folder, at, 1, run=row.run)
            yield Event(until, folder, at, -1, run=row.run)
            is_kept_back = at in timeline.not_stored
            yield Event(until, folder, at, 0, run=row.run) if is_kept_back else Event(until, folder, at, 1)


def pasts_of(history: History, chosen: Iterable[int]) -> Iterator[tuple[int, Past]]:
    """The past of each of some lookups, in time order; those whose key was not looked up before are left out."""
    lookups, keys, places = history.lookups, history.key, history.of_key
    # What a pre-flight predicts is kept apart from what was made: it stores nothing for another run.
    of_key = by_key(
        ((key, None if lookups[at].prediction is None else lookups[at].run), at)
        for at in chosen
        if (key := keys[at]) is not None and places[key][0] != at
    )
    for (key, run), asking in of_key.items():
        every = places[key]
        # Predictions come after every real lookup.
        if lookups[every[-1]].prediction is not None:
            every = [one for one in every if lookups[one].prediction is None or lookups[one].run == run]
        yield from _pasts(history, every, asking)


def _pasts(history: History, every: Sequence[int], asking: Iterable[int]) -> Iterator[tuple[int, Past]]:
    directory, waiting = Directory(_events(history, every)), deque(every)
    lookups, folders_of = history.lookups, history.folders
    latest = latest_hit = None
    latest_of: dict[int, int] = {}  # by run
    folders: set[str | None] = set()
    for at in asking:
        while waiting and waiting[0] < at:
            latest = waiting.popleft()
            latest_of[lookups[latest].run] = latest
            folders.add(folders_of[latest])
            latest_hit = latest if lookups[latest].outcome == "hit" else latest_hit
        if latest is None:
            continue
        directory.move_to(at)
        here, stored = folders_of[at], directory.latest
        last, is_here = (latest, here in folders) if stored < 0 else (stored, directory.holds(here))
        why: _NotFound = "gone"
        by, racing = last, None
        own = latest_of.get(lookups[at].run, -1)
        # torch compiles the backward graph, and stores the entry of both, when backward() is called.
        if own > stored and max(history.timeline.graphs_of(own), default=-1) > at:
            why, by = "pending", own
        elif directory.kept_back > stored:
            why, by = "not stored", directory.kept_back
        elif here is not None and not is_here and folders_of[last] is not None:
            why = "elsewhere"
        if stored < 0 and why != "pending" and lookups[at].time is not None:
            racing = directory.racing(lookups[at].run, here)
            if racing is None and why == "elsewhere":
                # They compiled for another directory. Had they shared this one, nothing would have been found in it either.
                racing = directory.racing(lookups[at].run, None)
        yield at, Past(latest, latest_hit, None if stored < 0 else stored, racing, why, by)


def settled_history(
    lookups: Iterable[LookupRow], entries: Iterable[EntryRow], runs: Iterable[RunRow], details: HashDetails
) -> History:
    """The history, where a miss that a text log leaves open is a guard miss if it can be nothing else."""
    history = History(lookups, entries, runs, details)
    found = _inferred_guard_misses(history)
    for at in found:
        history.lookups[at] = replace(history.lookups[at], outcome="guard_miss")
    history.inferred = tuple(history.lookups[at].lookup for at in found)
    return history


def _inferred_guard_misses(history: History) -> list[int]:
    lookups = history.lookups
    asked = [at for at, row in enumerate(lookups) if is_open(row)]
    # Whether each key that had been looked up before had been stored before.
    was_stored = {at: past.latest_stored is not None for at, past in pasts_of(history, asked)}
    found: dict[int, None] = {}
    for at in asked:
        row = lookups[at]
        if row.cache_key is None or row.load_error is not None:
            continue
        # The FX graph of an AOTAutograd guard miss has the same guards, with or without details.
        is_symbolic = row.detail_set is not None and history.keys.has_symbols(row.detail_set)
        # In a remote cache an entry with other guards replaces the one before, so the number of entries says nothing.
        if (is_symbolic or history.aot[at] in found) and _is_there(
            was_stored.get(at, False), history.local_entries_of(row)
        ):
            found[at] = None
    # Through 2.7 an AOTAutograd entry had no guards of its own: the guards of its graphs failed.
    for at, row in enumerate(lookups):
        above = history.aot[at]
        if above is not None and (row.outcome == "guard_miss" or at in found) and is_open(lookups[above]):
            found[above] = None
    return list(found)


def _is_there(stored: bool, entries: list[EntryRow]) -> bool:
    """Whether a sound entry existed whose guards may have failed; if a directory was read, it decides.

    A guard miss adds an entry under the key, with other guards. A single entry is the one that the miss wrote.
    """
    if not entries:
        return stored
    sound = {entry.guards_expr for entry in entries if entry.status == "ok"}
    unread = sum(entry.status == "unreadable" for entry in entries)
    return stored and len(sound) + unread > 1
