"""What a lookup could find under its key, and whether it would: torch's own steps, applied to what is known.

Mirrors `GuardedCache.find_guarded_entry` and `FxGraphCacheLoadable.load` (torch/_inductor/codecache.py and
torch/_functorch/_aot_autograd/aot_autograd_result.py, 2.10 to 2.15).
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Final, Literal, NamedTuple

from cachescope.analysis.guards import GuardError, holds
from cachescope.analysis.history.history import History, is_miss
from cachescope.analysis.history.timeline import NOT_CERTAIN
from cachescope.details import HashDetails
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.recorded_rows import LookupRow, RunRow
from cachescope.grouping import by_key
from cachescope.keys.paths import is_in_remote_cache
from cachescope.readers.assemble import Tables
from cachescope.readers.logs.notes import LookupNote
from cachescope.readers.reading import ListedEntry
from cachescope.readers.remote_cache.address import is_redis
from cachescope.terms import AOTAUTOGRAD, CACHES, FXGRAPH, PRECOMPILE
from cachescope.wording import plural

Sure = Literal["yes", "no", "maybe"]
_WAYS: Final = {AOTAUTOGRAD: "the AOTAutograd entry", FXGRAPH: "the FX entry"}


class Candidate(NamedTuple):
    """Something that lies under a key, or will by the time of the lookup."""

    what: str  # what it is, in a few words
    is_there: Sure = "yes"  # whether torch could load it
    why_not: str = ""  # why it could not, or may not be able to
    guards: str | None = None  # the guards that must hold; None if there are none
    # Whether the guards are known. Neither a recording nor a lock has the guards of what it stored.
    are_guards_known: bool = True
    entry: EntryRow | None = None  # the entry, if it was read
    # The lookup of the run that found or stored it, if it is known from a recording.
    recorded: LookupRow | None = None
    # The FX entries that an AOTAutograd entry points to; the guards are None where it does not name them.
    graphs: tuple[tuple[str, str | None], ...] = ()
    is_remote: bool = False  # whether it is in a remote cache

    def fits(self, sizes: Sequence[float | None], *, skips_guards: bool) -> Sure:
        """Whether its guards hold for some sizes."""
        if skips_guards or not sizes:
            return "yes"
        if not self.guards:
            return "yes" if self.are_guards_known else "maybe"
        known = {f"t{number}": size for number, size in enumerate(sizes) if size is not None}
        try:
            return "yes" if holds(self.guards, known) else "no"
        except GuardError:
            return "maybe"

    def perhaps_replaced(self, by: str) -> Candidate:
        """The same candidate in a remote cache, where somebody may have replaced it."""
        return self._replace(is_there="maybe", why_not=f"{by} may have replaced it by one with other guards")


Key = tuple[str, str]
"""A cache and a key."""
Stored = dict[Key, list[Candidate]]
"""What was stored under each key, in that order."""


class StoredEntries:
    """The entries of what was read, and those that locks list, by directory, lock or remote cache, and key."""

    def __init__(self, tables: Tables) -> None:
        entries = tables.entries.rows
        first_of_root = {entry.root: entry for entry in reversed(entries)}
        keyed = [entry for entry in entries if entry.cache in CACHES and entry.cache_key is not None]
        dumps = {root for root, entry in first_of_root.items() if is_in_remote_cache(entry.path)}
        given = dict.fromkeys([*tables.cache_roots, *(entry.root for entry in keyed)])
        self.remotes = [root for root in given if is_redis(root) or root in dumps]
        # An entry's path names its source; a line without a path is of the dump.
        with_problems = {problem.source for problem in tables.problems.rows}
        damaged = [root for root in self.remotes if root in with_problems]
        # The parts of remote caches that were not read, where a key may be; empty if all were.
        self.unread_remotely = "" if self.remotes else "a remote cache was not asked"
        if damaged:
            self.unread_remotely = f"some lines of {damaged[0]} could not be read"
        self._with_packages = {os.path.realpath(entry.root) for entry in entries if entry.cache == PRECOMPILE}
        # Directories and locks as they were given, by their real paths.
        self.roots = {os.path.realpath(root): root for root in given if root not in self.remotes}
        read = ((row.cache, row.cache_key or "", row.root, _candidate(row)) for row in keyed)
        of_locks = ((one.cache, one.cache_key, one.source, _listed(one)) for one in tables.listed)
        self._of_key = by_key(
            ((cache, key), (os.path.realpath(root), candidate))
            for cache, key, root, candidate in chain(read, of_locks)
        )

    def root_of(self, folder: str | None) -> str | None:
        """The directory as it was read, for one that a program names; None if it was not read."""
        real = None if folder is None else os.path.realpath(folder)
        return real if real in self.roots else None

    def has_no_package(self, root: str | None) -> bool:
        """Whether no function is precompiled in a directory that was read."""
        return root is not None and root not in self._with_packages

    def under(self, key: Key, root: str | None) -> Iterator[Candidate]:
        """What lies under a key in one directory, or in any of them."""
        for place, candidate in self._of_key.get(key, ()):
            if not candidate.is_remote and (root is None or place == root):
                yield candidate

    def remotely_under(self, key: Key) -> list[Candidate]:
        """What remote caches have under a key."""
        return [candidate for _, candidate in self._of_key.get(key, ()) if candidate.is_remote]


def _candidate(row: EntryRow) -> Candidate:
    is_there, why_not = _is_there(row)
    guards = row.fx_guards if len(row.fx_guards) == len(row.fx_keys) else (None,) * len(row.fx_keys)
    is_remote = is_in_remote_cache(row.path)
    name = row.cache_key or "" if is_remote else os.path.basename(row.path)
    what = f"{_WAYS[row.cache]} {name[:12]}… in {row.root}"
    graphs = tuple(zip(row.fx_keys, guards, strict=True))
    return Candidate(what, is_there, why_not, row.guards_expr, entry=row, graphs=graphs, is_remote=is_remote)


def _listed(one: ListedEntry) -> Candidate:
    what = f"{_WAYS[one.cache]} that {one.source} lists"
    graphs = tuple((key, None) for key in one.fx_keys)
    return Candidate(what, are_guards_known=False, graphs=graphs)


def _is_there(row: EntryRow) -> tuple[Sure, str]:
    if row.is_loadable:
        return "yes", ""
    if row.is_loadable is None:
        return "maybe", f"it could not be read here: {row.damage or row.status}"
    return "no", f"it is damaged: {row.damage}" if row.status == "damaged" else f"it is {row.status}"


def stored_by_recorded(lookups: Iterable[LookupRow], runs: Iterable[RunRow]) -> Stored:
    """What recorded runs found or stored, by their logs. What became of it since is not known."""
    history = History(lookups, (), runs, HashDetails())
    found: Stored = defaultdict(list)
    for at, row in enumerate(history.lookups):
        is_hit = row.outcome == "hit"
        why_not = None if is_hit else history.timeline.not_stored.get(at)
        if row.cache_key is None or not (is_hit or is_miss(row)) or why_not not in (None, *NOT_CERTAIN):
            continue
        graphs = (history.lookups[graph].cache_key for graph in history.timeline.graphs_of(at))
        one = Candidate(
            f"what run {row.run} had {'found' if is_hit else 'stored'}",
            "yes" if why_not is None else "maybe",
            "" if why_not is None else why_not.why,
            row.guards_expr if is_hit else None,
            are_guards_known=is_hit,
            recorded=row,
            graphs=tuple((key, None) for key in dict.fromkeys(graphs) if key is not None),
        )
        found[row.cache, row.cache_key].append(one)
    return found


Outcome = Literal["hit", "full_miss", "guard_miss", "bypass", "disabled", "unknown"]
GRAPH_GONE: Final = "hit"
"""torch's finer word for an AOTAutograd miss whose entry was found but not its graph."""

