"""Predicts the lookups that a real run would make from those of a pre-flight, and how each would end.

A pre-flight looks up every key and finds nothing. A real run stores what it compiles, so the second lookup of a key may
hit; and if AOTAutograd finds its entry, torch looks up the graphs through it. So this module goes through the lookups as
torch would make them (torch/_functorch/_aot_autograd/autograd_cache.py, `AOTAutogradCache.try_load`).
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, repeat

from cachescope.analysis.contexts.cpu_safety import vector_code
from cachescope.analysis.contexts.outside_keys import CPU_CAPABILITY, vector_width
from cachescope.analysis.preflight.would_find import (
    Candidate,
    Key,
    PredictedOutcome,
    Stored,
    StoredEntries,
    Sure,
    found_under,
    not_known,
    stored_by_recorded,
)
from cachescope.details import HashDetails
from cachescope.frames.recorded_rows import LookupRow, RunRow
from cachescope.grouping import by_key
from cachescope.readers.assemble import Tables
from cachescope.readers.directory.file_contents import source_of
from cachescope.readers.logs.notes import PRECOMPILED, WHY_OPEN, LookupNote
from cachescope.table import Table
from cachescope.terms import AOTAUTOGRAD, FXGRAPH, MISSED, PREDICTED

_NO_NOTE = "this process compiled for real: it was no pre-flight"
_NOT_ENDED = "its compile failed, or did not end: the log alone has it"


def with_predictions(tables: Tables) -> Tables:
    """What was read, with the lookups that real runs would make instead of those that pre-flights made."""
    runs = {run.run: run for run in tables.runs.rows if run.is_preflight}
    if not runs:
        return tables
    rows = tables.lookups.rows
    if any(row.prediction is not None for row in rows):
        return tables  # a saved scope: what it was checked against may not be here
    made = [row for row in rows if row.run not in runs]
    entries = StoredEntries(tables)
    recorded = stored_by_recorded(made, tables.runs.rows) if made and not entries.roots else None
    widths = {
        one.run: vector_width(json.loads(one.settings), one.platform or "")
        for one in tables.contexts.rows
        if one.run is not None and one.settings is not None
    }
    of_run = by_key((row.run, row) for row in rows)
    predicted: dict[int, list[LookupRow]] = {}
    for command in commands(runs.values()):
        world = World(entries, recorded, tables.hash_details, widths)
        walked = {run.run: PredictedRun(run, of_run[run.run], world) for run in command}
        for one in walked.values():
            one.tell_others()
            world.is_at_home |= one.is_at_home
        predicted |= {number: list(one.lookups()) for number, one in walked.items()}
        runs |= {run.run: replace(run, cache_dir=walked[run.run].cache_dir) for run in command}
    lookups = _numbered(of_run, predicted)
    all_runs = [runs.get(run.run, run) for run in tables.runs.rows]
    return replace(tables, lookups=Table(LookupRow, lookups), runs=Table(RunRow, all_runs))


def commands(preflights: Iterable[RunRow]) -> list[list[RunRow]]:
    """The processes of each command: their traces are in one folder."""
    return list(by_key((os.path.dirname(run.source), run) for run in preflights).values())


def _numbered(
    of_run: Mapping[int, list[LookupRow]], predicted: Mapping[int, list[LookupRow]]
) -> list[LookupRow]:
    """All lookups, run by run, renumbered."""
    numbers: dict[int, int] = {}
    out: list[LookupRow] = []
    for run, made in of_run.items():
        for order, row in enumerate(predicted.get(run, made)):
            # Only these are referred to.
            if row.cache == AOTAUTOGRAD:
                numbers[row.lookup] = len(out)
            out.append(replace(row, order=order))
    return [
        replace(
            row, lookup=number, aot_lookup=None if row.aot_lookup is None else numbers.get(row.aot_lookup)
        )
        for number, row in enumerate(out)
    ]


def _predicted(
    row: LookupRow, found: PredictedOutcome, aot: LookupRow | None = None, key: str | None = None
) -> LookupRow:
    """One lookup of a real run, as it would end.

    `row` is the lookup of the pre-flight that it is, or the most similar one if the `key` is another. `aot` is the AOTAutograd lookup
    above it.
    """
    key = row.cache_key if key is None else key
    entry = None if found.candidate is None else found.candidate.entry
    predicted = replace(
        row,
        cache=row.cache if aot is None else FXGRAPH,
        cache_key=key,
        outcome=PREDICTED.get(found.outcome, found.outcome),
        cache_state=None,
        status_detailed=found.status or (found.outcome if found.outcome in ("hit", "full_miss") else None),
        aot_lookup=None if aot is None else aot.lookup,
        guards_expr=found.guards,
        # The time of executing the graph instead of compiling it.
        time_taken_ns=None,
        end_time=None,
        time_saved_ns=entry.time_taken_ns if found.outcome == "hit" and entry is not None else None,
        prediction=found.why,
        predicted_entry=None if entry is None else entry.entry,
    )
    if key == row.cache_key:
        return predicted
    return replace(predicted, detail_set=None, details="not_recorded", direction=None, is_backward=None)


StoredBeside = tuple[RunRow, LookupNote, Candidate]
"""A process, the lookup after which it would store something, and what it would store."""


@dataclass(slots=True)
class World:
    """What the lookups of a command are checked against: stored entries, recorded runs, and the command's other processes."""

    entries: StoredEntries  # what lies in the directories and remote caches that were read
    recorded: Stored | None  # what recorded runs left behind, unless a directory that was read shows it
    details: HashDetails
    # The bits of the vectors for which each recorded run generated code, if its snapshot says it.
    widths: Mapping[int, int | None]
    # Whether a process of the command uses one of several directories that were read: none is then a copy of that of another process.
    is_at_home: bool = False
    # By key, what the processes of the command would store.
    beside: dict[Key, list[StoredBeside]] = field(default_factory=lambda: defaultdict(list))


