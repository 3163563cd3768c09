"""What was read: its frames, and the frames that take arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final, Self

from cachescope.analysis.differences import FieldChange, field_changes
from cachescope.analysis.preflight.words import outcome_as_if_made
from cachescope.analysis.rates import grouped, rates
from cachescope.analysis.verdicts.misses import Candidate
from cachescope.analysis.verdicts.since_baseline import ChangedSince, changed_since
from cachescope.answers.frames import Frames
from cachescope.components import Detail
from cachescope.errors import NotFoundError, SourceError
from cachescope.frames.answer_rows import RateRow
from cachescope.frames.recorded_rows import LookupRow
from cachescope.keys import IsolationSchema
from cachescope.terms import IMC, VLLM

if TYPE_CHECKING:
    import pandas as pd

    from cachescope.analysis.contexts.caching_files import Call
    from cachescope.analysis.what_if.frames import ReplayInput
    from cachescope.answers.facts import Facts


# Each takes a replay.
_CAUSES: Final = 20


class Read(Frames):
    """What was read. It never changes, and every answer is computed from it."""

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
        from cachescope.answers.reading import tables_of

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
        from cachescope.columns import frame_of

        by = [by] if isinstance(by, str) else by
        lookups, facts = self.settled.frame, self.facts
        if "rank" in by:
            lookups = lookups.merge(self.tables.runs.frame[["run", "rank"]], on="run", how="left")
        if unknown := [name for name in by if name not in lookups.columns]:
            raise NotFoundError(
                f"no column {unknown[0]!r} in lookups; there are {', '.join(lookups.columns)}"
            )

        def group_of(row: LookupRow) -> tuple[object, ...]:
            own = {"rank": facts.runs[row.run].rank, "outcome": outcome_as_if_made(row)}
            return tuple(own[name] if name in own else getattr(row, name) for name in by)

        rows_of_group = grouped(facts.lookups.values(), group_of) if by else {(): [*facts.lookups.values()]}
        frame = frame_of((rates(rows) for rows in rows_of_group.values()), RateRow)
        # The values as the frame has them: times are no numbers there.
        for at, name in enumerate(by):
            first = [rows[0].lookup for rows in rows_of_group.values()]
            frame.insert(at, name, lookups[name].take(first).reset_index(drop=True))
        return frame

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
        from cachescope.analysis.named import detail_set_of
        from cachescope.columns import frame_of

        detail_set = detail_set_of(self.tables, cache_key, lookup)
        return frame_of(self.tables.hash_details.details(detail_set), Detail)

    def locks(self) -> pd.DataFrame:
        """One row per lock file: whether a process holds it now. Each lock is tried, and released at once."""
        from cachescope.readers.directory.lock_state import locks_frame

        return locks_frame(self.tables.entries.frame)

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

        return context_groups(self._contexts, schema)

    def context_pairs(self) -> pd.DataFrame:
        """The smallest change of the schema that makes two contexts equal; see ``describe("context_pairs")``."""
        from cachescope.analysis.contexts import differences

        return differences.context_pairs(self._contexts)

    def context_difference(self, before: int, after: int) -> pd.DataFrame:
        """The fields that differ between two contexts; see ``describe("context_difference")``.

        Raises
        ------
        NotFoundError
            If there is no such context.
        """
        from cachescope.analysis.contexts import differences

        return differences.context_difference(self._contexts, before, after)

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
        from cachescope.analysis.what_if.sensitivity import sensitivity_frame

        changed = [fields for fields in self.explained.frame["fields"].head(_CAUSES) if len(fields) > 1]
        replayed = self.replayed
        return sensitivity_frame(replayed.replay, replayed.times, self.evidence, largest, changed)

    def cause_savings(self, most: int = _CAUSES) -> pd.DataFrame:
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
        from cachescope.analysis.what_if.causes import cause_savings_frame

        return cause_savings_frame(self.replayed, self.explained.frame, self.missed.frame, most)

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
        from cachescope.readers.directory.caching_package import imc_keys

        entries = self.tables.entries.frame
        dumps = entries[(entries["cache"] == IMC) & (entries["status"] == "ok")]["path"]
        listed = calls if calls is not None else [key for path in dumps for key in imc_keys(path)]
        return caching_files(entries, isolation_key, listed)

    def changes(self, lookup: int) -> tuple[FieldChange, ...]:
        """What changed between a missed lookup and its baseline; empty unless its verdict is ``key_changed``."""
        compared = self._compared(lookup)
        if compared is None:
            return self._vllm_misses.changes.get(lookup, ())
        miss = self._miss_of.get(lookup)
        assert miss is not None
        other = miss.baseline.run if isinstance(miss.baseline, LookupRow) else None
        runs = self.facts.runs
        sides = (None if other is None else runs[other]), runs[miss.row.run]
        return tuple(field_changes(self.tables.hash_details, *compared, sides))

    def vllm_changes_between(self, before: str, after: str) -> tuple[FieldChange, ...] | None:
        """In which factors two folders of vLLM differ; None if those of one are not known."""
        from cachescope.analysis.vllm.changes import field_changes_of

        beside = self._vllm_misses.beside(after, before, self._vllm_misses)
        return None if beside is None else field_changes_of(beside)

    def changed_details(self, lookup: int) -> list[tuple[Detail | None, Detail | None]]:
        """Like `changes`: each differing field as it is in the baseline and in the missed lookup, None where it is not."""
        compared = self._compared(lookup)
        if compared is None:
            return []
        details, (before, after) = self.tables.hash_details, compared
        fields = details.changed_fields(before, after)
        return [(details.detail(before, field), details.detail(after, field)) for field in fields]

    def _compared(self, lookup: int) -> tuple[int, int] | None:
        """The sets of details of the baseline and of the lookup; None unless its verdict is ``key_changed``, and for vLLM's own."""
        miss = self._miss_of.get(lookup)
        if miss is None or not miss.why.changed or miss.baseline is None or miss.row.cache == VLLM:
            return None
        before, after = miss.baseline.detail_set, miss.row.detail_set
        assert before is not None and after is not None
        return before, after

    def changed_since(self, baseline: Read) -> list[ChangedSince]:
        """What changed for first lookups whose graph another one had compiled under other keys only."""
        from cachescope.analysis.verdicts.vllm_since import vllm_changed_since

        keys = (row.cache_key for row in self.settled.rows if row.cache_key is not None)
        misses = self._judged[0]
        before: list[Candidate] = [*baseline.lookup_rows, *baseline.tables.entries.rows]
        details = self.tables.hash_details, baseline.tables.hash_details
        of_torch = changed_since(misses, keys, details[0], before, details[1])
        return of_torch + vllm_changed_since(misses, self._vllm_misses, baseline._vllm_misses)

    @cached_property
    def replayed(self) -> ReplayInput:
        """What every replay starts from: what was stored when, and how long it took."""
        from cachescope.analysis.what_if.frames import ReplayInput

        return ReplayInput.of(self.history, self.facts.lookups.values(), self.tables.hash_details)

    @cached_property
    def facts(self) -> Facts:
        """The frames as plain rows, from which answers are computed."""
        from cachescope.answers.facts import Facts

        return Facts(self)