Under = Callable[[str, str], Iterable[Candidate]]
"""The candidates under a key of a cache."""


class PredictedOutcome(NamedTuple):
    """How a lookup would end, and the reason."""

    outcome: Outcome
    why: str
    status: str | None = None  # torch's finer word
    # What would be loaded; also an AOTAutograd entry whose graph is gone.
    candidate: Candidate | None = None
    guards: str | None = None  # the guards that hold, or the last ones that do not
    # The FX graphs that would be looked up through the AOTAutograd entry, each with whether it would be found.
    graphs: tuple[tuple[str, bool], ...] = ()


def not_known(why: str) -> PredictedOutcome:
    """Nothing says how a lookup would end."""
    return PredictedOutcome("unknown", why)


def found_under(
    candidates: Iterable[Candidate], note: LookupNote, where: str, graphs_under: Under | None = None
) -> PredictedOutcome:
    """How a lookup under a key would end."""
    refused: list[Candidate] = []
    open_: list[str] = []
    failed: list[Candidate] = []
    fitting: list[PredictedOutcome] = []
    for candidate in candidates:
        fits = candidate.fits(note.sizes, skips_guards=note.skips_guards)
        if candidate.is_there == "no":
            refused.append(candidate)
        elif fits == "no":
            failed.append(candidate)
        elif candidate.is_there == "maybe":
            open_.append(f"{candidate.what}: {candidate.why_not}")
        elif fits == "maybe":
            guards = candidate.guards or "they are not recorded"
            open_.append(f"{candidate.what}: whether its guards hold for these sizes is not known: {guards}")
        else:
            hit = _hit(candidate, note)
            fitting.append(hit if graphs_under is None else _with_graphs(hit, candidate, graphs_under))
    if fitting:
        if len({found.outcome for found in fitting}) == 1:
            return fitting[0]
        return not_known("several entries fit, and which of them torch takes is not known")
    if open_:
        return not_known(open_[0])
    if failed:
        last = failed[-1]
        why = (
            f"{plural(len(failed), 'entry', 'entries')} under this key {where}, and no guards hold for "
            f"{_sizes_text(note)}: {last.guards}"
        )
        return PredictedOutcome("guard_miss", why, "guard_miss", guards=last.guards)
    why = f"no entry under this key {where}"
    if refused:
        why = f"{refused[0].what} is under this key, but {refused[0].why_not}"
    return PredictedOutcome("full_miss", why, "full_miss")