class PredictedRun:
    """Goes through the lookups of one process."""

    def __init__(self, run: RunRow, lookups: Sequence[LookupRow], world: World) -> None:
        self._run = run
        self._world = world
        # What it stored, by the directory that it used then.
        self._own: dict[str | None, Stored] = defaultdict(lambda: defaultdict(list))
        # A remote cache keeps only the last value of a key.
        self._remote: dict[Key, list[Candidate]] = {}
        self._notes = {
            row.lookup: LookupNote.of_json(row.preflight_note)
            for row in lookups
            if row.preflight_note is not None
        }
        self._first_dir = next((note.cache_dir for note in self._notes.values()), None)
        roots = world.entries.roots
        # It is in the single directory that it is checked against, or in that which it used first.
        only = next(iter(roots.values())) if len(roots) == 1 else None
        first = world.entries.root_of(self._first_dir)
        self.cache_dir = only or (run.cache_dir if first is None else roots[first])
        self.is_at_home = only is None and first is not None
        elsewhere = {at: one.cache_dir for at, one in self._notes.items() if one.cache_dir != self._first_dir}
        self._lookups = [replace(row, cache_dir=elsewhere.get(row.lookup)) for row in lookups]
        self._graphs = by_key((row.aot_lookup, row) for row in self._lookups if row.aot_lookup is not None)

    def lookups(self) -> Iterator[LookupRow]:
        """The lookups of a real run, in the order in which it would make them."""
        above: dict[int, tuple[LookupRow, PredictedOutcome]] = {}
        for row in self._lookups:
            if row.cache == AOTAUTOGRAD:
                found = self._found(row)
                above[row.lookup] = row, found
                yield _predicted(row, found)
                yield from self._through_entry(row, found)
                if not self._graphs.get(row.lookup):
                    self._store(row, found, ())
            elif row.aot_lookup not in above:
                # If the trace lost its beginning, the lookup above may be lost, too.
                yield self._graph(row, None)
            else:
                aot, found = above[row.aot_lookup]
                if found.outcome == "hit":
                    continue
                yield self._graph(row, aot, hangs_on=found if found.outcome == "unknown" else None)
                # Its entry is stored once its last graph is compiled, which may be much later.
                graphs = self._graphs[aot.lookup]
                if row is graphs[-1]:
                    self._store(aot, found, graphs)

    def _through_entry(self, row: LookupRow, found: PredictedOutcome) -> Iterator[LookupRow]:
        """The FX lookups through an AOTAutograd entry."""
        graphs = self._graphs.get(row.lookup, [])
        like = {graph.cache_key: graph for graph in reversed(graphs)}
        for (key, is_there), other in zip(found.graphs, chain(graphs, repeat(row)), strict=False):
            through = PredictedOutcome("full_miss", found.why)
            if is_there:
                through = PredictedOutcome("hit", f"through {found.why}")
            yield _predicted(like.get(key, other), through, row, key)

    def _graph(
        self, row: LookupRow, aot: LookupRow | None, hangs_on: PredictedOutcome | None = None
    ) -> LookupRow:
        found = self._found(row)
        if hangs_on is not None and found.outcome != "hit":
            found = not_known(f"it hangs on the AOTAutograd lookup before it: {hangs_on.why}")
        self._store(row, found, ())
        return _predicted(row, found, aot)

    def _found(self, row: LookupRow) -> PredictedOutcome:
        if row.outcome == "bypass":
            why = row.bypass_reason or "torch does not say why"
            return PredictedOutcome("bypass", why, row.status_detailed)
        if row.outcome == "disabled":
            return PredictedOutcome("disabled", "its caches are off", row.status_detailed)
        note = self._notes.get(row.lookup)
        if note is None or row.cache_key is None:
            return not_known(_NOT_ENDED if self._notes else _NO_NOTE)
        root = self._world.entries.root_of(note.cache_dir)
        # What is precompiled could be loaded instead.
        if note.open is not None and (
            note.open != PRECOMPILED or not self._world.entries.has_no_package(root)
        ):
            return not_known(WHY_OPEN[note.open])
        if root is None and (self._world.is_at_home or note.cache_dir != self._first_dir):
            # This holds for what the process stored itself, too.
            return not_known(f"it looks into a directory that was not read: {note.cache_dir}")

        of_graphs = self._note_of_graphs(row, note)

        def under(cache: str, key: str) -> Iterable[Candidate]:
            return self._under((cache, key), root, note if cache == row.cache else of_graphs)

        where = self._where(root)
        graphs_under = under if row.cache == AOTAUTOGRAD else None
        found = found_under(under(row.cache, row.cache_key), note, where, graphs_under)
        if found.outcome not in MISSED:
            return found
        entries = self._world.entries
        if not entries.roots and not entries.remotes and self._world.recorded is None:
            return not_known("no cache directory and no recording was read to check it against")
        if note.open == PRECOMPILED and row.cache == AOTAUTOGRAD:
            return found._replace(
                why="with caching_precompile each process makes another key, and finds nothing"
            )
        if entries.unread_remotely and (note.is_remote or of_graphs.is_remote):
            return not_known(f"nothing fits {where}, and {entries.unread_remotely}")
        return found

    def _note_of_graphs(self, row: LookupRow, note: LookupNote) -> LookupNote:
        """How the graphs of an AOTAutograd entry would be looked up: always locally (`FxGraphCacheLoadable.load`)."""
        noted = (self._notes.get(graph.lookup) for graph in self._graphs[row.lookup])
        return next((one for one in noted if one is not None), note)._replace(is_local=True)

    def _under(self, key: Key, root: str | None, note: LookupNote) -> Iterator[Candidate]:
        """The candidates under a key, in torch's order."""
        if note.is_local:
            yield from self._own[note.cache_dir][key]
            yield from (self._on_this_cpu(one, note) for one in self._world.entries.under(key, root))
            if self._world.recorded is not None:
                yield from (self._on_this_cpu(one, note) for one in self._world.recorded.get(key, ()))
        beside = list(stored_beside(self._world.beside[key], self._run, note))
        yield from beside
        for one in self._remotely_under(key):
            if not note.is_remote:
                yield one._replace(is_there="no", why_not="the program asks no remote cache for it")
            elif any(other.guards != one.guards for other in beside):
                yield one.perhaps_replaced("another process of the command")
            else:
                yield one

    def _on_this_cpu(self, one: Candidate, note: LookupNote) -> Candidate:
        """A candidate. It may not load if its code was made for another CPU, which no key contains."""
        if note.cpu is None:
            return one
        capability, _, architecture = note.cpu.partition(" ")
        width = vector_width({CPU_CAPABILITY: capability}, architecture)
        others = [widths for widths in self._widths_of_code(one) if width is not None and width not in widths]
        if not others:
            return one
        bits = " or ".join(map(str, sorted(others[0])))
        return one._replace(
            is_there="maybe",
            why_not=f"its code {'may have been' if one.entry is None else 'was'} made for another CPU, in vectors of {bits} bits, and the "
            f"process ({capability}) has {f'{width} bits' if width else 'none'}: it may not compile, or compute wrong numbers",
        )

    def _widths_of_code(self, one: Candidate) -> list[Collection[int]]:
        """For which vectors the kernels of an entry are; of a recorded graph with an input on the CPU, those of its process."""
        if one.entry is not None:
            return [kernel.widths for kernel in vector_code(source_of(one.entry) or "")]
        row, details = one.recorded, self._world.details
        if row is None or row.cache != FXGRAPH or row.detail_set is None:
            return []
        width, inputs = self._world.widths.get(row.run), details.inputs(row.detail_set)
        is_of_cpu = any("device(type='cpu')" in (details.value_text(code) or "") for code in inputs)
        return [{width}] if width and is_of_cpu else []

    def _remotely_under(self, key: Key) -> list[Candidate]:
        return self._remote.get(key) or self._world.entries.remotely_under(key)

    def _where(self, root: str | None) -> str:
        entries = self._world.entries
        local = entries.roots.values() if root is None else [entries.roots[root]]
        places = [*local, *entries.remotes]
        return f"in {', '.join(places)}" if places else "in what was recorded"

    def _store(self, row: LookupRow, found: PredictedOutcome, graphs: Sequence[LookupRow]) -> None:
        """Keep what a real run would store after this lookup."""
        note = self._notes.get(row.lookup)
        if found.outcome in ("hit", "bypass", "disabled") or note is None or row.cache_key is None:
            return
        if note.open == "without_values" or not note.is_stored:
            return
        key = row.cache, row.cache_key
        is_there: Sure = "maybe" if found.outcome == "unknown" else "yes"
        candidate = stored_candidate(row, note, self._pointed_to(graphs), is_there)
        if note.is_local:
            self._own[note.cache_dir][key].append(candidate)
        if note.is_remote:
            before = [] if is_there == "yes" else self._remotely_under(key)
            self._remote[key] = [
                candidate._replace(is_remote=True),
                *(one.perhaps_replaced("the run") for one in before),
            ]

    def _pointed_to(self, graphs: Sequence[LookupRow]) -> Iterator[tuple[str, str | None]]:
        for graph in graphs:
            note = self._notes.get(graph.lookup)
            if graph.cache_key is not None and graph.cache == FXGRAPH:
                yield graph.cache_key, None if note is None else note.stored_guards or ""

    def tell_others(self) -> None:
        """Tell the other processes of the command what it would store, whatever was there before."""
        for row in self._lookups:
            note = self._notes.get(row.lookup)
            if note is not None and note.is_stored and row.cache_key is not None:
                graphs = self._pointed_to(self._graphs.get(row.lookup, []))
                candidate = stored_candidate(row, note, graphs, "yes")
                self._world.beside[row.cache, row.cache_key].append((self._run, note, candidate))


