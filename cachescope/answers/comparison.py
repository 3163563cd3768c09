"""Two sides compared: graphs and keys, contexts, which entries of one the other would find, and how their runs went."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import NamedTuple, Self

from cachescope.analysis.contexts.differences import context_difference
from cachescope.analysis.contexts.prediction import predictions_of
from cachescope.analysis.contexts.process_fields import ProcessFields
from cachescope.analysis.differences import FieldChange
from cachescope.analysis.directory.built import COMPARED, built_alike
from cachescope.analysis.directory.coverage import coverage_rows
from cachescope.analysis.phases.frame import self_times
from cachescope.analysis.rates import grouped, rates
from cachescope.answers.aligned_lookups import CHANGES, Aligned, Change, aligned_lookups
from cachescope.answers.chosen import Chosen
from cachescope.answers.difference import Difference, Side, difference, folded
from cachescope.answers.names import runs_name
from cachescope.answers.recording import Recording
from cachescope.answers.summary import compiles_of, why_no_lookup
from cachescope.errors import NotFoundError
from cachescope.frames.answer_rows import RateRow
from cachescope.frames.compared import Built, ComparedLookup, CoverageRow, DifferenceRow
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.recorded_rows import LookupRow
from cachescope.frames.sharing_rows import FormDifference, PredictionRow
from cachescope.readers.assemble import entry_rows
from cachescope.readers.directory.bundles import entries_inside, held_in
from cachescope.readers.directory.file_contents import content_hash, source_of
from cachescope.readers.reading import Reading
from cachescope.rows import like
from cachescope.table import Table, copied
from cachescope.terms import BUNDLES, CACHES, MEGA_CACHE
from cachescope.wording import listed, plural


@dataclass(frozen=True, slots=True)
class ComparedSide:
    """One side: its runs, and how their lookups went."""

    name: str  # their name in a line
    runs: tuple[int, ...]  # the runs
    rate: RateRow  # hit rates of all its lookups
    by_cache: dict[str, RateRow]  # the same for each cache
    machines: tuple[str, ...] = ()  # the cores and limits of each run, empty where not recorded

    @classmethod
    def of(cls, read: Recording, lookups: Iterable[LookupRow], runs: Sequence[int]) -> Self:
        """The side of some runs, given all lookups."""
        mine = [row for row in lookups if row.run in runs]
        of_caches = grouped(mine, lambda row: (row.cache,))
        by_cache = {cache: rates(rows) for (cache,), rows in of_caches.items()}
        machines = tuple(read.facts.machines.get(run, "") for run in runs)
        return cls(runs_name(read.facts, runs), tuple(runs), rates(mine), by_cache, machines)


@dataclass(frozen=True, slots=True)
class ComparedRuns:
    """Some runs compared with others."""

    before: ComparedSide  # the sides
    after: ComparedSide
    # Every lookup of both sides, in the order of the later one; those that only the earlier side has come last.
    aligned: tuple[Aligned, ...]
    is_ordered: bool  # whether the earlier side is known to have ended before the later one began
    by_rank: bool  # whether each rank was compared with the same rank of the other side

    @property
    def counts(self) -> dict[Change, int]:
        """How many aligned lookups there are of each change."""
        count = Counter(one.change for one in self.aligned)
        return {change: count[change] for change in CHANGES}

    @property
    def differences(self) -> tuple[tuple[tuple[FieldChange, ...], tuple[Aligned, ...]], ...]:
        """What differs between keys. Equal differences are one row, with the lookups that have it; the most frequent come first."""
        return folded(
            (one.changes, one.one.function, one)
            for one in self.aligned
            if one.changes is not None and one.by == "graph"
        )

    @property
    def table(self) -> Table[ComparedLookup]:
        """One row per aligned lookup; see ``describe("compared_lookups")``."""
        return Table(ComparedLookup, [*map(_row, self.aligned)])

    frame = copied(lambda found: found.table, "The same as a frame.")

    def among(self, chosen: Chosen) -> ComparedRuns:
        """The comparison of only the aligned lookups with a chosen one on either side."""
        if chosen.is_all:
            return self
        kept = tuple(one for one in self.aligned if any(row.lookup in chosen for row in one.rows))
        lookups = {row.lookup: row for one in kept for row in one.rows}
        mine = [lookups[number] for number in sorted(lookups)]
        before, after = (ComparedSide.of(chosen.read, mine, side.runs) for side in (self.before, self.after))
        return replace(self, before=before, after=after, aligned=kept)

    @classmethod
    def of(cls, read: Recording, before: Sequence[int], after: Sequence[int]) -> Self:
        """Compare runs with others.

        If both sides have the same ranks, each rank is compared with itself; other runs are compared all with all.
        """
        ends = [read.facts.run(run).end_time for run in before]
        begins = [read.facts.run(run).start_time for run in after]
        pairs = _ranks(read, before, after)
        one, other = (ComparedSide.of(read, read.facts.lookups.values(), side) for side in (before, after))
        aligned = tuple(aligned_lookups(read, pairs or [(before, after)]))
        is_ordered = all(a is not None and b is not None and a <= b for a in ends for b in begins)
        return cls(one, other, aligned, is_ordered, by_rank=bool(pairs))


def _ranks(
    read: Recording, before: Sequence[int], after: Sequence[int]
) -> list[tuple[Sequence[int], Sequence[int]]]:
    """The run of each rank on both sides; empty unless both sides have the same ranks, each once."""
    one, other = ({read.facts.runs[run].rank: run for run in side} for side in (before, after))
    if None in one or one.keys() != other.keys() or not len(one) == len(before) == len(after) > 1:
        return []
    return [([one[rank]], [other[rank]]) for rank in one]


def _row(one: Aligned) -> ComparedLookup:
    row = one.one
    return like(
        ComparedLookup,
        row,
        change=one.change,
        by=one.by or None,
        before=tuple(row.lookup for row in one.before),
        after=tuple(row.lookup for row in one.after),
        hits_before=one.hits[0],
        hits_after=one.hits[1],
        fields=None if one.changes is None else tuple(change.field for change in one.changes),
    )


class SideTime(NamedTuple):
    """The time of one side."""

    runs: int  # how many of its runs have events
    phases: dict[str, int]  # self time of each phase in nanoseconds, the mean of these runs

    @property
    def total_ns(self) -> int:
        """Their sum."""
        return sum(self.phases.values())


def side_times(
    read: Recording, before: Sequence[int], after: Sequence[int]
) -> tuple[SideTime, SideTime] | None:
    """The phases of both sides; None if no run of a side has events."""
    sides = []
    for runs in (before, after):
        mine = [row for row in read.phases_read[0].rows if row.run in runs]
        if not (count := len({row.run for row in mine})):
            return None
        sides.append(SideTime(count, {name: round(ns / count) for name, ns in self_times(mine).items()}))
    one, other = sides
    return one, other


@dataclass(frozen=True, slots=True)
class Comparison:
    """What differs between two sides.

    Attributes
    ----------
    before, after : str
        What the sides are.
    graphs : Difference or None
        Keys paired by their graphs; None where a side holds no keys.
    runs : ComparedRuns or None
        How the lookups of runs went; None where a side has none, or both have the same.
    form_differences, predicted, built_alike, covered : Table or None
        The rows of the frames `contexts`, `predictions`, `built` and `coverage`.
    """

    before: str
    after: str
    graphs: Difference | None = None
    form_differences: Table[FormDifference] | None = None
    predicted: Table[PredictionRow] | None = None
    built_alike: Table[Built] | None = None
    covered: Table[CoverageRow] | None = None
    runs: ComparedRuns | None = None
    # The path of each side, to be shown beside its runs; empty for a side that was named within a scope.
    paths: tuple[str, str] = ("", "")
    # Where nothing could be compared: what each side has, and why no lookup of it is recorded.
    alone: tuple[str, ...] = ()

    # fmt: off
    contexts = copied(lambda found: found.form_differences, """See ``describe("context_difference")``; None where neither side is a snapshot, or one has no context.""")
    predictions = copied(lambda found: found.predicted, """See ``describe("predictions")``: the entries of the side that is a directory, and whether the process of the other would find them; None where there is no such process.""")
    built = copied(lambda found: found.built_alike, """See ``describe("built")``: what both hold under one key, and whether it was built alike; None where a side holds no entries.""")
    coverage = copied(lambda found: found.covered, """See ``describe("coverage")``: what of one side the mega-caches of the other hold; None where no side consists of mega-caches.""")
    # fmt: on

    frame = copied(
        lambda found: Table(DifferenceRow, [*_difference_rows(found.graphs)]),
        """One row per field that differs between paired keys, folded; see ``describe("differences")``.""",
    )

    @classmethod
    def of(cls, read: Recording, before: Side, after: Side) -> Self:
        """Compare two sides of what was read."""
        looked_up = {row.run for row in read.facts.lookups.values()}
        one, other = ([run for run in side.runs if run in looked_up] for side in (before, after))
        found = cls(
            before.name,
            after.name,
            graphs=difference(read, before.keys, after.keys) if before.keys and after.keys else None,
            form_differences=_form_differences(read, before, after),
            predicted=_predicted(read, before, after),
            built_alike=_built(read, before, after) if before.entries and after.entries else None,
            covered=_covered(read, before, after),
            runs=ComparedRuns.of(read, one, other) if one and other and {*one}.isdisjoint(other) else None,
            paths=(before.path, after.path),
        )
        of_entries = found.predicted or found.built_alike or found.covered
        if found.graphs or found.runs or found.form_differences or of_entries:
            return found
        return replace(found, alone=tuple(_alone(read, side) for side in (before, after)))


def _alone(read: Recording, side: Side) -> str:
    """What a side has, and why no lookup of it is recorded."""
    lookups = sum(row.run in side.runs for row in read.facts.lookups.values())
    kinds = [row.kind for row in compiles_of(read, side.runs) if row.run in side.runs]
    compiles = [kind for kind in kinds if kind != "limit"]
    counts = (
        (lookups, "lookup"),
        (len(compiles), "compile"),
        (compiles.count("recompile"), "recompile"),
        (len(side.entries), "entry"),
    )
    text = listed((plural(count, what) for count, what in counts if count), len(counts)) or "nothing"
    if compiles and side.path:
        text += f" ({shlex.join(('cachescope', 'compiles', side.path))})"
    if side.runs and not lookups:
        text += f"; no lookup is recorded, for {why_no_lookup(read, side.runs)}"
    return f"{side.name}: {text}"


def _difference_rows(graphs: Difference | None) -> Iterator[DifferenceRow]:
    for number, (changes, pairs) in enumerate(() if graphs is None else graphs.groups):
        yield from (like(DifferenceRow, change, group=number, pairs=len(pairs)) for change in changes)


def _form_differences(read: Recording, one: Side, other: Side) -> Table[FormDifference] | None:
    before, after = _context_of(read, one), _context_of(read, other)
    if before is None or after is None or not (one.snapshots or other.snapshots):
        return None
    return Table(FormDifference, context_difference(read.all_contexts.rows, before, after))


def _built(read: Recording, one: Side, other: Side) -> Table[Built]:
    old, new = ([row for row in side.entries if row.cache in COMPARED] for side in (one, other))
    measured = read.tables.autotune.rows
    return Table(Built, [*built_alike(old, new, measured, read.generated_code, read.kernel_binaries)])


def _covered(read: Recording, one: Side, other: Side) -> Table[CoverageRow] | None:
    bundles, rest = (one, other) if _is_of_bundles(one) else (other, one)
    if not _is_of_bundles(bundles) or _is_of_bundles(rest) or not (rest.runs or rest.entries):
        return None
    reading = Reading(details=read.tables.hash_details)
    held = [held_in(row.path, reading) for row in bundles.entries]
    lookups = [row for row in read.history.lookups if row.run in rest.runs]
    return Table(CoverageRow, [*coverage_rows(held, lookups, rest.entries, content_hash)])


def _is_of_bundles(side: Side) -> bool:
    return {row.cache for row in side.entries} == {MEGA_CACHE} and not side.runs


def _context_of(read: Recording, side: Side) -> int | None:
    """The snapshot of a side, else the context of its last run."""
    of_runs = [row.context for row in read.all_contexts.rows if row.run in side.runs]
    return next(iter(side.snapshots[-1:] or of_runs[-1:]), None)


def _predicted(read: Recording, one: Side, other: Side) -> Table[PredictionRow] | None:
    directories = [side for side in (one, other) if side.entries]
    processes = [side for side in (one, other) if not side.entries and (side.snapshots or side.runs)]
    if not directories or not processes:
        return None
    (directory,), (process,) = directories, processes
    if process.snapshots:
        known = context_fields(read, process.snapshots[-1])
    else:
        known = run_fields(read, process.runs[-1])
    return Table(PredictionRow, predictions(read, directory.entries, known))


def predictions(read: Recording, entries: Sequence[EntryRow], process: ProcessFields) -> list[PredictionRow]:
    """The entries of a directory; if there are none, those in mega-cache files."""
    details = read.tables.hash_details
    files = [row for row in entries if row.cache in BUNDLES]
    if not files or any(row.cache in CACHES for row in entries):
        return predictions_of(entries, details, process, source_of)
    reading = Reading(details=details)
    inside = [(row, file.entry) for file in files for row in entries_inside(file.path, reading)]
    # A mega-cache file contains the source of its entries.
    rows = entry_rows([row for row, _ in inside])
    found = predictions_of(rows, details, process, lambda file: file.source_code)
    return [replace(row, entry=inside[row.entry][1]) for row in found]


def predictions_of_run(read: Recording, run: int) -> list[PredictionRow]:
    """Whether the process of a run would find each entry that was read."""
    return predictions(read, read.tables.entries.rows, run_fields(read, run))


def run_fields(read: Recording, run: int | None = None) -> ProcessFields:
    """The fields of a process, from the lookups of a run (by default the last) and its snapshot; without runs, from the last snapshot."""
    runs, captured = read.facts.runs, read.tables.contexts.rows
    if not runs and captured:
        return context_fields(read, captured[-1].context)
    if not runs:
        raise NotFoundError("there is no run in what was read, and no snapshot was given")
    if run is None:
        of_torch = [one for one in runs if one not in read.of_vllm_alone]
        if not of_torch:
            raise NotFoundError("no run that was read asked torch's caches, and no snapshot was given")
        run = of_torch[-1]
    version = read.facts.run(run).torch_version
    rows = [row for row in read.history.lookups if row.run == run]
    known = ProcessFields.of_lookups(rows, read.tables.hash_details, version)
    own = [row.context for row in read.all_contexts.rows if row.run == run and row.settings]
    return known.with_captured(context_fields(read, own[0])) if own else known


def context_fields(read: Recording, context: int) -> ProcessFields:
    """The fields of a process, from a captured context."""
    captured = read.all_contexts.rows[context]
    as_json = {name: json.loads(getattr(captured, name) or "{}") for name in ("key_fields", "settings")}
    return ProcessFields.of_snapshot(asdict(captured) | as_json)
