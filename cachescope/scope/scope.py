"""The Scope: everything that was read, as frames, and the questions that it answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cachescope.frames.recorded_rows import ProblemRow
from cachescope.scope.shown import Shown
from cachescope.table import Table

if TYPE_CHECKING:
    from cachescope.keys import IsolationSchema
    from cachescope.keys.key_schema import KeySchema
    from cachescope.report.check_forms import Check
    from cachescope.report.explanation import Explanation
    from cachescope.report.one_entry_forms import OneEntry
    from cachescope.report.what_if_forms import WhatIf


_CAUSES_IN_HTML: Final = 5
_PLACES_IN_HTML: Final = 3


class Scope(Shown):
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

        read = self if baseline is None else self.with_baseline(baseline)
        return Explanation.of(read, which)

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
        from cachescope.report.one_entry_forms import OneEntry

        return OneEntry.of(self, which)

    def check(
        self,
        min_hit_rate: float | None = None,
        max_time_lost_ns: int | None = None,
        baseline: Scope | None = None,
    ) -> Check:
        """Check all lookups of all runs that were read against bars, for CI.

        Parameters
        ----------
        min_hit_rate : float, optional
            The minimum hit rate by count, from 0 to 1. The first lookups of a cold start are misses: to check a
            warm run, read only that run.
        max_time_lost_ns : int, optional
            The maximum compile time lost to misses, in nanoseconds.
        baseline : Scope, optional
            No cause may be new, compared by verdict and fields with the causes of this scope.

        Returns
        -------
        Check
            ``.passed``, ``.frame`` (one row per bar), and a text and an HTML repr. If nothing was looked
            up, no bar is met. An unknown outcome never helps to meet one.

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

        return Check.of(self, min_hit_rate, max_time_lost_ns, baseline)

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

    def __repr__(self) -> str:
        from cachescope.answers.summary import InShort
        from cachescope.report.why_missed import summary_text

        return summary_text(InShort.of(self))

    def _repr_html_(self) -> str:
        from cachescope.answers.causes import Causes
        from cachescope.answers.summary import InShort
        from cachescope.report.why_missed import summary_html

        return summary_html(InShort.of(self), Causes.of(self, most=_CAUSES_IN_HTML, places=_PLACES_IN_HTML))
