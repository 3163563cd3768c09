"""The Scope: everything read, as frames, with the questions it answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from cachescope.errors import NotFoundError
from cachescope.frames.recorded import HASH_DETAILS
from cachescope.scope.frames import ScopeFrames
from cachescope.scope.shown import Shown

if TYPE_CHECKING:
    from cachescope.analysis.contexts.caching_files import Call
    from cachescope.analysis.differences import FieldChange
    from cachescope.analysis.misses import Miss
    from cachescope.analysis.since_baseline import ChangedSince
    from cachescope.keys import IsolationSchema
    from cachescope.keys.key_schema import KeySchema
    from cachescope.report.check import Check
    from cachescope.report.explanation import Explanation
    from cachescope.report.facts import Facts
    from cachescope.report.one_entry import OneEntry
    from cachescope.report.what_if import WhatIf


class Scope(ScopeFrames, Shown):
    """What was read, as frames. A Scope never changes; its frames are copies that are cheap to take.

    Attributes
    ----------
    runs, lookups, misses, causes, entries, contexts, devices, problems : DataFrame
        See ``cachescope.describe(name)``.
    tables : Tables
        The frames that come straight from the sources, and the store of hash details with its codes.
    """

    def with_baseline(self, baseline: str | int) -> Scope:
        """The same scope, its misses compared with something else.

        Parameters
        ----------
        baseline : {"auto", "nearest"}, run number or key
            ``auto`` prefers the same graph, then the same compile id in the run before, then the fewest
            changed fields, then the latest. ``nearest`` takes the fewest changed fields, whatever the graph.
            A run number compares with that run only, a key with that key only.

        Raises
        ------
        NotFoundError
            If there is no such run or key.
        """
        scope = Scope(self.tables, baseline, self.sources, self._index)
        scope._choice()
        return scope

    def hit_rates(self, by: Sequence[str] = ()) -> pd.DataFrame:
        """Hit rates by count and by compile time, for groups of lookups; see ``describe("hit_rates")``.

        Parameters
        ----------
        by : sequence of str
            Columns of ``lookups``, such as ``["run", "cache"]``, or ``rank``.
        """
        from cachescope.analysis.rates import hit_rates

        lookups = self._lookups
        if "rank" in by:
            lookups = lookups.merge(self.tables.runs[["run", "rank"]], on="run", how="left")
        return hit_rates(lookups, by)

    def hash_details(self, cache_key: str | None = None, lookup: int | None = None) -> pd.DataFrame:
        """The hash details of one key: field, detail_hash, value_text, in torch's order.

        Parameters
        ----------
        cache_key : str, optional
            A key, or enough of its beginning.
        lookup : int, optional
            A lookup, instead of a key.

        Raises
        ------
        NotFoundError
            If there is no such key or lookup, or no source recorded its details.
        """
        from cachescope.analysis.finding import detail_set_of

        detail_set = detail_set_of(self.tables, cache_key, lookup)
        rows = self.tables.hash_details.details(detail_set)
        return HASH_DETAILS.build(
            {"field": d.field, "detail_hash": d.detail_hash, "value_text": d.value_text} for d in rows
        )

    def explain(self, which: int | str | None = None, baseline: str | int | None = None) -> Explanation:
        """Why one lookup missed.

        Parameters
        ----------
        which : int or str, optional
            A lookup, or a key (or enough of its beginning: its last miss is taken). Without it, the root
            miss that cost the most.
        baseline : str or int, optional
            Compare with something else than the scope does; see `with_baseline`.

        Returns
        -------
        Explanation
            With a text and an HTML repr, and ``.frame``: one row per changed field.

        Raises
        ------
        NotFoundError
            If there is no such lookup or key.
        """
        from cachescope.report.explanation import explanation

        scope = self if baseline is None else self.with_baseline(baseline)
        return explanation(scope, scope._lookup_of(which))

    def entry(self, which: int | str) -> OneEntry:
        """One entry and everything that is known about it.

        Parameters
        ----------
        which : int or str
            The number of an entry; or a key of any kind, the name of its file or folder, or enough of its beginning.

        Returns
        -------
        OneEntry
            With a text and an HTML repr, ``.frame``: the files under its key, and ``.source_code``: read from the
            file when it is asked for.

        Raises
        ------
        NotFoundError
            If nothing is called so, or several things are.

        Examples
        --------
        >>> import cachescope
        >>> scope = cachescope.read(cachescope.sample("entry_truncated"))
        >>> scope.entry("ft4g52pb").frame["status"].tolist()
        ['ok', 'damaged']
        """
        from cachescope.report.one_entry import one_entry

        return one_entry(self, which)

    def locks(self) -> pd.DataFrame:
        """One row per lock file: whether a process holds it now. Each is tried, and given back at once."""
        from cachescope.readers.lock_state import locks_frame

        return locks_frame(self.tables.entries)

    def check(
        self,
        min_hit_rate: float | None = None,
        max_time_lost_ns: int | None = None,
        baseline: Scope | None = None,
    ) -> Check:
        """Hold all lookups of all runs that were read against bars, for CI.

        Parameters
        ----------
        min_hit_rate : float, optional
            The least hit rate by count, from 0 to 1. The first lookups of a cold start are misses: read the
            warm run alone where only that one is meant.
        max_time_lost_ns : int, optional
            The most compile time lost to misses, in nanoseconds.
        baseline : Scope, optional
            No cause may be new against the causes of this scope, by verdict and fields.

        Returns
        -------
        Check
            ``.passed``, ``.frame`` (one row per bar), and a text and an HTML repr. Where nothing was looked
            up no bar is met, and an outcome that was not seen never helps to meet one.

        Raises
        ------
        ValueError
            If no bar is given, or one that nothing could meet or miss.

        Examples
        --------
        >>> import cachescope
        >>> scope = cachescope.read(cachescope.sample("config_flip"))
        >>> scope.check(min_hit_rate=0.3, max_time_lost_ns=10 * 10**9).frame[["bar", "passed"]].values.tolist()
        [['min_hit_rate', True], ['max_time_lost', False]]
        """
        from cachescope.report.check import check

        return check(self, min_hit_rate, max_time_lost_ns, baseline)

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
        from cachescope.analysis.contexts.differences import context_pairs

        return context_pairs(self._contexts)

    def context_difference(self, before: int, after: int) -> pd.DataFrame:
        """The fields that differ between two contexts; see ``describe("context_difference")``.

        Raises
        ------
        NotFoundError
            If there is no such context.
        """
        from cachescope.analysis.contexts.differences import context_difference

        return context_difference(self._contexts, before, after)

    def what_if(
        self,
        schema: KeySchema | IsolationSchema | Mapping[str, Any] | None = None,
        *,
        without: str | Iterable[str] = (),
    ) -> WhatIf:
        """Replay all lookups as if some fields did not count in the keys.

        Parameters
        ----------
        schema : KeySchema, IsolationSchema or mapping, optional
            What counts; everything by default. torch's own schema dict is taken as well.
        without : str or iterable of str
            Fields that do not count: names, patterns (``inductor_config[aot_inductor.*]``), parts of inputs
            (``example_inputs[*].device``), or context forms (``inductor_configs``).

        Returns
        -------
        WhatIf
            With a text and an HTML repr, ``.frame`` (one row per lookup, before and after), ``.rates``,
            ``.by_cause``, ``.by_run``, ``.differences`` and ``.warnings``.

        Raises
        ------
        SchemaError
            If the schema is malformed or has an unknown form.
        NotFoundError
            If a field or pattern matches nothing.

        Notes
        -----
        By what-if keys, cachescope's own: torch's keys cannot be rebuilt from hash details. A key whose
        details no source has stays what it is, and its misses become unknown.

        Examples
        --------
        >>> import cachescope
        >>> scope = cachescope.read(cachescope.sample("config_flip"))
        >>> scope.what_if(without="inductor_config[epilogue_fusion]").rates["hits"].tolist()
        [2, 4]
        """
        from cachescope.keys.key_schema import key_schema
        from cachescope.report.what_if import what_if

        return what_if(self, self._ground, key_schema(schema, without))

    def sensitivity(self, largest: int = 2) -> pd.DataFrame:
        """Which fields would help: for each field and small set, the misses that hit without exactly these.

        Parameters
        ----------
        largest : int, default 2
            Sets of up to this many fields are tried wherever keys of one graph differ in them; of larger sets
            only the smallest that separates a key from the others of its graph.

        Returns
        -------
        DataFrame
            See ``describe("sensitivity")``; the most compile time first. What changes nothing is not listed.

        Examples
        --------
        >>> import cachescope
        >>> scope = cachescope.read(cachescope.sample("config_flip"))
        >>> scope.sensitivity()[["fields", "misses_alone"]].values.tolist()
        [[('inductor_config[epilogue_fusion]',), 2]]
        """
        from cachescope.analysis.what_if.sensitivity import sensitivity_frame

        return sensitivity_frame(self._ground.replay, self._ground.times, self.evidence, largest)

    def caching_files(self, isolation_key: str, calls: Iterable[Call] | None = None) -> pd.DataFrame:
        """Which files of torch 2.10's caching package would be found; see ``describe("caching_files")``.

        Parameters
        ----------
        isolation_key : str
            The key of a context under the schema that the calls would use: `isolation_key` makes it.
        calls : iterable of (callee, params), optional
            ``params`` is ``(args, kwargs)``, or what the custom encoder makes of them. Without it, the calls whose
            keys a deterministic cache dumped into this directory (``imc.save``).
        """
        from cachescope.analysis.contexts.caching_files import caching_files
        from cachescope.readers.caching_package import imc_keys
        from cachescope.terms import IMC

        entries = self.tables.entries
        dumps = entries[(entries["cache"] == IMC) & (entries["status"] == "ok")]["path"]
        listed = calls if calls is not None else [key for path in dumps for key in imc_keys(path)]
        return caching_files(entries, isolation_key, listed)

    def save(self, folder: str | Path) -> None:
        """Write everything into a folder of Parquet files; `cachescope.read` takes it back.

        Raises
        ------
        FileExistsError
            If the folder is there and is not a saved scope.
        """
        from cachescope.report.parquet_folder import write_scope

        write_scope(self.tables, Path(folder))

    def __repr__(self) -> str:
        from cachescope.report.text import summary_text

        return summary_text(self)

    def _repr_html_(self) -> str:
        from cachescope.report.html import summary_html

        return summary_html(self)

    @cached_property
    def facts(self) -> Facts:
        """The frames as plain rows, which the reports are made of."""
        from cachescope.report.facts import Facts

        return Facts(self)

    def changes(self, lookup: int) -> tuple[FieldChange, ...]:
        """What changed between a missed lookup and its baseline; empty unless its verdict is ``key_changed``."""
        from cachescope.analysis.differences import field_changes

        miss = self._miss_of_lookup.get(lookup)
        if miss is None or not miss.changed or miss.baseline is None:
            return ()
        before, after = miss.baseline.detail_set, miss.row.detail_set
        assert before is not None and after is not None
        return tuple(field_changes(self.tables.hash_details, before, after))

    def changed_since(self, baseline: Scope) -> list[ChangedSince]:
        """What changed for first lookups whose graph another scope had compiled under other keys only."""
        from cachescope.analysis.since_baseline import changed_since

        keys = self._lookups["cache_key"].dropna()
        return changed_since(self._judged[0], keys, self.tables.hash_details, baseline.tables)

    @cached_property
    def _miss_of_lookup(self) -> dict[int, Miss]:
        return {miss.row.lookup: miss for miss in self._judged[0]}

    def _lookup_of(self, which: int | str | None) -> int:
        from cachescope.analysis.finding import lookup_named

        return self._costliest_root() if which is None else lookup_named(self.tables, which)

    def _costliest_root(self) -> int:
        misses = self._misses_frame
        if misses.empty:
            raise NotFoundError("nothing missed")
        order = [c["cause"] for c in self._judged[1] if c["verdict"] != "first_lookup"]
        first = order[0] if order else 0
        roots = misses[(misses["cause"] == first) & misses["root"]]
        return int(roots["lookup"].iloc[0])
