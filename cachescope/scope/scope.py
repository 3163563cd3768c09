"""The Scope: everything that was read, as frames, and the questions that it answers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cachescope.answers.read import Read, tables_of
from cachescope.errors import CachescopeError
from cachescope.frames.recorded_rows import ProblemRow
from cachescope.table import Table

if TYPE_CHECKING:
    import pandas as pd

    from cachescope.keys import IsolationSchema
    from cachescope.keys.key_schema import KeySchema
    from cachescope.report.check_forms import Check
    from cachescope.report.devices import DeviceCard
    from cachescope.report.entries import OneEntry
    from cachescope.report.explanation import Explanation
    from cachescope.report.what_if_forms import WhatIf
    from cachescope.views.compare import Compare
    from cachescope.views.explorer import Explorer
    from cachescope.views.what_if import WhatIfView


class Scope(Read):
    """What was read, as frames. A Scope never changes; its frames are cheap copies.

    Attributes
    ----------
    runs, lookups, misses, causes, entries, contexts, devices, problems : DataFrame
        See ``cachescope.describe(name)``.
    tables : Tables
        The frames that come straight from the sources, and the store of hash details with its codes.
    """

    def explain(self, which: int | str | None = None, baseline: str | int | None = None) -> Explanation:
        """Why one lookup missed.

        Parameters
        ----------
        which : int or str, optional
            The number of a lookup, or a key (its beginning is enough), whose last miss is explained. By default the costliest
            root miss of the costliest cause; a cold start only if nothing else missed.
        baseline : str or int, optional
            Use another baseline than the scope's; see `with_baseline`.

        Returns
        -------
        Explanation
            With a text and an HTML repr, and ``.frame``: one row per changed field.

        Raises
        ------
        NotFoundError
            If there is no such lookup or key.
        """
        from cachescope.report.explanation import Explanation

        return Explanation.of(self if baseline is None else self.with_baseline(baseline), which)

    def entry(self, which: int | str) -> OneEntry:
        """One entry and everything that is known about it.

        Parameters
        ----------
        which : int or str
            The number of an entry; or a key of any kind, or the name of its file or folder. The beginning is enough.

        Returns
        -------
        OneEntry
            With a text and an HTML repr. ``.frame`` has the files under its key, and ``.source_code`` is read from the
            file on access.

        Raises
        ------
        NotFoundError
            If there is no such entry, or the name is ambiguous.

        Examples
        --------
        >>> import cachescope
        >>> scope = cachescope.read(cachescope.sample("entry_truncated"))
        >>> scope.entry("ft4g52pb").frame["status"].tolist()
        ['ok', 'damaged']
        """
        from cachescope.report.entries import OneEntry

        return OneEntry.of(self, which)

    def check(
        self,
        min_hit_rate: float | None = None,
        max_time_lost_ns: int | None = None,
        against: Scope | None = None,
    ) -> Check:
        """Check all lookups of all runs that were read against bars, for CI.

        Parameters
        ----------
        min_hit_rate : float, optional
            The minimum hit rate by count, from 0 to 1. The first lookups of a cold start are misses: to check a
            warm run, read only that run.
        max_time_lost_ns : int, optional
            The maximum compile time lost to misses, in nanoseconds.
        against : Scope, optional
            What was stored before, as the base. No cause may be new, compared by verdict and fields; the hit rate may not be lower; and
            what was avoidable in a start, the mean of all, may take at most a quarter longer. What this scope found is avoidable.

        Returns
        -------
        Check
            ``.passed``, ``.frame`` (one row per bar), and a text and an HTML repr. If nothing was looked
            up, no bar is met. What is not recorded, here or in `against`, never helps to meet one.

        Raises
        ------
        ValueError
            If no bar is given, or one that is always or never met.

        Examples
        --------
        >>> import cachescope
        >>> scope = cachescope.read(cachescope.sample("config_flip"))
        >>> scope.check(min_hit_rate=0.3, max_time_lost_ns=10 * 10**9).frame[["bar", "passed"]].values.tolist()
        [['min_hit_rate', True], ['max_time_lost', False]]
        """
        from cachescope.report.check_forms import Check

        return Check.of(self, min_hit_rate, max_time_lost_ns, against)

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
            What counts; everything by default. torch's own schema dict works too.
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
        The replay uses what-if keys, which are cachescope's own: torch's keys cannot be rebuilt from hash details. A key
        without recorded details stays as it is, and its misses become unknown.

        Examples
        --------
        >>> import cachescope
        >>> scope = cachescope.read(cachescope.sample("config_flip"))
        >>> scope.what_if(without="inductor_config[epilogue_fusion]").rates["hits"].tolist()
        [2, 4]
        """
        from cachescope.keys.key_schema import key_schema
        from cachescope.report.what_if_forms import WhatIf

        return WhatIf.of(self, key_schema(schema, without))

    def save(self, folder: str | Path) -> None:
        """Write everything into a folder of Parquet files, which `cachescope.read` can read.

        The traces are read again for ``phases`` and ``compiles`` if these were not used before, because the saved scope
        does not contain the traces. Anything that could not be read is in its ``problems``.

        Raises
        ------
        FileExistsError
            If the folder exists and is not a saved scope.
        """
        from cachescope.report.parquet_folder import write_scope

        phases, unread_phases = self.phases_read
        compiles, symbols, unread_compiles = self.compiles_read
        problems = Table(ProblemRow, [*self.tables.problems.rows, *unread_phases, *unread_compiles])
        tables = replace(self.tables, phases=phases, compiles=compiles, symbols=symbols, problems=problems)
        write_scope(tables, Path(folder))

    def explore(self, watch: bool = False) -> Explorer:
        """The explorer: hit rates, lookups, why they missed, what-if, machines and entries, in one widget.

        Parameters
        ----------
        watch : bool, default False
            Follow the sources of the scope while a job writes them: file sizes and times are checked, and changed files
            are read again. ``.stop()``, or closing the widget, ends this.

        Returns
        -------
        Explorer
            ``.query`` is the line of Python that returns what it shows, and ``.frame()`` is its result.

        Raises
        ------
        CachescopeError
            If the packages for notebooks are not installed; or with `watch`, if there are no sources or no running event loop.
        """
        with _needs_widgets():
            from cachescope.views.explorer import Explorer, Following

        return Explorer(self, Following(self) if watch else None)

    def what_if_view(self) -> WhatIfView:
        """The toggles of `what_if` as a separate widget."""
        with _needs_widgets():
            from cachescope.views.what_if import WhatIfView

        return WhatIfView(self)

    def compare_view(
        self, before: int | Iterable[int] | Scope | None = None, after: int | Iterable[int] | None = None
    ) -> Compare:
        """Two runs compared as in the explorer: their aligned lookups, and what differs.

        Parameters
        ----------
        before, after : int or iterable of int, optional
            One run, or several, such as the ranks of a job. By default the last start and the previous one of the same
            program and ranks, or the two ranks of one job that differ most. Click to select others.
            `before` may also be the Scope of another recording, whose runs are compared with all runs of this one. Then the
            sources of both are read again, together.

        Returns
        -------
        Compare
            ``.frame()`` has the aligned lookups: see ``describe("compared_lookups")``. Lookup numbers refer to
            ``.scope``: this scope, or the one read from both recordings.

        Raises
        ------
        NotFoundError
            If there is no such run.
        CachescopeError
            If the packages for notebooks are not installed; or if the other recording has no files, or is the same one.

        Examples
        --------
        >>> import cachescope
        >>> scope = cachescope.read(cachescope.sample("tour"))
        >>> scope.compare_view(1, 2).frame()["change"].value_counts().to_dict()
        {'same': 6, 'regressed': 2}
        """
        from cachescope.answers.starts import sides_below

        with _needs_widgets():
            from cachescope.views.compare import Compare
            from cachescope.views.state import State

        if isinstance(before, Scope):
            both = self._with(before)
            return Compare(both, State(compared=sides_below(both, before.sources, self.sources)))
        sides = () if before is None or after is None else (_runs(before), _runs(after))
        return Compare(self, State(compared=sides))

    def _with(self, other: Scope) -> Scope:
        """What was read of both, from their sources."""
        if not self.sources or not other.sources:
            message = "one of the two was recorded in this process: there are no files to read it from"
            raise CachescopeError(message)
        sources = (*other.sources, *self.sources)
        return type(self)(tables_of(sources, index=self._index), self._baseline, sources, self._index)

    def device_card(self, which: int | str) -> DeviceCard:
        """One device that the sources name: what is known of it, and the figures of its datasheet with their source.

        Parameters
        ----------
        which : int or str
            The number of a device in ``devices``, or its name or uuid.

        Returns
        -------
        DeviceCard
            With a text and an HTML repr, and ``.frame``. A device without a datasheet gets no figure.

        Raises
        ------
        NotFoundError
            If there is no such device, or the name is ambiguous.

        Examples
        --------
        >>> import cachescope
        >>> scope = cachescope.read(cachescope.sample("tour"))
        >>> scope.device_card(0)
        0  cpu
           seen in keys of lookups; runs 0-5
        """
        from cachescope.devices.merged import device_named
        from cachescope.report.devices import DeviceCard

        return DeviceCard(device_named(self.named_devices.rows, which))

    def report(self, path: str | os.PathLike[str], *, redact: bool = False) -> Path:
        """Write one HTML file with the same answers, for people without Jupyter. It works offline.

        It has figures, tables that can be sorted and searched, and explanations of the ten costliest causes. It loads nothing.
        It is small, usually 0.1 to 0.5 MB, and stays under 4 MB however much was read: tables, texts and figures are cut,
        with a note that says where to find everything.

        Parameters
        ----------
        path : path
            The file; an existing one is replaced.
        redact : bool
            Whether to hide everything that is not known to be harmless. What stays visible: torch's and
            cachescope's own words, numbers, versions, device models, and keys.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        CachescopeError
            If the file cannot be written.

        Examples
        --------
        >>> import cachescope, tempfile
        >>> scope = cachescope.read(cachescope.sample("config_flip"))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     scope.report(f"{folder}/out.html").stat().st_size < 6_000_000
        True
        """
        from cachescope.report.page.file import report

        return report(self, Path(path), redact=redact)

    def predictions(self, run: int) -> pd.DataFrame:
        """Whether the process of a run would find each entry that was read; see `cachescope.will_hit`.

        Raises
        ------
        NotFoundError
            If there is no such run.
        """
        from cachescope.answers.comparison import predictions_of_run
        from cachescope.columns import frame_of
        from cachescope.frames.sharing_rows import PredictionRow

        return frame_of(predictions_of_run(self, run), PredictionRow)

    def __repr__(self) -> str:
        from cachescope.report.why_missed import summary_text

        return summary_text(self)

    def _repr_html_(self) -> str:
        from cachescope.report.why_missed import summary_html

        return summary_html(self)


def _runs(given: int | Iterable[int]) -> tuple[int, ...]:
    return (given,) if isinstance(given, int) else tuple(given)


@contextmanager
def _needs_widgets() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("cachescope"):
            raise
        raise CachescopeError(f"{error.name} is missing: pip install 'cachescope[views]'") from error
