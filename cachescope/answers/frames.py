"""The frames of what was read, each made when it is first asked for."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from cachescope.analysis.history.history import History
from cachescope.analysis.history.inferred_guard_misses import is_open, settled_history
from cachescope.analysis.preflight.frame import with_predictions
from cachescope.analysis.preflight.words import outcome_as_if_made
from cachescope.analysis.verdicts.baselines import Choice
from cachescope.analysis.verdicts.judging import judged
from cachescope.analysis.verdicts.misses import Miss, miss_row
from cachescope.analysis.verdicts.ranks import rank_differences
from cachescope.analysis.verdicts.vllm_misses import VllmMisses
from cachescope.frames.answer_rows import CauseRow, MissRow
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.recorded_rows import LookupRow, ProblemRow, RunRow
from cachescope.table import Table
from cachescope.terms import VLLM

if TYPE_CHECKING:
    import pandas as pd

    from cachescope.analysis.directory.equal_code import GeneratedCode, KernelBinaries
    from cachescope.analysis.vllm.factors import Named
    from cachescope.frames.checks import FalseHit
    from cachescope.frames.compile_rows import CompileRow, SymbolRow
    from cachescope.frames.phases import PhaseRow
    from cachescope.frames.ranks import RankDifference
    from cachescope.frames.vllm import FolderRow, FragmentRow, RankRow
    from cachescope.readers.assemble import Tables


class Frames:
    """What was read, as frames. It never changes; its frames are cheap copies.

    Attributes
    ----------
    tables : Tables
        The frames that come straight from the sources, and the store of hash details with its codes.
    sources : tuple of str
        The paths and patterns it was read from; empty if it was recorded in this process.
    """

    def __init__(
        self,
        tables: Tables,
        baseline: str | int = "auto",
        sources: tuple[str, ...] = (),
        index: bool = True,
    ) -> None:
        self.tables = with_predictions(tables)
        self.sources = sources
        self._baseline = baseline
        self._index = index

    @property
    def runs(self) -> pd.DataFrame:
        """One row per process."""
        return _copy(self.tables.runs.frame)

    @property
    def lookups(self) -> pd.DataFrame:
        """One row per lookup; for a pre-flight, the lookups that a real run would make."""
        return _copy(self.shown.frame)

    @property
    def entries(self) -> pd.DataFrame:
        """One row per entry of the cache directories that were read."""
        return _copy(self.tables.entries.frame)

    @property
    def contexts(self) -> pd.DataFrame:
        """One row per isolation context. The snapshots come first, then each run, as far as its hash details show."""
        return _copy(self._contexts)

    @property
    def guards(self) -> pd.DataFrame:
        """One row per candidate, the sound entries under each key, with the guards that must hold."""
        from cachescope.analysis.directory.same_key import guards_frame

        return guards_frame(self.tables.entries.frame)

    @property
    def kernels(self) -> pd.DataFrame:
        """One row per kernel of the FX entries, with its source nodes and ATen operators."""
        return _copy(self.tables.kernels.frame)

    @property
    def autotune(self) -> pd.DataFrame:
        """One row per choice that max-autotune measured."""
        return _copy(self.tables.autotune.frame)

    @property
    def vllm_folders(self) -> pd.DataFrame:
        """One row per part of a model that one rank keeps in one folder of vLLM's torch_compile_cache."""
        from cachescope.frames.vllm import FolderRow

        return _frame(self.folders_of_vllm, FolderRow)

    @property
    def vllm_changes(self) -> pd.DataFrame:
        """One row per factor in which a vLLM folder differs from the nearest earlier one."""
        from cachescope.analysis.vllm.changes import all_changes
        from cachescope.frames.vllm import VllmChange

        return _frame(all_changes(self._vllm_named), VllmChange)

    @property
    def vllm_fragments(self) -> pd.DataFrame:
        """One row per factor that makes vLLM folders differ: how many folders would remain without it."""
        from cachescope.frames.vllm import FragmentRow

        return _frame(self.fragments_of_vllm, FragmentRow)

    @property
    def vllm_ranks(self) -> pd.DataFrame:
        """One row per factor in which the folders of ranks with one vLLM configuration differ."""
        from cachescope.frames.vllm import RankRow

        return _frame(self.ranks_of_vllm, RankRow)

    @property
    def vllm_factors(self) -> pd.DataFrame:
        """One row per cache_key_factors.json of vLLM: the factors of a folder's name."""
        return _copy(self.tables.vllm_factors.frame)

    @property
    def vllm_starts(self) -> pd.DataFrame:
        """One row per part of a model that vLLM compiled or loaded, according to its logs."""
        return _copy(self.tables.vllm_starts.frame)

    @property
    def links(self) -> pd.DataFrame:
        """One row per reference between files of a cache directory."""
        return _copy(self._links_frame)

    @property
    def orphans(self) -> pd.DataFrame:
        """One row per file that nothing refers to, or that refers to something that is gone."""
        return _copy(self._orphans_frame)

    @property
    def duplicates(self) -> pd.DataFrame:
        """One row per group of files of which one would be enough, judged by names, sizes and guards; no file is read."""
        from cachescope.analysis.directory.same_key import duplicates_frame

        return duplicates_frame(self.tables.entries.frame)

    @property
    def removable(self) -> pd.DataFrame:
        """One row per file that can go without a later process noticing; cachescope itself removes nothing."""
        from cachescope.analysis.directory.unused import removable_frame

        return removable_frame(self.tables.entries.frame, self._orphans_frame)

    @property
    def past_misses(self) -> pd.DataFrame:
        """One row per FX entry whose graph had been stored before: a miss that a directory shows without a log."""
        return _copy(self._past_misses_frame)

    @property
    def evidence(self) -> pd.DataFrame:
        """One row per set of fields in which entries of one graph differ, and whether their code differs too."""
        from cachescope.analysis.what_if.evidence import evidence_frame

        return evidence_frame(self._past_misses_frame)

    @property
    def false_hits(self) -> pd.DataFrame:
        """One row per key that seems to stand for more than one thing: a warning with its evidence."""
        return _copy(self.suspected.frame)

    @property
    def devices(self) -> pd.DataFrame:
        """One row per device that any source names, with its datasheet."""
        return _copy(self._devices_frame)

    @property
    def phases(self) -> pd.DataFrame:
        """Where compile time went, from the events of traces. These are read on first access."""
        return _copy(self._phases_read[0].frame)

    @property
    def phase_problems(self) -> pd.DataFrame:
        """One row per event or trace that could not be read for ``phases``; with the columns of ``problems``."""
        return _frame(self._phases_read[1], ProblemRow)

    @property
    def compiles(self) -> pd.DataFrame:
        """One row per compile and why it was made, from traces. These are read for it on first access."""
        return _copy(self._compiles_read[0].frame)

    @property
    def symbols(self) -> pd.DataFrame:
        """One row per size or number that became a symbol in a compile; read together with ``compiles``."""
        return _copy(self._compiles_read[1].frame)

    @property
    def recompiles(self) -> pd.DataFrame:
        """One row per guard whose failure caused recompiles of a function, the costliest first; read together with ``compiles``."""
        from cachescope.analysis.compiles.frames import recompiles
        from cachescope.frames.compile_rows import RecompileRow

        return _frame(recompiles(self._compiles_read[0].rows), RecompileRow)

    @property
    def compile_problems(self) -> pd.DataFrame:
        """One row per record or trace that could not be read for ``compiles``; with the columns of ``problems``."""
        return _frame(self._compiles_read[2], ProblemRow)

    @property
    def problems(self) -> pd.DataFrame:
        """One row per thing that could not be read."""
        return _copy(self.tables.problems.frame)

    @property
    def misses(self) -> pd.DataFrame:
        """One row per lookup that did not hit, with its verdict."""
        return _copy(self.missed.frame)

    @property
    def causes(self) -> pd.DataFrame:
        """One row per distinct reason, the costliest first."""
        return _copy(self.explained.frame)

    @property
    def rank_differences(self) -> pd.DataFrame:
        """One row per field in which some ranks of a job differ from the majority."""
        return _copy(self.differing_ranks.frame)

    # What the frames are made from.

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
        return frozenset(row.run for row in self.lookup_rows if row.cache == VLLM).difference(
            self.asked_torch
        )

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
    def _contexts(self) -> pd.DataFrame:
        from cachescope.analysis.contexts.of_runs import all_contexts

        tables = self.tables
        runs = tables.runs.frame
        of_torch = runs[~runs["run"].isin(self.of_vllm_alone)]
        return all_contexts(tables.contexts.frame, of_torch, self.settled.frame, tables.hash_details)

    @cached_property
    def _judged(self) -> tuple[list[Miss], list[CauseRow]]:
        return judged(self.history, self._choice(), self._vllm_misses)

    @cached_property
    def _miss_of(self) -> dict[int, Miss]:
        """The misses by their lookups."""
        return {miss.row.lookup: miss for miss in self._judged[0]}

    @cached_property
    def missed(self) -> Table[MissRow]:
        """The misses, in the order of the lookups."""
        return Table(MissRow, [miss_row(miss) for miss in self._judged[0]])

    @cached_property
    def explained(self) -> Table[CauseRow]:
        """The causes, the costliest first."""
        return Table(CauseRow, self._judged[1])

    @cached_property
    def _links_frame(self) -> pd.DataFrame:
        from cachescope.analysis.directory.links import links_frame

        tables = self.tables
        frames = (tables.entries.frame, tables.autotune.frame, tables.contexts.frame)
        return links_frame(*frames, tables.hash_details)

    @cached_property
    def _orphans_frame(self) -> pd.DataFrame:
        from cachescope.analysis.directory.unused import orphans_frame

        return orphans_frame(self.tables.entries.frame, self._links_frame)

    @cached_property
    def _devices_frame(self) -> pd.DataFrame:
        from cachescope.devices.frame import devices_frame

        tables = self.tables
        of_runs = (self._contexts, tables.runs.frame, self.settled.frame)
        return devices_frame(*of_runs, tables.entries.frame, tables.autotune.frame, tables.hash_details)

    @cached_property
    def _vllm_misses(self) -> VllmMisses:
        tables = self.tables
        return VllmMisses(tables.vllm_starts.rows, tables.vllm_factors.rows, self._factor_files)

    @cached_property
    def _factor_files(self) -> list[EntryRow]:
        files = {row.entry for row in self.tables.vllm_factors.rows}
        return [entry for entry in self.tables.entries.rows if entry.entry in files] if files else []

    @property
    def folders_of_vllm(self) -> list[FolderRow]:
        """The parts of models that ranks keep in folders of vLLM's torch_compile_cache."""
        from cachescope.analysis.vllm.folders import folders_of

        tables = self.tables
        return folders_of(tables.vllm_factors.rows, tables.entries.rows, self._vllm_named)

    @property
    def fragments_of_vllm(self) -> list[FragmentRow]:
        """The factors that make folders of vLLM many."""
        from cachescope.analysis.vllm.folders import fragments

        return fragments(self._vllm_named)

    @property
    def ranks_of_vllm(self) -> list[RankRow]:
        """The factors in which the folders of ranks with one vLLM configuration differ."""
        from cachescope.analysis.vllm.ranks import ranks_apart

        return [*ranks_apart(self.tables.vllm_factors.rows, self._vllm_named)]

    @cached_property
    def _vllm_named(self) -> list[Named]:
        from cachescope.analysis.vllm.factors import named_folders

        return named_folders(self.tables.vllm_factors.rows, self._factor_files)

    @cached_property
    def generated_code(self) -> GeneratedCode:
        """Compares the generated code of two entries."""
        from cachescope.analysis.directory.equal_code import GeneratedCode
        from cachescope.readers.directory.file_contents import source_of

        return GeneratedCode(self.tables.entries.frame, source_of)

    @cached_property
    def kernel_binaries(self) -> KernelBinaries:
        """Compares the compiled kernels of two entries."""
        from cachescope.analysis.directory.equal_code import KernelBinaries
        from cachescope.readers.directory.file_contents import content_hash

        return KernelBinaries(self.tables.entries.frame, self._links_frame, content_hash)

    @cached_property
    def _past_misses_frame(self) -> pd.DataFrame:
        from cachescope.analysis.directory.past_misses import past_misses_frame

        code, binaries = self.generated_code, self.kernel_binaries
        return past_misses_frame(
            self.history.entries, self.history.keys, self.tables.hash_details, code, binaries
        )

    @cached_property
    def suspected(self) -> Table[FalseHit]:
        """Keys that seem to stand for more than one thing."""
        from cachescope.analysis.directory.false_hits import false_hits
        from cachescope.frames.checks import FalseHit
        from cachescope.readers.directory.file_contents import source_of

        tables = self.tables
        rows = (self.settled.rows, tables.entries.rows, tables.runs.rows, tables.contexts.rows)
        return Table(FalseHit, false_hits(*rows, tables.hash_details, source_of))

    def _choice(self) -> Choice:
        from cachescope.analysis.named import baseline_choice

        return baseline_choice(self.tables, self._baseline)

    @cached_property
    def _phases_read(self) -> tuple[Table[PhaseRow], list[ProblemRow]]:
        """The phases, and what could not be read for them."""
        from cachescope.analysis.phases.frame import read_phases
        from cachescope.frames.phases import PhaseRow

        if self.tables.phases is not None:
            return self.tables.phases, []
        phases, problems = read_phases(self.tables.runs.rows, self.tables.stamps)
        return Table(PhaseRow, phases), problems

    @cached_property
    def _compiles_read(self) -> tuple[Table[CompileRow], Table[SymbolRow], list[ProblemRow]]:
        """The compiles, their symbols, and what could not be read for them."""
        compiles, symbols = self.tables.compiles, self.tables.symbols
        if compiles is not None and symbols is not None:
            return compiles, symbols, []
        return self._read_compiles(self.tables.runs.rows, self.settled.rows)

    def _read_compiles(
        self, runs: Iterable[RunRow], lookups: Iterable[LookupRow]
    ) -> tuple[Table[CompileRow], Table[SymbolRow], list[ProblemRow]]:
        from cachescope.analysis.compiles.frames import read_compiles
        from cachescope.frames.compile_rows import CompileRow, SymbolRow

        read = read_compiles(runs, self.tables.stamps, lookups)
        return Table(CompileRow, read.compiles), Table(SymbolRow, read.symbols), read.problems

    def has_symbols_of(self, runs: Collection[int], most_bytes: int | None = None) -> bool:
        """Whether the symbols of runs were read, or may be: with `most_bytes`, from traces of no more than so many bytes together."""
        missing_runs = set(runs) - self._symbols_of_run.keys()
        if "_compiles_read" in self.__dict__ or self.tables.symbols is not None or most_bytes is None:
            return True
        stamps = self.tables.stamps
        missing = (row for row in self.tables.runs.rows if row.run in missing_runs)
        return sum(stamps.get(source, (0, 0))[0] for row in missing for source in row.sources) <= most_bytes

    def symbols_of(self, run: int) -> list[SymbolRow]:
        """The rows of ``symbols`` of one run, whose trace alone is read if those of all were not."""
        if "_compiles_read" in self.__dict__ or self.tables.symbols is not None:
            return [row for row in self._compiles_read[1].rows if row.run == run]
        if run not in self._symbols_of_run:
            own = [row for row in self.tables.runs.rows if row.run == run]
            self._symbols_of_run[run] = self._read_compiles(own, [])[1].rows
        return self._symbols_of_run[run]

    @cached_property
    def _symbols_of_run(self) -> dict[int, list[SymbolRow]]:
        return {}

    @cached_property
    def differing_ranks(self) -> Table[RankDifference]:
        """The fields in which some ranks of a job differ from the majority."""
        from cachescope.frames.ranks import RankDifference

        tables = self.tables
        found = rank_differences(self.settled.rows, tables.runs.rows, tables.hash_details)
        return Table(RankDifference, [*found])


def _copy(frame: pd.DataFrame) -> pd.DataFrame:
    """A frame that its user may change."""
    from cachescope.columns import DEEP

    return frame.copy(deep=DEEP)


def _frame(rows: Iterable[object], kind: type) -> pd.DataFrame:
    from cachescope.columns import frame_of

    return frame_of(rows, kind)
