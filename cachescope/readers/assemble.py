"""What was read, put together: the rows of runs, lookups, entries, contexts and problems."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from cachescope.details import HashDetails
from cachescope.frames.context_rows import ContextRow
from cachescope.frames.directory_rows import EntryRow, KernelRow, TimingRow
from cachescope.frames.recorded_rows import LookupRow, ProblemRow, RunRow
from cachescope.frames.vllm import FactorsRow, StartRow
from cachescope.grouping import by_key
from cachescope.keys.key_fields import FUNCTORCH_CONFIG
from cachescope.readers.file_fingerprints import Stamps, file_stamps
from cachescope.readers.json_record import MOST_NS, well_formed
from cachescope.readers.logs.notes import LookupNote, labels_of
from cachescope.readers.logs.processes import end_time_ns, join_processes
from cachescope.readers.logs.trace_compiles import failed_compiles, unrecorded_compiles
from cachescope.readers.reading import ListedEntry, Process, Reading
from cachescope.rows import TEXT, TIME, TUPLE, columns_of, like
from cachescope.table import Table
from cachescope.terms import AOTAUTOGRAD, FXGRAPH, VLLM

if TYPE_CHECKING:
    from cachescope.frames.compile_rows import CompileRow, PhaseRow, SymbolRow


@dataclass(frozen=True, slots=True)
class Tables:
    """What comes directly from sources, and the hash details that it refers to."""

    runs: Table[RunRow]
    lookups: Table[LookupRow]
    entries: Table[EntryRow]
    contexts: Table[ContextRow]
    problems: Table[ProblemRow]
    kernels: Table[KernelRow]
    autotune: Table[TimingRow]
    vllm_factors: Table[FactorsRow]
    vllm_starts: Table[StartRow]
    hash_details: HashDetails
    cache_roots: tuple[str, ...] = ()
    """The cache directories that were read, even if there is no file in them."""
    silent: tuple[str, ...] = ()
    """The text logs of torch that have no lookup, and of whose processes no other log was read."""
    listed: tuple[ListedEntry, ...] = ()
    """The entries of the locks that were read."""
    stamps: Stamps = field(default_factory=dict)
    """Size and time of the files of the runs, just after they were read."""
    compiled: Mapping[int, Sequence[CompileRow]] = field(default_factory=dict)
    """The compiles that text logs tell of, of the runs that have no trace."""
    phases: Table[PhaseRow] | None = None
    """Those that were saved with a scope; else they are read from the files of the runs."""
    compiles: Table[CompileRow] | None = None
    symbols: Table[SymbolRow] | None = None
    """As for phases."""

    def __post_init__(self) -> None:
        # Ranks by the thousand have equal ones.
        for hashes, options in {(row.aot_key_fields, row.functorch_config) for row in self.contexts.rows}:
            hashed = None if hashes is None else json.loads(hashes).get(FUNCTORCH_CONFIG)
            if hashed is not None and options is not None:
                self.hash_details.options[hashed] = json.loads(options)
        for lookup in self.lookups.rows if any(run.is_preflight for run in self.runs.rows) else ():
            if lookup.preflight_note is not None and lookup.detail_set is not None:
                config = self.hash_details.detail(lookup.detail_set, FUNCTORCH_CONFIG)
                known = LookupNote.of_json(lookup.preflight_note).functorch_config
                if config is not None and known is not None:
                    self.hash_details.options[config.detail_hash] = known


def assemble(reading: Reading) -> Tables:
    """Join the processes, complete missing hash details from other records of the same key, and build the frames."""
    if any(process.kind == "text" for process in reading.processes):
        from cachescope.readers.logs.cut_details import mark_cut_details

        mark_cut_details(reading)
    runs = join_processes(reading.processes)
    contexts = _context_rows(reading.contexts, runs)
    known = _details_of_keys(reading, runs)
    _without_times_of_torch(runs)
    labels = labels_of(runs)
    lookups = _number_lookups(runs, known, reading.details)
    entries = entry_rows(reading.entries)
    kernels = [*_kernel_rows(entries)]
    _number_references(reading)
    return Tables(
        runs=Table(RunRow, [_run_row(number, run, labels[number]) for number, run in enumerate(runs)]),
        lookups=Table(LookupRow, lookups),
        entries=Table(EntryRow, entries),
        contexts=Table(ContextRow, contexts),
        problems=Table(ProblemRow, [*reading.problems]),
        kernels=Table(KernelRow, kernels),
        autotune=Table(TimingRow, [*reading.timings]),
        vllm_factors=Table(FactorsRow, [*reading.vllm_factors]),
        vllm_starts=Table(StartRow, [*reading.vllm_starts]),
        hash_details=reading.details,
        cache_roots=tuple(reading.cache_roots),
        silent=tuple(_silent_logs(reading, runs)),
        listed=tuple(reading.listed),
        stamps=file_stamps(source for run in runs for source in run.sources),
        compiled={
            at: run.compiled for at, run in enumerate(runs) if run.compiled and "trace" not in run.kinds
        },
    )


# A snapshot is often taken last, when logging has ended.
_AFTERWARDS_NS: Final = 60 * 10**9


def _silent_logs(reading: Reading, runs: list[Process]) -> Iterator[str]:
    sources = {source for run in runs for source in run.sources}
    pids = {run.pid for run in runs if run.pid is not None}
    return (source for source, own in reading.silent if source not in sources and not own & pids)


def _run_row(number: int, run: Process, label: str | None) -> RunRow:
    row = like(RunRow, run, run=number, end_time=end_time_ns(run), label=label)
    row.failed_compiles, row.unrecorded_compiles = failed_compiles(run), unrecorded_compiles(run)
    row.has_lost_lines = any(lookup.is_details_cut for lookup in run.lookups)
    return row


def _details_of_keys(reading: Reading, runs: list[Process]) -> dict[str, tuple[int, str]]:
    """The hash details of each key and their origin: equal keys have equal details, whatever recorded them."""
    known = {key: (details, "from_entry") for key, details in reading.details_in_entries()}
    for run in runs:
        for lookup in run.lookups:
            if lookup.detail_set is not None and lookup.cache_key is not None:
                known.setdefault(lookup.cache_key, (lookup.detail_set, "from_log"))
    return known


def _number_lookups(
    runs: list[Process], known: dict[str, tuple[int, str]], details: HashDetails
) -> list[LookupRow]:
    """Fill in what no single log tells of a lookup."""
    lookups: list[LookupRow] = []
    for number, run in enumerate(runs):
        latest: dict[tuple[str | None, int], int] = {}
        of_forward: dict[str | None, int | None] = {}
        for order, lookup in enumerate(run.lookups):
            lookup.lookup, lookup.run, lookup.order = len(lookups), number, order
            _fill_details(lookup, known)
            _fill_direction(lookup, details)
            compiled = lookup.compile_id, lookup.segment
            if lookup.cache == FXGRAPH:
                # The AOTAutograd lookup of its compile before it. A backward graph may be compiled when the id is of another compile.
                above = latest.get(compiled)
                is_backward = lookup.direction == "backward"
                lookup.aot_lookup = of_forward.get(lookup.compile_id, above) if is_backward else above
                if lookup.direction == "forward":
                    of_forward[lookup.compile_id] = above
                elif lookup.direction is None:
                    of_forward.pop(lookup.compile_id, None)
            elif lookup.cache == AOTAUTOGRAD:
                latest[compiled] = lookup.lookup
            lookups.append(lookup)
    return lookups


def _fill_details(lookup: LookupRow, known: dict[str, tuple[int, str]]) -> None:
    """The hash details of a lookup, and where they are from."""
    if lookup.detail_set is not None:
        lookup.details = "recorded"
        return
    missing = "incomplete" if lookup.is_details_cut else "not_recorded"
    lookup.detail_set, lookup.details = known.get(lookup.cache_key or "", (None, missing))


def _fill_direction(lookup: LookupRow, details: HashDetails) -> None:
    if lookup.cache == AOTAUTOGRAD:
        lookup.is_backward, lookup.direction = False, None
        return
    lookup.direction = None if lookup.detail_set is None else details.direction(lookup.detail_set)
    if lookup.direction is not None:
        lookup.is_backward = lookup.direction == "backward"
    elif lookup.is_backward:
        lookup.direction = "backward"


def entry_rows(entries: Iterable[EntryRow]) -> list[EntryRow]:
    """Entries, numbered, with what their columns can hold."""
    rows = list(entries)
    for number, row in enumerate(rows):
        row.entry = number
        for name in _TEXTS:
            if value := getattr(row, name):
                setattr(row, name, _well_formed(value))
        for name in _TIMES:
            # A file can have any time; a column covers a few centuries.
            if (time := getattr(row, name)) is not None and not 0 <= time <= MOST_NS:
                setattr(row, name, None)
    return rows


_TIMES: Final = tuple(column.name for column in columns_of(EntryRow) if column.dtype == TIME)
_TEXTS: Final = [c.name for c in columns_of(EntryRow) if c.dtype in (TEXT, TUPLE) and not c.is_of_numbers]


def _well_formed(value: Any) -> Any:
    """A text, or each text of a tuple, made well-formed."""
    return well_formed(value) if isinstance(value, str) else tuple(map(well_formed, value))


def _number_references(reading: Reading) -> None:
    """Note the numbers of files and lookups, which are known now."""
    rows: list[TimingRow | FactorsRow] = [*reading.timings, *reading.vllm_factors]
    for row in rows:
        assert row.file is not None
        row.entry = row.file.entry
    for start in reading.vllm_starts:
        assert start.found is not None
        start.lookup = start.found.lookup


def _without_times_of_torch(runs: list[Process]) -> None:
    """Of vLLM's compiles keep no time where torch's are known: they contain these, and it would count twice."""
    lookups = [lookup for run in runs for lookup in run.lookups]
    if any(lookup.cache == FXGRAPH and lookup.time_taken_ns is not None for lookup in lookups):
        for lookup in lookups:
            if lookup.cache == VLLM:
                lookup.time_taken_ns = None


def _context_rows(contexts: Sequence[ContextRow], runs: list[Process]) -> list[ContextRow]:
    """The snapshots; the last that a recorded process took of itself is of its run, which has its versions from it."""
    rows = [*contexts]
    of_pid = by_key((run.pid, number) for number, run in enumerate(runs))
    last: dict[int, ContextRow] = {}
    for row in sorted((row for row in rows if row.pid is not None), key=lambda row: row.time or 0):
        mine = [number for number in of_pid.get(row.pid, ()) if _took(runs[number], row)]
        # In containers processes have the same few numbers; blocks of one process have the same one, and lie in one folder.
        here = os.path.dirname(row.source)
        beside = [number for number in mine if os.path.dirname(runs[number].source) == here]
        of_block = [number for number in mine if row.source.startswith(f"{runs[number].source}-")]
        if len(mine := of_block or beside or mine) == 1:
            last[mine[0]] = row
    for number, row in last.items():
        rows[row.context] = replace(row, run=number)
        run = runs[number]
        run.torch_version = run.torch_version or row.torch_version
        run.python_version = run.python_version or row.python_version
    return rows


def _took(run: Process, snapshot: ContextRow) -> bool:
    """Whether a snapshot was taken while a process ran: before its command ended, or soon after its last record."""
    start, time = run.start_time, snapshot.time
    if start is None or time is None:
        return False
    return start <= time <= max(run.command_end_time or 0, (end_time_ns(run) or start) + _AFTERWARDS_NS)


def _kernel_rows(entries: list[EntryRow]) -> Iterator[KernelRow]:
    """The kernels in the code of entries, which no frame has."""
    if not any(entry.source_code for entry in entries):
        return
    from cachescope.readers.directory.generated_files import kernels_of

    # Entries with different guards often contain the same code.
    known = cache(kernels_of)
    for entry in entries:
        for kernel in known(entry.source_code) if entry.source_code else ():
            yield replace(kernel, entry=entry.entry)
        entry.source_code = None
