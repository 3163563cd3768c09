"""The frames of what was read, each made when it is first asked for."""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property
from typing import TYPE_CHECKING

from cachescope.analysis.history.history import History
from cachescope.analysis.history.inferred_guard_misses import settled_history
from cachescope.analysis.preflight.frame import with_predictions
from cachescope.analysis.preflight.words import as_if_made
from cachescope.analysis.verdicts.baselines import Choice
from cachescope.analysis.verdicts.judging import judged
from cachescope.analysis.verdicts.misses import Miss
from cachescope.analysis.verdicts.ranks import rank_differences
from cachescope.analysis.verdicts.vllm_misses import VllmMisses
from cachescope.columns import DEEP, frame_of, rows_of
from cachescope.frames.answer_rows import CauseRow
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.recorded_rows import LookupRow, ProblemRow, RunRow
from cachescope.terms import VLLM

if TYPE_CHECKING:
    import pandas as pd

    from cachescope.analysis.directory.equal_code import GeneratedCode, KernelBinaries
    from cachescope.analysis.vllm.factors import Named
    from cachescope.frames.vllm import FactorsRow
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
        return self.tables.runs.copy(deep=DEEP)

    @property
    def lookups(self) -> pd.DataFrame:
        """One row per lookup; for a pre-flight, the lookups that a real run would make."""
        return self._shown_lookups.copy(deep=DEEP)

    @property
    def entries(self) -> pd.DataFrame:
        """One row per entry of the cache directories that were read."""
        return self.tables.entries.copy(deep=DEEP)

    @property
    def contexts(self) -> pd.DataFrame:
        """One row per isolation context. The snapshots come first, then each run, as far as its hash details show."""
        return self._contexts.copy(deep=DEEP)

    @property
    def guards(self) -> pd.DataFrame:
        """One row per candidate, the sound entries under each key, with the guards that must hold."""
        from cachescope.analysis.directory.same_key import guards_frame

        return guards_frame(self.tables.entries)

    @property
    def kernels(self) -> pd.DataFrame:
        """One row per kernel of the FX entries, with its source nodes and ATen operators."""
        return self.tables.kernels.copy(deep=DEEP)

    @property
    def autotune(self) -> pd.DataFrame:
        """One row per choice that max-autotune measured."""
        return self.tables.autotune.copy(deep=DEEP)

    @property
    def vllm_folders(self) -> pd.DataFrame:
        """One row per part of a model that one rank keeps in one folder of vLLM's torch_compile_cache."""
        from cachescope.analysis.vllm.folders import folders_frame

        return folders_frame(self.tables.vllm_factors, self.tables.entries, self._vllm_named)

    @property
    def vllm_changes(self) -> pd.DataFrame:
        """One row per factor in which a vLLM folder differs from the nearest earlier one."""
        from cachescope.analysis.vllm.changes import changes_frame

        return changes_frame(self._vllm_named)

    @property
    def vllm_fragments(self) -> pd.DataFrame:
        """One row per factor that makes vLLM folders differ: how many folders would remain without it."""
        from cachescope.analysis.vllm.folders import fragments_frame

        return fragments_frame(self._vllm_named)

    @property
    def vllm_ranks(self) -> pd.DataFrame:
        """One row per factor in which the folders of ranks with one vLLM configuration differ."""
        from cachescope.analysis.vllm.ranks import ranks_frame

        return ranks_frame(self.tables.vllm_factors, self._vllm_named)

    @property
    def vllm_factors(self) -> pd.DataFrame:
        """One row per cache_key_factors.json of vLLM: the factors of a folder's name."""
        return self.tables.vllm_factors.copy(deep=DEEP)

    @property
    def vllm_starts(self) -> pd.DataFrame:
        """One row per part of a model that vLLM compiled or loaded, according to its logs."""
        return self.tables.vllm_starts.copy(deep=DEEP)

    @property
    def links(self) -> pd.DataFrame:
        """One row per reference between files of a cache directory."""
        return self._links_frame.copy(deep=DEEP)

    @property
    def orphans(self) -> pd.DataFrame:
        """One row per file that nothing refers to, or that refers to something that is gone."""
        return self._orphans_frame.copy(deep=DEEP)

    @property
    def duplicates(self) -> pd.DataFrame:
        """One row per group of files of which one would be enough, judged by names, sizes and guards; no file is read."""
        from cachescope.analysis.directory.same_key import duplicates_frame

        return duplicates_frame(self.tables.entries)

    @property
    def removable(self) -> pd.DataFrame:
        """One row per file that can go without a later process noticing; cachescope itself removes nothing."""
        from cachescope.analysis.directory.unused import removable_frame

        return removable_frame(self.tables.entries, self._orphans_frame)

    @property
    def past_misses(self) -> pd.DataFrame:
        """One row per FX entry whose graph had been stored before: a miss that a directory shows without a log."""
        return self._past_misses_frame.copy(deep=DEEP)

    @property
    def evidence(self) -> pd.DataFrame:
        """One row per set of fields in which entries of one graph differ, and whether their code differs too."""
        from cachescope.analysis.what_if.evidence import evidence_frame

        return evidence_frame(self._past_misses_frame)

    @property
    def false_hits(self) -> pd.DataFrame:
        """One row per key that seems to stand for more than one thing: a warning with its evidence."""
        return self._false_hits_frame.copy(deep=DEEP)

    @property
    def devices(self) -> pd.DataFrame:
        """One row per device that any source names, with its datasheet."""
        return self._devices_frame.copy(deep=DEEP)

    @property
    def phases(self) -> pd.DataFrame:
        """Where compile time went, from the events of traces. These are read on first access."""
        return self._phases_read[0].copy(deep=DEEP)

    @property
    def phase_problems(self) -> pd.DataFrame:
        """One row per event or trace that could not be read for ``phases``; with the columns of ``problems``."""
        return self._phases_read[1].copy(deep=DEEP)

    @property
    def compiles(self) -> pd.DataFrame:
        """One row per compile and why it was made, from traces. These are read for it on first access."""
        return self._compiles_read[0].copy(deep=DEEP)

    @property
    def symbols(self) -> pd.DataFrame:
        """One row per size or number that became a symbol in a compile; read together with ``compiles``."""
        return self._compiles_read[1].copy(deep=DEEP)

    @property
    def recompiles(self) -> pd.DataFrame:
        """One row per guard whose failure caused recompiles of a function, the costliest first; read together with ``compiles``."""
        from cachescope.analysis.compiles.frames import recompiles
        from cachescope.frames.compile_rows import CompileRow, RecompileRow

        return frame_of(recompiles(rows_of(self._compiles_read[0], CompileRow)), RecompileRow)

    @property
    def compile_problems(self) -> pd.DataFrame:
        """One row per record or trace that could not be read for ``compiles``; with the columns of ``problems``."""
        return self._compiles_read[2].copy(deep=DEEP)

    @property
    def problems(self) -> pd.DataFrame:
        """One row per thing that could not be read."""
        return self.tables.problems.copy(deep=DEEP)

    @property
    def misses(self) -> pd.DataFrame:
        """One row per lookup that did not hit, with its verdict."""
        return self._misses_frame.copy(deep=DEEP)

    @property
    def causes(self) -> pd.DataFrame:
        """One row per distinct reason, the costliest first."""
        return self._causes_frame.copy(deep=DEEP)

    @property
    def rank_differences(self) -> pd.DataFrame:
        """One row per field in which some ranks of a job differ from the majority."""
        return self._rank_differences_frame.copy(deep=DEEP)

    # What the frames are made from.

    @cached_property
    def history(self) -> History:
        """What was stored when, by whom, and under which guards."""
        runs = rows_of(self.tables.runs, RunRow)
        return settled_history(self.lookup_rows, self.entry_rows, runs, self.tables.hash_details)

    @cached_property
    def lookup_rows(self) -> list[LookupRow]:
        """The lookups as they were read, predicted ones as if they had been made."""
        return rows_of(self._recorded, LookupRow)

    @cached_property
    def entry_rows(self) -> list[EntryRow]:
        """The entries."""
        return rows_of(self.tables.entries, EntryRow)

    @cached_property
    def of_vllm_alone(self) -> frozenset[int]:
        """The runs that made no lookup in torch's caches, and some of vLLM's own."""
        runs, is_vllm = self.tables.lookups["run"], self.tables.lookups["cache"] == VLLM
        return frozenset(runs[is_vllm].tolist()) - frozenset(runs[~is_vllm].tolist())

    @cached_property
    def asked_torch(self) -> list[int]:
        """The runs that made a lookup in torch's caches, in order."""
        return sorted(set(self.tables.lookups["run"].tolist()) - self.of_vllm_alone)

    @cached_property
    def _lookups(self) -> pd.DataFrame:
        from cachescope.answers.judged_frames import settled_lookups

        lookups = self._recorded
        # Traces record guard misses themselves, and then the history is not asked for.
        is_open = (lookups["outcome"] == "full_miss") & lookups["status_detailed"].isna()
        if not (is_open & (lookups["cache"] != VLLM)).any():
            return lookups
        return settled_lookups(lookups, self.history.inferred)

    @cached_property
    def _recorded(self) -> pd.DataFrame:
        return as_if_made(self.tables.lookups)

    @cached_property
    def _shown_lookups(self) -> pd.DataFrame:
        predicted = self.tables.lookups["outcome"]
        is_predicted = self.tables.lookups["prediction"].notna()
        if not is_predicted.any():
            return self._lookups
        return self._lookups.assign(outcome=self._lookups["outcome"].mask(is_predicted, predicted))

    @cached_property
    def _contexts(self) -> pd.DataFrame:
        from cachescope.analysis.contexts.of_runs import all_contexts

        tables = self.tables
        of_torch = tables.runs[~tables.runs["run"].isin(self.of_vllm_alone)]
        return all_contexts(tables.contexts, of_torch, self._lookups, tables.hash_details)

    @cached_property
    def _judged(self) -> tuple[list[Miss], list[CauseRow]]:
        return judged(self.history, self._choice(), self._vllm_misses)

    @cached_property
    def _miss_of(self) -> dict[int, Miss]:
        """The misses by their lookups."""
        return {miss.row.lookup: miss for miss in self._judged[0]}

    @cached_property
    def _misses_frame(self) -> pd.DataFrame:
        from cachescope.answers.judged_frames import misses_frame

        return misses_frame(self._judged[0])

    @cached_property
    def _causes_frame(self) -> pd.DataFrame:
        return frame_of(self._judged[1], CauseRow)

    @cached_property
    def _links_frame(self) -> pd.DataFrame:
        from cachescope.analysis.directory.links import links_frame

        tables = self.tables
        return links_frame(tables.entries, tables.autotune, tables.contexts, tables.hash_details)

    @cached_property
    def _orphans_frame(self) -> pd.DataFrame:
        from cachescope.analysis.directory.unused import orphans_frame

        return orphans_frame(self.tables.entries, self._links_frame)

    @cached_property
    def _devices_frame(self) -> pd.DataFrame:

        from cachescope.devices.frame import devices_frame

        tables = self.tables
        frames = (self._contexts, tables.runs, self._lookups, tables.entries, tables.autotune)
        return devices_frame(*frames, tables.hash_details)

    @cached_property
    def _vllm_misses(self) -> VllmMisses:
        from cachescope.frames.vllm import StartRow

        tables = self.tables
        return VllmMisses(rows_of(tables.vllm_starts, StartRow), self._factor_rows, self._factor_files)

    @cached_property
    def _factor_rows(self) -> list[FactorsRow]:
        from cachescope.frames.vllm import FactorsRow

        return rows_of(self.tables.vllm_factors, FactorsRow)

    @cached_property
    def _factor_files(self) -> list[EntryRow]:
        if not self._factor_rows:
            return []
        files = {row.entry for row in self._factor_rows}
        return [entry for entry in self.entry_rows if entry.entry in files]

    @cached_property
    def _vllm_named(self) -> list[Named]:

        from cachescope.analysis.vllm.factors import named_folders

        return named_folders(self._factor_rows, self._factor_files)

    @cached_property
    def generated_code(self) -> GeneratedCode:
        """Compares the generated code of two entries."""
        from cachescope.analysis.directory.equal_code import GeneratedCode
        from cachescope.readers.directory.file_contents import source_of

        return GeneratedCode(self.tables.entries, source_of)

    @cached_property
    def kernel_binaries(self) -> KernelBinaries:
        """Compares the compiled kernels of two entries."""
        from cachescope.analysis.directory.equal_code import KernelBinaries
        from cachescope.readers.directory.file_contents import content_hash

        return KernelBinaries(self.tables.entries, self._links_frame, content_hash)

    @cached_property
    def _past_misses_frame(self) -> pd.DataFrame:
        from cachescope.analysis.directory.past_misses import past_misses_frame

        code, binaries = self.generated_code, self.kernel_binaries
        return past_misses_frame(
            self.history.entries, self.history.keys, self.tables.hash_details, code, binaries
        )

    @cached_property
    def _false_hits_frame(self) -> pd.DataFrame:
        from cachescope.analysis.directory.false_hits import false_hits_frame
        from cachescope.readers.directory.file_contents import source_of

        tables = self.tables
        frames = (self._lookups, tables.entries, tables.runs, tables.contexts)
        return false_hits_frame(*frames, tables.hash_details, source_of)

    def _choice(self) -> Choice:

        from cachescope.analysis.named import baseline_choice

        return baseline_choice(self.tables, self._baseline)

    @cached_property
    def _phases_read(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """The phases, and what could not be read for them."""
        from cachescope.analysis.phases.frame import read_phases
        from cachescope.frames.phases import PhaseRow

        saved = self.tables.phases
        if saved is not None:
            return saved, frame_of([], ProblemRow)
        phases, problems = read_phases(rows_of(self.tables.runs, RunRow), self.tables.stamps)
        return frame_of(phases, PhaseRow), frame_of(problems, ProblemRow)

    @cached_property
    def _compiles_read(self) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
        """The compiles, their symbols, and what could not be read for them."""
        compiles, symbols = self.tables.compiles, self.tables.symbols
        if compiles is not None and symbols is not None:
            return compiles, symbols, frame_of([], ProblemRow)
        return self._read_compiles(self.tables.runs, self._lookups)

    def _read_compiles(
        self, runs: pd.DataFrame, lookups: pd.DataFrame
    ) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
        from cachescope.analysis.compiles.frames import read_compiles
        from cachescope.frames.compile_rows import CompileRow, SymbolRow

        read = read_compiles(rows_of(runs, RunRow), self.tables.stamps, rows_of(lookups, LookupRow))
        return (
            frame_of(read.compiles, CompileRow),
            frame_of(read.symbols, SymbolRow),
            frame_of(read.problems, ProblemRow),
        )

    def has_symbols_of(self, runs: Collection[int], most_bytes: int | None = None) -> bool:
        """Whether the symbols of runs were read, or may be: with `most_bytes`, from traces of no more than so many bytes together."""
        missing_runs = set(runs) - self._symbols_of_run.keys()
        if "_compiles_read" in self.__dict__ or self.tables.symbols is not None or most_bytes is None:
            return True
        sources_of_missing = self.tables.runs[self.tables.runs["run"].isin(missing_runs)]["sources"]
        stamps = self.tables.stamps
        return (
            sum(stamps.get(source, (0, 0))[0] for sources in sources_of_missing for source in sources)
            <= most_bytes
        )

    def symbols_of(self, run: int) -> pd.DataFrame:
        """The rows of ``symbols`` of one run, whose trace alone is read if those of all were not."""
        if "_compiles_read" in self.__dict__ or self.tables.symbols is not None:
            symbols = self._compiles_read[1]
            return symbols[symbols["run"] == run]
        if run not in self._symbols_of_run:
            own = self.tables.runs[self.tables.runs["run"] == run]
            _, self._symbols_of_run[run], _ = self._read_compiles(own, self._lookups.iloc[:0])
        return self._symbols_of_run[run]

    @cached_property
    def _symbols_of_run(self) -> dict[int, pd.DataFrame]:
        return {}

    @cached_property
    def _rank_differences_frame(self) -> pd.DataFrame:
        from cachescope.frames.ranks import RankDifference

        lookups = rows_of(self._lookups, LookupRow)
        runs = rows_of(self.tables.runs, RunRow)
        return frame_of(rank_differences(lookups, runs, self.tables.hash_details), RankDifference)
