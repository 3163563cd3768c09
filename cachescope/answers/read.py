"""What is read from sources: its frames, and the frames that take arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Self

from cachescope.analysis.directory.same_key import candidates
from cachescope.analysis.resolve_name import detail_set_of
from cachescope.analysis.vllm.factors import all_changes
from cachescope.analysis.vllm.folders import fragments, ranks_apart
from cachescope.answers.chosen import Chosen
from cachescope.answers.costs import trend_rows
from cachescope.answers.recording import MOST_CAUSES, Recording
from cachescope.answers.starts import differing_ranks
from cachescope.components import Detail
from cachescope.errors import SourceError
from cachescope.frames.answer_rows import TrendRow
from cachescope.frames.compile_rows import RecompileRow, RecordedText
from cachescope.frames.directory_rows import Candidate
from cachescope.frames.linked_rows import LockRow
from cachescope.frames.recorded_rows import ProblemRow
from cachescope.frames.vllm import FolderRow, FragmentRow, RankRow, VllmChange
from cachescope.keys import IsolationSchema
from cachescope.readers.assemble import Tables, assemble
from cachescope.readers.kinds import is_saved_scope
from cachescope.readers.logs.second_pass import recorded_texts
from cachescope.readers.reading import Reading
from cachescope.readers.sources import Progress, read_sources
from cachescope.table import Table, copied
from cachescope.terms import IMC

if TYPE_CHECKING:
    from concurrent.futures import Executor

    import pandas as pd

    from cachescope.analysis.contexts.caching_files import Call
    from cachescope.readers.index.kept_logs import Index


def tables_of(
    sources: Sequence[str],
    *,
    strict: bool = False,
    progress: Progress | None = None,
    executor: Executor | None = None,
    index: bool = True,
) -> Tables:
    """Read sources; see `cachescope.read`."""
    if len(sources) == 1 and is_saved_scope(sources[0]):
        from cachescope.readers.parquet_folder import read_saved_scope

        return read_saved_scope(sources[0])
    reading = Reading(strict=strict)
    read_sources(list(sources), reading, progress, executor=executor, index=_index if index else None)
    return assemble(reading)


def _index() -> Index | None:
    from cachescope.readers.index.kept_logs import index_of_user

    return index_of_user()


class Read(Recording):
    """What was read, and its frames: each is made when it is first asked for, and is a cheap copy."""

    # fmt: off
    runs = copied(lambda read: read.tables.runs, "One row per process.")
    lookups = copied(lambda read: read.shown, "One row per lookup; for a pre-flight, the lookups that a real run would make.")
    entries = copied(lambda read: read.tables.entries, "One row per entry of the cache directories that were read.")
    contexts = copied(lambda read: read.all_contexts, "One row per isolation context. The snapshots of no run come first, then each run, as far as its own snapshot or its hash details show.")
    kernels = copied(lambda read: read.tables.kernels, "One row per kernel of the FX entries, with its source nodes and ATen operators.")
    guards = copied(lambda read: Table(Candidate, candidates(read.tables.entries.rows)), "One row per candidate, the sound entries under each key, with the guards that must hold.")
    autotune = copied(lambda read: read.tables.autotune, "One row per choice that max-autotune measured.")
    vllm_factors = copied(lambda read: read.tables.vllm_factors, "One row per cache_key_factors.json of vLLM: the factors of a folder's name.")
    vllm_starts = copied(lambda read: read.tables.vllm_starts, "One row per part of a model that vLLM compiled or loaded, according to its logs.")
    vllm_folders = copied(lambda read: Table(FolderRow, read.folders_of_vllm), "One row per part of a model that one rank keeps in one folder of vLLM's torch_compile_cache.")
    vllm_changes = copied(lambda read: Table(VllmChange, all_changes(read.named_of_vllm)), "One row per factor in which a vLLM folder differs from the nearest earlier one.")
    vllm_fragments = copied(lambda read: Table(FragmentRow, fragments(read.named_of_vllm)), "One row per factor that makes vLLM folders differ: how many folders would remain without it.")
    vllm_ranks = copied(lambda read: Table(RankRow, [*ranks_apart(read.tables.vllm_factors.rows, read.named_of_vllm)]), "One row per factor in which the folders of ranks with one vLLM configuration differ.")
    links = copied(lambda read: read.linked, "One row per reference between files of a cache directory.")
    orphans = copied(lambda read: read.orphaned, "One row per file that nothing refers to, or that refers to something that is gone.")
    duplicates = copied(lambda read: read.duplicated, "One row per group of files of which one would be enough, judged by names, sizes and guards; no file is read.")
    removable = copied(lambda read: read.removed_unnoticed, "One row per file that can go without a later process noticing; cachescope itself removes nothing.")
    past_misses = copied(lambda read: read.missed_before, "One row per FX entry after the first of its graph: a miss that a directory shows without a log.")
    evidence = copied(lambda read: read.field_evidence, "One row per set of fields in which entries of one graph differ, and whether their code differs too.")
    false_hits = copied(lambda read: read.suspected, "One row per key that seems to stand for more than one thing: a warning with its evidence.")
    devices = copied(lambda read: read.named_devices, "One row per device that any source names, with its datasheet.")
    phases = copied(lambda read: read.phases_read[0], "Where compile time went, from the events of traces. These are read on first access.")
    compiles = copied(lambda read: read.compiles_read[0], "One row per compile and why it was made, from traces, which are read for it on first access, or from text logs.")
    symbols = copied(lambda read: read.compiles_read[1], "One row per size or number that became a symbol in a compile; read together with ``compiles``.")
    recompiles = copied(lambda read: Table(RecompileRow, read.recompiles_of(read.compiles_read[0].rows)), "One row per guard whose failure caused recompiles of a function, the costliest first; read together with ``compiles``.")
    problems = copied(lambda read: read.tables.problems, "One row per thing that could not be read.")
    misses = copied(lambda read: read.missed, "One row per lookup that did not hit, with its verdict.")
    causes = copied(lambda read: read.explained, "One row per distinct reason, the costliest first.")
    trend = copied(lambda read: Table(TrendRow, trend_rows(read)), "One row per start, in the order of time: a process, or all ranks of a job, with its commit, its hit rate and what was avoidable.")
    rank_differences = copied(differing_ranks, "One row per field in which some ranks of a job differ from the majority.")
    phase_problems = copied(lambda read: Table(ProblemRow, read.phases_read[1]), "One row per event or trace that could not be read for ``phases``; with the columns of ``problems``.")
    compile_problems = copied(lambda read: Table(ProblemRow, read.compiles_read[2]), "One row per record or trace that could not be read for ``compiles``; with the columns of ``problems``.")
    # fmt: on

    def __reduce__(self) -> tuple[type[Self], tuple[object, ...]]:
        # To another process goes what was read; what follows from it is computed there, if asked for.
        return type(self), (self.tables, self._baseline, self.sources, self._index)

    def read_again(self) -> Self:
        """Read its sources again. A large log that did not change is not read again.

        Raises
        ------
        SourceError
            If a source is gone, or there is none, because it was recorded in this process.
        """
        if not self.sources:
            raise SourceError("this process", "there is no file to read again: it was recorded as it ran")
        tables = tables_of(self.sources, index=self._index)
        return type(self)(tables, self._baseline, self.sources, self._index)

    def with_baseline(self, baseline: str | int) -> Self:
        """A copy that compares misses with another baseline.

        Parameters
        ----------
        baseline : {"auto", "nearest"}, run number or key
            ``auto`` prefers the same graph, then the same compile id in the previous run, then the fewest
            changed fields, then the latest. ``nearest`` takes the fewest changed fields, whatever the graph.
            A run number compares with that run only, a key with that key only.

        Raises
        ------
        NotFoundError
            If there is no such run or key.
        """
        other = type(self)(self.tables, baseline, self.sources, self._index)
        other._choice()
        return other

    def hit_rates(self, by: str | Sequence[str] = ()) -> pd.DataFrame:
        """Hit rates by count and by compile time, for groups of lookups; see ``describe("hit_rates")``.

        Parameters
        ----------
        by : str or sequence of str
            Columns of ``lookups``, such as ``["run", "cache"]``, or ``rank``.
        """
        return Chosen(self).hit_rates([by] if isinstance(by, str) else by)

    def hash_details(self, cache_key: str | None = None, lookup: int | None = None) -> pd.DataFrame:
        """The hash details of one key: field, detail_hash, value_text, in torch's order.

        Parameters
        ----------
        cache_key : str, optional
            A key, or its beginning.
        lookup : int, optional
            A lookup, instead of a key.

        Raises
        ------
        NotFoundError
            If there is no such key or lookup, or no source recorded its details.
        """
        detail_set = detail_set_of(self.tables, cache_key, lookup)
        return _frame(self.tables.hash_details.details(detail_set), Detail)

    def recorded(self, compile_id: str) -> pd.DataFrame:
        """What traces have of the compiles with an id in full: graphs, guards, generated code; see ``describe("recorded")``.

        Parameters
        ----------
        compile_id : str
            Of a compile, as ``0/0``.

        Raises
        ------
        NotFoundError
            If no trace that was read has a text of such a compile.

        Notes
        -----
        The traces are read again for it. A compile of which a cache had everything has no generated code.

        Examples
        --------
        >>> import cachescope
        >>> texts = cachescope.read(cachescope.sample("config_flip")).recorded("0/0")
        >>> texts.loc[texts["name"] == "dynamo_output_graph", "run"].tolist()
        [0, 1, 2]
        """
        texts, _ = recorded_texts(self.tables.runs.rows, self.tables.stamps, compile_id)
        return _frame(texts, RecordedText)

    def locks(self) -> pd.DataFrame:
        """One row per lock file: whether a process holds it now. Each lock is tried, and released at once."""
        from cachescope.readers.directory.file_contents import locks_of

        return _frame(locks_of(self.tables.entries.rows), LockRow)

    def context_groups(self, schema: IsolationSchema | Mapping[str, object] | None = None) -> pd.DataFrame:
        """Which contexts are equal under a schema; see ``describe("context_groups")``.

        Parameters
        ----------
        schema : IsolationSchema or mapping, optional
            Without it: all forms, then every smallest change of the schema that joins two of the contexts.

        Raises
        ------
        SchemaError
            If the schema is malformed.

        Examples
        --------
        >>> import cachescope
        >>> scope = cachescope.read(cachescope.sample("config_flip"))
        >>> scope.context_groups(cachescope.IsolationSchema({"inductor_configs": True}, False))["contexts"].tolist()
        [(0, 2), (1,)]
        """
        from cachescope.analysis.contexts.keys import context_groups
        from cachescope.frames.sharing_rows import GroupRow

        return _frame(context_groups(self.known_contexts, schema), GroupRow)

    def context_pairs(self) -> pd.DataFrame:
        """The smallest change of the schema that makes two contexts equal; see ``describe("context_pairs")``."""
        from cachescope.analysis.contexts.differences import context_pairs
        from cachescope.frames.sharing_rows import PairRow

        return _frame(context_pairs(self.known_contexts), PairRow)

    def context_difference(self, before: int, after: int) -> pd.DataFrame:
        """The fields that differ between two contexts; see ``describe("context_difference")``.

        Raises
        ------
        NotFoundError
            If there is no such context.
        """
        from cachescope.analysis.contexts.differences import context_difference
        from cachescope.frames.sharing_rows import FormDifference

        return _frame(context_difference(self.all_contexts.rows, before, after), FormDifference)

    def sensitivity(self, largest: int = 2) -> pd.DataFrame:
        """Which fields would help: for each field and small set, the misses that hit without exactly these.

        Parameters
        ----------
        largest : int, default 2
            Sets of up to this many fields are tried if keys of one graph differ in them. Of larger sets, only the
            smallest that separates a key from the others of its graph is tried. The changed fields of the first
            causes are tried too.

        Returns
        -------
        DataFrame
            See ``describe("sensitivity")``; ordered by safety (fields of the program last), then by compile time, most first. Fields that
            change nothing are not listed.

        Examples
        --------
        >>> import cachescope
        >>> scope = cachescope.read(cachescope.sample("config_flip"))
        >>> scope.sensitivity()[["fields", "misses_alone"]].values.tolist()
        [[('inductor_config[epilogue_fusion]',), 2]]
        """
        from cachescope.frames.replay_rows import SensitivityRow

        return _frame(self.sensitivity_rows(largest), SensitivityRow)

    def cause_savings(self, most: int = MOST_CAUSES) -> pd.DataFrame:
        """What leaving out the changed fields of each cause would save, and why some of its misses would remain.

        Parameters
        ----------
        most : int, default 20
            Number of causes, in the order of ``causes``. Each takes a replay.

        Returns
        -------
        DataFrame
            See ``describe("cause_savings")``.

        Examples
        --------
        >>> import cachescope
        >>> scope = cachescope.read(cachescope.sample("dynamic_guards"))
        >>> scope.cause_savings()["why"].tolist()[-1]
        'the key was found and no guards held, so no field of the key decides it'
        """
        from cachescope.frames.replay_rows import CauseSaving

        return _frame(self.saving_rows(most), CauseSaving)

    def caching_files(self, isolation_key: str, calls: Iterable[Call] | None = None) -> pd.DataFrame:
        """Which files of torch 2.10's caching package would be found; see ``describe("caching_files")``.

        Parameters
        ----------
        isolation_key : str
            The key of a context under the schema that the calls would use; see `isolation_key`.
        calls : iterable of (callee, params), optional
            ``params`` is ``(args, kwargs)``, or what the custom encoder makes of them. Without it, the calls whose
            keys a deterministic cache dumped into this directory (``imc.save``).
        """
        from cachescope.analysis.contexts.caching_files import caching_files
        from cachescope.frames.sharing_rows import CachingFile
        from cachescope.readers.directory.caching_package import imc_keys

        entries = self.tables.entries.rows
        dumps = (row.path for row in entries if row.cache == IMC and row.status == "ok")
        listed = calls if calls is not None else [key for path in dumps for key in imc_keys(path)]
        return _frame(caching_files(entries, isolation_key, listed), CachingFile)


def _frame(rows: Iterable[object], kind: type) -> pd.DataFrame:
    from cachescope.columns import frame_of

    return frame_of(rows, kind)
