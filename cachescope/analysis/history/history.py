"""What was stored when, by whom, and under which guards: worked out once and shared.

Verdicts, replays and predictions all start from one `History`. A lookup is named by its index in time order.
"""

from __future__ import annotations

import os
import shlex
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, pairwise

from cachescope.analysis.history.timeline import NotStored, Timeline
from cachescope.analysis.key_distance import Change, Form, KeyDistances
from cachescope.details import HashDetails
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.recorded_rows import LookupRow, RunRow
from cachescope.grouping import by_key
from cachescope.kept import kept
from cachescope.keys.paths import is_in_remote_cache
from cachescope.terms import AOTAUTOGRAD, BLOCK, BUNDLES, CACHES, FXGRAPH, MISSED, VLLM


class History:
    """What happened, in time order.

    Lookups may be given in any order. A run without times keeps the place of its number; the lookups of a run stay in the order in
    which torch made them, even if a clock was set back. What a pre-flight predicts comes after every real lookup: it
    stored nothing, and would find what others stored.
    """

    def __init__(
        self,
        lookups: Iterable[LookupRow],
        entries: Iterable[EntryRow],
        runs: Iterable[RunRow],
        details: HashDetails,
    ) -> None:
        self.lookups = _in_time_order(lookups)
        files = list(entries)
        # Those that have a key; and the mega-caches and standalone artifacts.
        self.entries = [one for one in files if one.cache in CACHES and one.cache_key is not None]
        self.bundles = [one for one in files if one.cache in BUNDLES]
        self.runs = list(runs)
        # Each run and its rank, by its number.
        self.run_of = {run.run: run for run in self.runs}
        self.rank_of = {run.run: run.rank for run in self.runs}
        self.details = details
        self.keys = KeyDistances(details)
        self.index_of = {row.lookup: at for at, row in enumerate(self.lookups)}
        # The AOTAutograd lookup that each was made under.
        self.aot = [
            None if row.aot_lookup is None else self.index_of.get(row.aot_lookup) for row in self.lookups
        ]
        # A number for each key that was looked up, by cache and key, in the order of first lookups.
        self.key_numbers: dict[tuple[str, str], int] = {}
        numbered = self.key_numbers.setdefault
        # For each lookup, the number of its key.
        self.key = [
            None if row.cache_key is None else numbered((row.cache, row.cache_key), len(self.key_numbers))
            for row in self.lookups
        ]
        self.timeline = Timeline(self.lookups, self.aot, self.runs)
        # The ids of lookups of text logs that can only have been guard misses. `lookups` has that as their outcome.
        self.inferred: tuple[int, ...] = ()

    @cached_property
    def forms(self) -> list[Form | None]:
        """What the hash details of each lookup consist of."""
        of_sets = (row.detail_set for row in self.lookups)
        return [None if one is None else self.keys.form(one) for one in of_sets]

    @cached_property
    def graph(self) -> list[int | None]:
        """Hash code of the graph of each lookup; equal codes are equal graphs."""
        return [None if form is None else form[0] for form in self.forms]

    @cached_property
    def of_key(self) -> Mapping[int, list[int]]:
        """The lookups of each key, by its number."""
        return by_key((key, at) for at, key in enumerate(self.key) if key is not None)

    @cached_property
    def described(self) -> list[tuple[int, LookupRow]]:
        """The lookups with hash details."""
        return [(at, row) for at, row in enumerate(self.lookups) if row.detail_set is not None]

    def process_of(self, run: int) -> int:
        """The first run of a run's process: each recorded block of a process is a run."""
        return self._first_block.get(run, run)

    @cached_property
    def _first_block(self) -> Mapping[int, int]:
        first: dict[str, int] = {}
        folders = ((row.run, BLOCK.fullmatch(row.source)) for row in self.runs)
        return {run: first.setdefault(found["folder"], run) for run, found in folders if found is not None}

    @cached_property
    def of_run(self) -> Mapping[int, list[int]]:
        """The lookups of each run."""
        return by_key((row.run, at) for at, row in enumerate(self.lookups))

    @cached_property
    def folders(self) -> list[str | None]:
        """The cache directory of each lookup; None if it is unknown."""
        of_run = {run.run: run.cache_dir for run in self.runs}
        own = [row.cache_dir for row in self.lookups]
        names_folders = {row.run for row in self.lookups if row.cache_dir is not None}
        found: list[str | None] = []
        stored_in: dict[int | None, set[str | None]] = defaultdict(set)
        for at, (row, key, above) in enumerate(zip(self.lookups, self.key, self.aot, strict=True)):
            written = own[at] or (None if above is None else own[above])
            folder = written or of_run.get(row.run)
            if is_miss(row):
                is_unclear = row.compile_error is not None or (
                    row.compile_ended is None and row.run in names_folders
                )
                if is_unclear and written is None and at in self.timeline.not_stored:
                    # The log names no directory where nothing is stored: the compile may have run within torch's fresh_cache.
                    folder = None
                stored_in[key].add(folder)
            # A text log names a directory only when something is written: what was found before may lie in another one.
            elif row.outcome == "hit" and written is None and row.status_detailed is None:
                folder = folder if not stored_in[key] or folder in stored_in[key] else None
            found.append(folder)
        return found

    @kept
    def place_of(self, root: str) -> str:
        """The name that logs use for a directory that was read. Theirs is absolute; the given one may be relative or a link."""
        return self._named.get(os.path.realpath(root), root)

    @kept
    def is_searched(self, root: str) -> bool:
        """Whether a run is known to have searched a directory."""
        return os.path.realpath(root) in self._named

    @cached_property
    def _named(self) -> dict[str, str]:
        """The directories that logs name, by their real path."""
        names = dict.fromkeys((*self.folders, *(run.cache_dir for run in self.runs)))
        return {os.path.realpath(name): name for name in names if name is not None}

    def lookups_of(self, entry: EntryRow) -> Sequence[int]:
        """The lookups of the key of an entry."""
        assert entry.cache_key is not None
        number = self.key_numbers.get((entry.cache, entry.cache_key))
        return () if number is None else self.of_key[number]

    def is_of_a_miss(self, entry: EntryRow) -> bool:
        """Whether a recorded miss wrote an entry; that miss then represents it."""
        looked_up = self.lookups_of(entry)
        is_missed = bool(looked_up) and self.lookups[looked_up[0]].outcome != "hit"
        return is_missed and not self.is_of_another_compile(entry)

    def writers_of(self, entry: EntryRow) -> Iterator[int]:
        """The misses that may have written a file. If a run is known to have used the file's directory, only those that wrote there."""
        of_key = self.lookups_of(entry)
        if not of_key or not self.is_searched(entry.root):
            return filter(self.has_stored, of_key)
        place, key = self.place_of(entry.root), self.key[of_key[0]]
        return chain.from_iterable(self._stored_in.get((key, folder), ()) for folder in (place, None))

    @cached_property
    def _stored_in(self) -> Mapping[tuple[int | None, str | None], list[int]]:
        """The misses that stored something, by key and directory."""
        where = enumerate(zip(self.key, self.folders, strict=True))
        return by_key((place, at) for at, place in where if self.has_stored(at))

    def is_of_another_compile(self, entry: EntryRow) -> bool | None:
        """Whether a compile that was not read made an entry: no recorded miss of its key left its mark. None if that is not known.

        Torch writes the compile time into the log and into the entry. An AOTAutograd entry has none, but a text log names its file,
        after its content. What has no mark was made with what lies beside it: an AOTAutograd entry and the graphs it points to.
        """
        beside = self.graphs_below(entry) or self._pointing_to.get((entry.root, entry.cache_key), [])
        own = {self._is_marked_by_another(entry)} - {None}
        found = own or {self._is_marked_by_another(one) for one in beside}
        return None if not found or None in found else found == {True}

    def _is_marked_by_another(self, entry: EntryRow) -> bool | None:
        made, marks = _mark(entry), self._folders_by_mark.get((entry.cache, entry.cache_key), {})
        if made is None or (entry.cache == AOTAUTOGRAD and not marks):
            return None
        return None if None in marks and made not in marks else made not in marks

    def graphs_below(self, entry: EntryRow) -> list[EntryRow]:
        """The FX entries that an AOTAutograd entry points to, beside it in its directory."""
        keys = ((FXGRAPH, key) for key in entry.fx_keys)
        return [one for key in keys for one in self._entries_of_key.get(key, ()) if one.root == entry.root]

    @cached_property
    def _pointing_to(self) -> Mapping[tuple[str, str | None], list[EntryRow]]:
        """The AOTAutograd entries that point to each graph of a directory."""
        return by_key(((one.root, key), one) for one in self.entries for key in one.fx_keys)

    @cached_property
    def of_other_compiles(self) -> Mapping[tuple[str, str | None], list[EntryRow]]:
        """The sound entries of each key that no recorded miss wrote."""
        found = (one for one in self.entries if one.status == "ok" and self.is_of_another_compile(one))
        return by_key(((one.cache, one.cache_key), one) for one in found)

    @cached_property
    def copied_from(self) -> Mapping[str, set[str | None]]:
        """For each directory that was read, the directories into which recorded misses had compiled what lies in it."""
        found: dict[str, set[str | None]] = defaultdict(set)
        for entry in self.entries:
            of_key = self._folders_by_mark.get((entry.cache, entry.cache_key), {})
            if (made := _mark(entry)) is not None:
                found[entry.root] |= of_key.get(made, set())
        return found

    @cached_property
    def _folders_by_mark(self) -> Mapping[tuple[str, str | None], dict[int | str | None, set[str | None]]]:
        """For each key, the marks of its misses, each with the directories that they compiled for."""
        found: dict[tuple[str, str | None], dict[int | str | None, set[str | None]]] = {}
        for row, folder in zip(self.lookups, self.folders, strict=True):
            if is_miss(row):
                found.setdefault((row.cache, row.cache_key), defaultdict(set))[_mark(row)].add(folder)
        return found

    def entries_of(self, row: LookupRow) -> Sequence[EntryRow]:
        """The entries under the key of a lookup."""
        return self._entries_of_key.get((row.cache, row.cache_key), ())

    def local_entries_of(self, row: LookupRow) -> list[EntryRow]:
        """The same without entries of a remote cache: whether a process used one is not recorded."""
        return [entry for entry in self.entries_of(row) if not is_in_remote_cache(entry.path)]

    @cached_property
    def _entries_of_key(self) -> Mapping[tuple[str, str | None], list[EntryRow]]:
        return by_key(((entry.cache, entry.cache_key), entry) for entry in self.entries)

    def latest_of_key(self, at: int) -> int | None:
        """The latest earlier lookup of the key of a lookup."""
        key = self.key[at]
        if key is None:
            return None
        of_key = self.of_key[key]
        number = bisect_left(of_key, at)
        return of_key[number - 1] if number else None

    def found_below(self, at: int) -> bool:
        """Whether a graph below an AOTAutograd lookup was found although nothing that was read had stored it: it had been compiled before."""
        return any(
            self.lookups[graph].outcome == "hit" and self.latest_of_key(graph) is None
            for graph in self.timeline.graphs_of(at)
        )

    def other_run_before(self, at: int) -> bool:
        """Whether another run had looked up any key of the cache of a lookup before it."""
        row = self.lookups[at]
        firsts = self._firsts.get(row.cache, ())
        return any(first < at for first in firsts if self.lookups[first].run != row.run)

    @cached_property
    def _firsts(self) -> dict[str, list[int]]:
        """For each cache: the first lookup with a key, and the first by another run."""
        found: dict[str, list[int]] = defaultdict(list)
        for at, row in enumerate(self.lookups):
            firsts = found[row.cache]
            is_needed = not firsts or (len(firsts) == 1 and self.lookups[firsts[0]].run != row.run)
            if is_needed and row.cache_key is not None:
                firsts.append(at)
        return found

    def has_stored(self, at: int) -> bool:
        """Whether a lookup missed and stored a result, as far as is known."""
        return is_miss(self.lookups[at]) and at not in self.timeline.not_stored

    def never_stored(self, at: int) -> NotStored | None:
        """Why a miss and its graphs stored nothing. None if anything was stored or found under their keys, or if nothing shows why."""
        for one in (at, *self.timeline.graphs_of(at)):
            key, row = self.key[one], self.lookups[one]
            of_key = [one] if key is None else self.of_key[key]
            is_found = any(self.lookups[other].outcome == "hit" or self.has_stored(other) for other in of_key)
            if is_found or self.entries_of(row):
                return None
        return self.timeline.not_stored.get(at)

    def was_running(self, one: int, at: int) -> bool:
        """Whether another process was still compiling after a miss when a lookup was made, so that it could not find the result."""
        end, before, row = self.timeline.end[one], self.lookups[one], self.lookups[at]
        is_running = end is not None and row.time is not None and end > row.time
        return is_running and before.run != row.run and is_miss(before)

    def is_seen_running(self, one: int, at: int) -> bool:
        """Whether a record shows that a compile was still running after a lookup. `Timeline.end` estimates what is not recorded."""
        time, last_seen = self.lookups[at].time, self.timeline.last_seen[one]
        return time is not None and last_seen is not None and last_seen > time

    def distance(self, one: int, at: int) -> tuple[int, int]:
        """In how many fields two lookups with hash details differ, then in how many parts of the inputs among them."""
        before, own = set_of(self.lookups[one]), set_of(self.lookups[at])
        return self.keys.fields(before, own), len(self.keys.parts(before, own))

    def row_of(self, baseline: int | EntryRow) -> LookupRow | EntryRow:
        """What a lookup is compared with: a lookup by its index, or an entry."""
        return self.lookups[baseline] if isinstance(baseline, int) else baseline

    def change(self, baseline: int | EntryRow, at: int) -> Change:
        """What changed from a lookup or an entry to a lookup, both with hash details."""
        return self.keys.change(set_of(self.row_of(baseline)), set_of(self.lookups[at]))

    def guards_before(self, at: int) -> list[str]:
        """The guards that earlier lookups of its key show, each once."""
        key = self.key[at]
        shown = {} if key is None else self._guards_of_key.get(key, {})
        return [text for text, first in shown.items() if first < at]

    @cached_property
    def _guards_of_key(self) -> Mapping[int, dict[str, int]]:
        """The guards that the lookups of each key show, with the first lookup that shows them."""
        found: dict[int, dict[str, int]] = defaultdict(dict)
        for at, (row, key) in enumerate(zip(self.lookups, self.key, strict=True)):
            if row.guards_expr is not None and key is not None and row.outcome in ("hit", "guard_miss"):
                found[key].setdefault(row.guards_expr, at)
        return found


