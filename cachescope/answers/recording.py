"""What was read, as plain rows of each grain, worked out when they are asked for: what every answer is computed from."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Final

from cachescope.analysis.differences import FieldChange, field_changes, graph_change
from cachescope.analysis.directory.false_hits import false_hits
from cachescope.analysis.graphs import inner_graphs
from cachescope.analysis.history.history import History, is_open
from cachescope.analysis.history.past_of_keys import settled_history
from cachescope.analysis.phases.frame import read_phases
from cachescope.analysis.rates import outcome_as_if_made
from cachescope.analysis.resolve_name import baseline_choice
from cachescope.analysis.verdicts.judging import judged
from cachescope.analysis.verdicts.misses import Candidate, Miss, changes_of, miss_row
from cachescope.analysis.verdicts.since_baseline import ChangedSince, changed_since
from cachescope.analysis.vllm.factors import Named, field_changes_of, named_folders
from cachescope.analysis.vllm.folders import folders_of
from cachescope.answers.facts import Facts
from cachescope.collector import all_is_kept, no_collections
from cachescope.components import Detail
from cachescope.frames.answer_rows import CauseRow, MissRow
from cachescope.frames.checks import FalseHit
from cachescope.frames.compile_rows import CompileRow, PhaseRow, RecompileRow, SymbolRow
from cachescope.frames.context_rows import ContextRow
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.linked_rows import DuplicateRow, LinkRow, OrphanRow, PastMiss, RemovableRow
from cachescope.frames.recorded_rows import LookupRow, ProblemRow, RunRow
from cachescope.frames.vllm import FolderRow
from cachescope.readers.logs.second_pass import traced_code
from cachescope.table import Table, tabled
from cachescope.terms import VLLM, VLLM_KINDS

if TYPE_CHECKING:
    from cachescope.analysis.contexts.keys import KnownContext
    from cachescope.analysis.directory.equal_code import GeneratedCode, KernelBinaries
    from cachescope.analysis.verdicts.baselines import Choice
    from cachescope.analysis.verdicts.vllm_misses import VllmMisses
    from cachescope.analysis.what_if.replay import Replay
    from cachescope.analysis.what_if.sensitivity import SafetyOfFields
    from cachescope.frames.device_rows import DeviceRow
    from cachescope.frames.replay_rows import CauseSaving, EvidenceRow, SensitivityRow
    from cachescope.readers.assemble import Tables


_COMMENT: Final = re.compile(r"^[ \t]*#.*\n?", re.MULTILINE)
# Each takes a replay.
MOST_CAUSES: Final = 20
MOST_BYTES_READ_AGAIN: Final = 100_000_000
"""Of traces that are read once more for an answer, where they are not asked for by name: some tenths of a second."""


class Recording:
    """What was read. It never changes.

    Attributes
    ----------
    tables : Tables
        The rows that come straight from the sources, and the store of hash details with its codes.
    sources : tuple of str
        The paths and patterns it was read from; empty if it was recorded in this process.
    """

    def __init__(
        self, tables: Tables, baseline: str | int = "auto", sources: tuple[str, ...] = (), index: bool = True
    ) -> None:
        if any(run.is_preflight for run in tables.runs.rows):
            from cachescope.analysis.preflight.predicting import with_predictions

            tables = with_predictions(tables)
        self.tables = tables
        self.sources = sources
        self._baseline = baseline
        self._index = index
        self._symbols_of_run: dict[int, list[SymbolRow]] = {}
        self._ranked: dict[int, list[SensitivityRow]] = {}

    @cached_property
    def history(self) -> History:
        """What was stored when, by whom, and under which guards."""
        tables = self.tables
        return settled_history(self.lookup_rows, tables.entries.rows, tables.runs.rows, tables.hash_details)

    @cached_property
    def lookup_rows(self) -> list[LookupRow]:
        """The lookups as they were read, predicted ones as if they had been made."""
        return [
            row if row.prediction is None else replace(row, outcome=outcome_as_if_made(row))
            for row in self.tables.lookups.rows
        ]

    @cached_property
    def of_vllm_alone(self) -> frozenset[int]:
        """The runs that made no lookup in torch's caches, and some of vLLM's own."""
        of_vllm = {row.run for row in self.lookup_rows if row.cache == VLLM}
        return frozenset(of_vllm.difference(self.asked_torch))

    @cached_property
    def asked_torch(self) -> list[int]:
        """The runs that made a lookup in torch's caches, in order."""
        return sorted({row.run for row in self.lookup_rows if row.cache != VLLM})

    @cached_property
    def settled(self) -> Table[LookupRow]:
        """The lookups, predicted ones as if they had been made, with the guard misses that follow from all that was read."""
        rows = self.lookup_rows
        # Traces record guard misses themselves, and then the history is not asked for.
        if any(map(is_open, rows)) and (inferred := frozenset(self.history.inferred)):
            rows = [replace(row, outcome="guard_miss") if row.lookup in inferred else row for row in rows]
        return Table(LookupRow, rows)

    @cached_property
    def shown(self) -> Table[LookupRow]:
        """The lookups as users see them: a predicted outcome in its own word."""
        read = self.tables.lookups.rows
        if all(row.prediction is None for row in read):
            return self.settled
        pairs = zip(read, self.settled.rows, strict=True)
        return Table(
            LookupRow,
            [row if was.prediction is None else replace(row, outcome=was.outcome) for was, row in pairs],
        )

    @cached_property
    def all_contexts(self) -> Table[ContextRow]:
        """The captured contexts, and one for each run, as far as its hash details show."""
        from cachescope.analysis.contexts.of_runs import all_contexts

        tables = self.tables
        runs = [run for run in tables.runs.rows if run.run not in self.of_vllm_alone]
        read = (runs, self.lookup_rows, tables.hash_details, tables.entries.rows)
        return Table(ContextRow, all_contexts(tables.contexts.rows, *read))

    @cached_property
    def known_contexts(self) -> list[KnownContext]:
        """What is known of each of them."""
        from cachescope.analysis.contexts.keys import known_contexts

        return known_contexts(self.all_contexts.rows)

    @cached_property
    def _judged(self) -> tuple[list[Miss], list[CauseRow]]:
        of_vllm = self._vllm_misses if any(row.cache == VLLM for row in self.lookup_rows) else None
        # All that is made is kept, and going through it again and again would take a fifth of the time.
        with all_is_kept():
            return judged(self.history, self._choice(), of_vllm)

    @cached_property
    def _miss_of(self) -> dict[int, Miss]:
        """The misses by their lookups."""
        return {miss.row.lookup: miss for miss in self._judged[0]}

    missed = tabled(MissRow, lambda read: [miss_row(miss) for miss in read._judged[0]])
    """The misses, in the order of the lookups."""

    explained = tabled(CauseRow, lambda read: read._judged[1])
    """The causes, the costliest first."""

    @cached_property
    def linked(self) -> Table[LinkRow]:
        """The references between files of cache directories."""
        from cachescope.analysis.directory.links import link_rows

        return Table(LinkRow, link_rows(self.tables))

    @cached_property
    def orphaned(self) -> Table[OrphanRow]:
        """The files that nothing refers to, or that refer to something that is gone."""
        from cachescope.analysis.directory.unused import orphan_rows

        return Table(OrphanRow, orphan_rows(self.tables.entries.rows, self.linked.rows))

    @property
    def removed_unnoticed(self) -> Table[RemovableRow]:
        """The files that can go without a later process noticing."""
        from cachescope.analysis.directory.unused import removable_rows

        return Table(RemovableRow, removable_rows(self.tables.entries.rows, self.orphaned.rows))

    @property
    def duplicated(self) -> Table[DuplicateRow]:
        """The groups of files of which one would be enough."""
        from cachescope.analysis.directory.same_key import duplicate_rows

        return Table(DuplicateRow, duplicate_rows(self.tables.entries.rows))

    @cached_property
    def named_devices(self) -> Table[DeviceRow]:
        """Every device that any source names."""
        from cachescope.devices.merged import named_devices
        from cachescope.frames.device_rows import DeviceRow

        tables, rows = self.tables, self.all_contexts.rows
        entries, details = tables.entries.rows, tables.hash_details
        return Table(DeviceRow, named_devices(rows, tables.runs.rows, self.lookup_rows, entries, details))

    @cached_property
    def _vllm_misses(self) -> VllmMisses:
        from cachescope.analysis.verdicts.vllm_misses import VllmMisses

        tables = self.tables
        return VllmMisses(tables.vllm_starts.rows, tables.vllm_factors.rows, self._factor_files)

    @cached_property
    def _factor_files(self) -> list[EntryRow]:
        files = {row.entry for row in self.tables.vllm_factors.rows}
        return [entry for entry in self.tables.entries.rows if entry.entry in files] if files else []

    @property
    def folders_of_vllm(self) -> list[FolderRow]:
        """The parts of models that ranks keep in folders of vLLM's torch_compile_cache."""
        if all(row.cache not in VLLM_KINDS for row in self.tables.entries.rows):
            return []
        return folders_of(self.tables.vllm_factors.rows, self.tables.entries.rows, self.named_of_vllm)

    @cached_property
    def named_of_vllm(self) -> list[Named]:
        """The folders of vLLM whose names follow from their factors."""
        return named_folders(self.tables.vllm_factors.rows, self._factor_files)

    @cached_property
    def generated_code(self) -> GeneratedCode:
        """Compares the generated code of two entries."""
        from cachescope.analysis.directory.equal_code import GeneratedCode

        return GeneratedCode(_source_of)

    @cached_property
    def kernel_binaries(self) -> KernelBinaries:
        """Compares the compiled kernels of two entries."""
        from cachescope.analysis.directory.equal_code import KernelBinaries
        from cachescope.readers.directory.file_contents import content_hash

        return KernelBinaries(self.tables.entries.rows, self.linked.rows, content_hash)

    @cached_property
    def missed_before(self) -> Table[PastMiss]:
        """The misses that a directory shows without a log."""
        from cachescope.analysis.directory.past_misses import past_misses

        history = self.history
        compared = self.generated_code, self.kernel_binaries
        return Table(PastMiss, past_misses(history.entries, history.keys, *compared))

    @cached_property
    def suspected(self) -> Table[FalseHit]:
        """Keys that seem to stand for more than one thing."""
        return Table(FalseHit, false_hits(self.settled.rows, self.tables, _source_of))

    def _choice(self) -> Choice:
        return baseline_choice(self.tables, self._baseline)

    @cached_property
    def phases_read(self) -> tuple[Table[PhaseRow], list[ProblemRow]]:
        """The phases, and what could not be read for them."""
        if self.tables.phases is not None:
            return self.tables.phases, []
        phases, problems = read_phases(self.tables.runs.rows, self.tables.stamps)
        return Table(PhaseRow, phases), problems

    @cached_property
    def compiles_read(self) -> tuple[Table[CompileRow], Table[SymbolRow], list[ProblemRow]]:
        """The compiles, their symbols, and what could not be read for them."""
        compiles, symbols = self.tables.compiles, self.tables.symbols
        if compiles is not None and symbols is not None:
            return compiles, symbols, []
        return self._read_compiles(self.tables.runs.rows, self.settled.rows)

    def _read_compiles(
        self, runs: Collection[RunRow], lookups: Iterable[LookupRow]
    ) -> tuple[Table[CompileRow], Table[SymbolRow], list[ProblemRow]]:
        from cachescope.analysis.compiles.frames import read_compiles

        compiles, symbols, problems = read_compiles(runs, lookups, self.tables)
        return Table(CompileRow, compiles), Table(SymbolRow, symbols), problems

    def recompiles_of(self, compiles: Iterable[CompileRow]) -> list[RecompileRow]:
        """The recompiles among compiles, by function and guard."""
        from cachescope.analysis.compiles.frames import recompiles

        return recompiles(compiles, self.facts.lookups.values(), self.facts.misses)

    def has_symbols_of(self, runs: Collection[int], most_bytes: int | None = None) -> bool:
        """Whether the symbols of runs were read, or may be: with `most_bytes`, from traces of no more than so many bytes together."""
        if "compiles_read" in self.__dict__ or self.tables.symbols is not None or most_bytes is None:
            return True
        return self.size_of_logs(set(runs) - self._symbols_of_run.keys()) <= most_bytes

    @property
    def has_phases(self) -> bool:
        """Whether the phases were read already."""
        return "phases_read" in self.__dict__ or self.tables.phases is not None

    def size_of_logs(self, runs: Collection[int]) -> int:
        """The bytes of the logs of some runs."""
        stamps = self.tables.stamps
        rows = (row for row in self.tables.runs.rows if row.run in runs)
        return sum(stamps.get(source, (0, 0))[0] for row in rows for source in row.sources)

    def symbols_of(self, run: int) -> list[SymbolRow]:
        """The rows of ``symbols`` of one run, whose trace alone is read if those of all were not."""
        if "compiles_read" in self.__dict__ or self.tables.symbols is not None:
            return [row for row in self.compiles_read[1].rows if row.run == run]
        if run not in self._symbols_of_run:
            own = [row for row in self.tables.runs.rows if row.run == run]
            self._symbols_of_run[run] = self._read_compiles(own, [])[1].rows
        return self._symbols_of_run[run]

    @cached_property
    def changes(self) -> Callable[[int], tuple[FieldChange, ...]]:
        """What changed for a missed lookup; the last ones that were asked for are kept: an answer asks several times."""
        return lru_cache(16)(self._changes)

    def _changes(self, lookup: int) -> tuple[FieldChange, ...]:
        miss = self._miss_of.get(lookup)
        if miss is None:
            return ()
        return self.with_code_within(changes_of(miss, self.history), miss.baseline, miss.row)

    def with_code_within(
        self, changes: Iterable[FieldChange], *sides: Candidate | None
    ) -> tuple[FieldChange, ...]:
        """What changed between two lookups. Of the graphs within a graph torch prints the names alone: where they differ, their code is taken from the traces."""
        return tuple(self._with_code_within(change, sides) for change in changes)

    def _with_code_within(self, change: FieldChange, sides: Iterable[Candidate | None]) -> FieldChange:
        rows = [row for row in sides if isinstance(row, LookupRow) and row.traced_graph]
        has_inner = change.kind == "graph" and not change.diff and inner_graphs(change.after or "")
        is_other = has_inner and len({row.traced_graph for row in rows}) == 2
        if not is_other or self.size_of_logs({row.run for row in rows}) > MOST_BYTES_READ_AGAIN:
            return change
        runs, stamps = self.history.run_of, self.tables.stamps
        before, after = (traced_code(runs[row.run], stamps, row) or "" for row in rows)
        # The program's own lines are comments there, and in no key.
        is_same = _COMMENT.sub("", before) == _COMMENT.sub("", after)
        return change if is_same or not (before and after) else graph_change(change.field, before, after)

    def past_changes(self, row: PastMiss) -> tuple[FieldChange, ...]:
        """What changed for a past miss, as far as it was recorded."""
        entries = self.facts.entries
        before, after = entries[row.baseline_entry].detail_set, entries[row.entry].detail_set
        if not row.changed or before is None or after is None:
            return ()
        return tuple(field_changes(self.tables.hash_details, before, after))

    def vllm_changes_between(self, before: str, after: str) -> tuple[FieldChange, ...] | None:
        """In which factors two folders of vLLM differ; None if those of one are not known."""
        beside = self._vllm_misses.beside(after, before, self._vllm_misses)
        return None if beside is None else field_changes_of(beside)

    def changed_details(self, lookup: int) -> list[tuple[Detail | None, Detail | None]]:
        """Like `changes`: each differing field as it is in the baseline and in the missed lookup, None where it is not."""
        details, miss = self.tables.hash_details, self._miss_of.get(lookup)
        compared = None if miss is None or not miss.why.changed else miss.compared
        changes = details.changes(*compared) if compared else ()
        return [(details.parsed(old), details.parsed(new)) for _, old, new in changes]

    def changed_since(self, base: Recording, before: Iterable[Candidate] | None = None) -> list[ChangedSince]:
        """What changed for first lookups whose graph another one has under other keys only: in all its lookups and entries, or in some."""
        from cachescope.analysis.verdicts.vllm_misses import vllm_changed_since

        keys = (row.cache_key for row in self.settled.rows if row.cache_key is not None)
        misses = self._judged[0]
        details = self.tables.hash_details, base.tables.hash_details
        before = [*base.lookup_rows, *base.tables.entries.rows] if before is None else before
        of_torch = changed_since(misses, keys, details[0], before, details[1])
        return of_torch + vllm_changed_since(misses, self._vllm_misses, base._vllm_misses)

    @cached_property
    def replay(self) -> Replay:
        """What every replay starts from: what was stored when, and how long it took."""
        from cachescope.analysis.what_if.replay import Replay

        with all_is_kept():
            return Replay(self.history)

    @cached_property
    def field_evidence(self) -> Table[EvidenceRow]:
        """What entries show of leaving fields out."""
        from cachescope.analysis.what_if.sensitivity import evidence_rows
        from cachescope.frames.replay_rows import EvidenceRow

        return Table(EvidenceRow, evidence_rows(self.missed_before.rows))

    @property
    def field_safety(self) -> SafetyOfFields:
        """What is known about leaving fields out."""
        from cachescope.analysis.what_if.sensitivity import SafetyOfFields

        return SafetyOfFields(self.field_evidence.rows)

    def sensitivity_rows(self, largest: int = 2) -> list[SensitivityRow]:
        """The fields that would help; see `Read.sensitivity`."""
        from cachescope.analysis.what_if.sensitivity import sensitivity_rows

        if largest not in self._ranked:
            changed = [row.fields for row in self.explained.rows[:MOST_CAUSES] if len(row.fields) > 1]
            replay = self.replay
            with no_collections():
                self._ranked[largest] = sensitivity_rows(replay, self.field_safety, largest, changed)
        return self._ranked[largest]

    def saving_rows(self, most: int = MOST_CAUSES) -> list[CauseSaving]:
        """What leaving out the fields of each cause would save; see `Read.cause_savings`."""
        from cachescope.analysis.what_if.causes import saving_rows

        return saving_rows(self.replay, self.explained.rows, self.missed.rows, most)

    @cached_property
    def facts(self) -> Facts:
        """The rows by their ids."""
        return Facts(self.tables, lambda: self.shown, lambda: self.missed)


def _source_of(file: EntryRow) -> str | None:
    from cachescope.readers.directory.file_contents import source_of

    return source_of(file)