def stored_beside(stored: Iterable[StoredBeside], run: RunRow, note: LookupNote) -> Iterator[Candidate]:
    """What other processes of a command have stored under a key when one of them looks it up, or may have."""
    for other, of_other, candidate in stored:
        if other.run == run.run or run.pid in of_other.ended_before:
            continue
        is_shared = note.is_local and of_other.is_local and of_other.cache_dir == note.cache_dir
        if not is_shared and not (note.is_remote and of_other.is_remote):
            continue  # neither finds what the other one stores
        candidate = candidate._replace(what=f"what run {other.run} of the same command would store")
        if other.pid not in note.ended_before:
            # Whichever is first compiles it. That is taken to be the first run, where either would find what the other one stores.
            if run.run < other.run and note.is_stored and note.stored_guards == of_other.stored_guards:
                continue
            why_not = "they run at the same time, and which is first is not known"
            candidate = candidate._replace(is_there="maybe", why_not=why_not)
        elif of_other.cpu != note.cpu:
            why_not = f"its code is made for another CPU: {of_other.cpu}, not {note.cpu}"
            candidate = candidate._replace(is_there="maybe", why_not=why_not)
        yield candidate


def stored_candidate(
    row: LookupRow, note: LookupNote, graphs: Iterable[tuple[str, str | None]], is_there: Sure
) -> Candidate:
    """What a real run would store after a miss."""
    why_not = "" if is_there == "yes" else "whether the run would store it is not known"
    of_aot = tuple(graphs) if row.cache == AOTAUTOGRAD else ()
    return Candidate(
        "stored by this run itself", is_there, why_not, note.stored_guards or None, graphs=of_aot
    )
