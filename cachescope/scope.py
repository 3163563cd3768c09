"""The Scope: everything read, as frames, with the questions it answers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from cachescope.errors import NotFoundError
from cachescope.frames.answers import CAUSES
from cachescope.frames.recorded import HASH_DETAILS

if TYPE_CHECKING:
    from cachescope.analysis.baselines import Choice
    from cachescope.analysis.differences import FieldChange
    from cachescope.analysis.misses import Miss
    from cachescope.readers.assemble import Tables
    from cachescope.readers.sources import Progress
    from cachescope.report.explanation import Explanation
    from cachescope.report.facts import Facts


def read(
    *sources: str | Path,
    strict: bool = False,
    baseline: str | int = "auto",
    progress: Progress | None = None,
) -> Scope:
    """Read traces, text logs, cache directories, snapshots and saved scopes.

    Parameters
    ----------
    *sources : str or Path
        Any mix of files, directories (searched for everything cachescope knows) and glob patterns. What a
        file is, is told by looking inside.
    strict : bool, default False
        Raise `RecordError` at the first damaged record instead of noting it in ``problems``.
    baseline : {"auto", "nearest"}, run number or key
        What missed lookups are compared with; see `Scope.with_baseline`.
    progress : callable, optional
        Called with (path, done, total) before each source is read.

    Returns
    -------
    Scope

    Raises
    ------
    SourceError
        If a source is not there, may not be read, or is nothing cachescope knows.

    Notes
    -----
    Sources are opened for reading only; no pickle is ever executed and torch is not imported.

    Examples
    --------
    >>> import cachescope
    >>> scope = cachescope.read(cachescope.sample("config_flip"))
    >>> scope.lookups["outcome"].value_counts().to_dict()
    {'full_miss': 4, 'hit': 2}
    """
    from cachescope.readers.assemble import assemble
    from cachescope.readers.parquet_folder import is_saved_scope, read_saved_scope
    from cachescope.readers.reading import Reading
    from cachescope.readers.sources import read_sources

    paths = [str(source) for source in sources]
    if not paths:
        raise TypeError("read() needs at least one source")
    if len(paths) == 1 and is_saved_scope(paths[0]):
        return Scope(read_saved_scope(paths[0]), baseline)
    reading = Reading(strict=strict)
    read_sources(paths, reading, progress)
    return Scope(assemble(reading), baseline)


class Scope:
    """What was read, as frames. A Scope never changes; its frames are copies that are cheap to take.

    Attributes
    ----------
    runs, lookups, misses, causes, entries, contexts, devices, problems : DataFrame
        See ``cachescope.describe(name)``.
    tables : Tables
        The frames that come straight from the sources, and the store of hash details with its codes.
    """

    def __init__(self, tables: Tables, baseline: str | int = "auto") -> None:
        self.tables = tables
        self._baseline = baseline

    @property
    def runs(self) -> pd.DataFrame:
        """One row per process."""
        return self.tables.runs.copy(deep=False)

    @property
    def lookups(self) -> pd.DataFrame:
        """One row per lookup."""
        return self._lookups.copy(deep=False)

    @property
    def entries(self) -> pd.DataFrame:
        """One row per entry of the cache directories that were read."""
        return self.tables.entries.copy(deep=False)

    @property
    def contexts(self) -> pd.DataFrame:
        """One row per isolation context."""
        return self.tables.contexts.copy(deep=False)

    @property
    def guards(self) -> pd.DataFrame:
        """One row per candidate: the sound entries under each key, with the guards that must hold."""
        from cachescope.analysis.candidates import guards_frame

        return guards_frame(self.tables.entries)

    @property
    def kernels(self) -> pd.DataFrame:
        """One row per kernel of the FX entries, with the source nodes and ATen operators it stands for."""
        return self.tables.kernels.copy(deep=False)

    @property
    def autotune(self) -> pd.DataFrame:
        """One row per choice that max-autotune measured."""
        return self.tables.autotune.copy(deep=False)

    @property
    def links(self) -> pd.DataFrame:
        """One row per reference between files of a cache directory."""
        from cachescope.analysis.links import links_frame

        return links_frame(self.tables.entries)

    @property
    def orphans(self) -> pd.DataFrame:
        """One row per file whose other side is gone, or that nothing refers to."""
        from cachescope.analysis.links import orphans_frame

        return orphans_frame(self.tables.entries)

    @property
    def removable(self) -> pd.DataFrame:
        """One row per file that can go without a later process noticing; cachescope itself removes nothing."""
        from cachescope.analysis.removable import removable_frame

        return removable_frame(self.tables.entries)

    @property
    def past_misses(self) -> pd.DataFrame:
        """One row per FX entry whose graph had been stored before: misses read from a directory without a log."""
        from cachescope.analysis.history import entry_rows
        from cachescope.analysis.past_misses import past_misses_frame

        details = self.tables.hash_details
        return past_misses_frame(entry_rows(self.tables.entries, details), details)

    @property
    def devices(self) -> pd.DataFrame:
        """One row per device that an entry names."""
        from cachescope.devices.seen import devices_frame

        return devices_frame(self.tables.entries)

    @property
    def problems(self) -> pd.DataFrame:
        """One row per thing that could not be read."""
        return self.tables.problems.copy(deep=False)

    @property
    def misses(self) -> pd.DataFrame:
        """One row per lookup that did not hit, with its verdict."""
        return self._misses_frame.copy(deep=False)

    @property
    def causes(self) -> pd.DataFrame:
        """One row per distinct reason, the costliest first."""
        return self._causes_frame.copy(deep=False)

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
        scope = Scope(self.tables, baseline)
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

    # What the frames are made from.

    @cached_property
    def _lookups(self) -> pd.DataFrame:
        from cachescope.analysis.judgement import settled_lookups

        return settled_lookups(self.tables.lookups, self.tables.entries, self.tables.hash_details)

    @cached_property
    def _judged(self) -> tuple[list[Miss], list[dict[str, object]]]:
        from cachescope.analysis.judgement import judged

        tables = self.tables
        return judged(self._lookups, tables.entries, tables.runs, tables.hash_details, self._choice())

    @cached_property
    def _misses_frame(self) -> pd.DataFrame:
        from cachescope.analysis.judgement import misses_frame

        return misses_frame(self._judged[0])

    @cached_property
    def _causes_frame(self) -> pd.DataFrame:
        return CAUSES.build(self._judged[1])

    @cached_property
    def facts(self) -> Facts:
        """The frames as plain rows, which the reports are made of."""
        from cachescope.report.facts import Facts

        return Facts.of(self)

    def changes(self, lookup: int) -> tuple[FieldChange, ...]:
        """What changed between a missed lookup and its baseline; empty unless its verdict is ``key_changed``."""
        from cachescope.analysis.differences import field_changes

        miss = self._miss_of_lookup.get(lookup)
        if miss is None or not miss.changed or miss.baseline is None:
            return ()
        before, after = miss.baseline.detail_set, miss.row.detail_set
        assert before is not None and after is not None
        return tuple(field_changes(self.tables.hash_details, before, after))

    @cached_property
    def _miss_of_lookup(self) -> dict[int, Miss]:
        return {miss.row.lookup: miss for miss in self._judged[0]}

    def _choice(self) -> Choice:
        from cachescope.analysis.finding import baseline_choice

        return baseline_choice(self.tables, self._baseline)

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