def _with_graphs(hit: PredictedOutcome, candidate: Candidate, under: Under) -> PredictedOutcome:
    """The same after the graphs were looked up to which an AOTAutograd entry points."""
    graphs: list[tuple[str, bool]] = []
    for key, guards in candidate.graphs:
        # Its guards are a second key: they are compared, not evaluated.
        fitting = [one for one in under(FXGRAPH, key) if guards is None or (one.guards or "") == guards]
        if any(one.is_there == "yes" for one in fitting):
            graphs.append((key, True))
            continue
        if (why := next((one.why_not for one in fitting if one.is_there == "maybe"), None)) is not None:
            return not_known(f"{candidate.what} points to the FX entry {key[:8]}…, which may not load: {why}")
        gone = "cannot be loaded" if fitting else "is not there"
        why = f"{candidate.what} fits, but the FX entry {key[:8]}… that it points to {gone}"
        return PredictedOutcome("full_miss", why, GRAPH_GONE, candidate, hit.guards, (*graphs, (key, False)))
    return hit._replace(graphs=tuple(graphs))


def _hit(candidate: Candidate, note: LookupNote) -> PredictedOutcome:
    why = candidate.what
    if candidate.guards:
        why += f"; its guards hold for {_sizes_text(note)}: {candidate.guards}"
    return PredictedOutcome("hit", why, "hit", candidate, candidate.guards)


def _sizes_text(note: LookupNote) -> str:
    sizes = (f"t{number} = {'?' if size is None else size}" for number, size in enumerate(note.sizes))
    return ", ".join(sizes) or "no sizes"