def _mark(made: LookupRow | EntryRow) -> int | str | None:
    """What a miss and the entry that it wrote have in common: the compile time, or the name of the file."""
    if made.cache != AOTAUTOGRAD:
        return made.time_taken_ns
    path = made.entry_path if isinstance(made, LookupRow) else made.path
    return None if path is None or is_in_remote_cache(path) else os.path.basename(path)


def set_of(row: LookupRow | EntryRow) -> int:
    """The set of hash details of what is known to have one."""
    assert row.detail_set is not None
    return row.detail_set


def is_miss(row: LookupRow) -> bool:
    """Whether a lookup found no usable entry."""
    return row.outcome in MISSED


def is_open(row: LookupRow) -> bool:
    """Whether a text log leaves open if guards failed: a trace records guard misses itself."""
    return row.outcome == "full_miss" and row.status_detailed is None and row.cache != VLLM


def program_of(run: RunRow) -> str | None:
    """The script or module that was run, without its options; None if the command is unknown."""
    try:
        words = shlex.split(run.command or "")
    except ValueError:
        return None
    for word, after in pairwise([*words, ""]):
        if word == "-m":
            return after
        if word.endswith(".py"):
            return word
    return words[0] if words else None


def _in_time_order(lookups: Iterable[LookupRow]) -> list[LookupRow]:
    rows = list(lookups)
    times: dict[int, int] = {}
    latest, run = 0, None
    for row in rows:
        if row.time is not None and (row.time > latest or row.run != run):
            latest = row.time
        run = row.run
        times[row.lookup] = latest
    return sorted(rows, key=lambda row: (row.prediction is not None, times[row.lookup], row.lookup))
