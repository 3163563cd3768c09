"""The parts of a scope that are shown in a notebook or a browser. ipywidgets is imported only when needed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from cachescope.answers.read import Read
from cachescope.answers.reading import tables_of
from cachescope.errors import CachescopeError

if TYPE_CHECKING:
    import pandas as pd

    from cachescope.report.devices import DeviceCard
    from cachescope.views.compare import Compare
    from cachescope.views.explorer import Explorer
    from cachescope.views.what_if import WhatIfView


class Shown(Read):
    """What was read, with its widgets and its report."""

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
            from cachescope.views.explorer import Explorer
            from cachescope.views.watching import Following

        return Explorer(self, Following(self) if watch else None)

    def what_if_view(self) -> WhatIfView:
        """The toggles of `what_if` as a separate widget."""
        with _needs_widgets():
            from cachescope.views.what_if import WhatIfView

        return WhatIfView(self)

    def compare_view(
        self,
        before: int | Iterable[int] | Shown | None = None,
        after: int | Iterable[int] | None = None,
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

        if isinstance(before, Shown):
            both = self._with(before)
            return Compare(both, State(compared=sides_below(both, before.sources, self.sources)))
        sides = () if before is None or after is None else (_runs(before), _runs(after))
        return Compare(self, State(compared=sides))

    def _with(self, other: Shown) -> Shown:
        """What was read of both, from their sources."""
        if not self.sources or not other.sources:
            raise CachescopeError(
                "one of the two was recorded in this process: there are no files to read it from"
            )
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
           seen in keys of lookups; runs 0, 1, 2, 3, 4, 5
        """
        from cachescope.columns import frame_of
        from cachescope.devices.merged import device_named
        from cachescope.frames.device_rows import DeviceRow
        from cachescope.report.devices import DeviceCard

        return DeviceCard(frame_of([device_named(self.named_devices.rows, which)], DeviceRow))

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
        from cachescope.answers.predictions import predictions_of_run
        from cachescope.columns import frame_of
        from cachescope.frames.sharing_rows import PredictionRow

        return frame_of(predictions_of_run(self, run), PredictionRow)


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
