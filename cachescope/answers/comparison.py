"""Two sides beside each other: graphs and keys, contexts, and which entries of one the other would find."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from cachescope.analysis.contexts.differences import context_difference
from cachescope.analysis.directory.built import COMPARED, built_alike
from cachescope.analysis.directory.coverage import coverage_rows
from cachescope.answers.compared_runs import ComparedRuns
from cachescope.answers.difference import Difference, Side, difference
from cachescope.answers.predictions import context_fields, predictions, run_fields
from cachescope.answers.recording import Recording
from cachescope.frames.compared import Built, CoverageRow, DifferenceRow
from cachescope.frames.sharing_rows import FormDifference, PredictionRow
from cachescope.readers.directory.bundles import held_in
from cachescope.readers.directory.file_contents import content_hash
from cachescope.readers.reading import Reading
from cachescope.rows import like
from cachescope.table import Table
from cachescope.terms import MEGA_CACHE

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Comparison:
    """What differs between two sides.

    Attributes
    ----------
    before, after : str
        What the sides are.
    graphs : Difference or None
        Keys paired by their graphs; None where a side holds no keys.
    runs : ComparedRuns or None
        How the lookups of runs went; None where a side has none, or both have the same.
    form_differences, predicted, built_alike, covered : list or None
        The rows of the frames `contexts`, `predictions`, `built` and `coverage`.
    """

    before: str
    after: str
    graphs: Difference | None = None
    form_differences: list[FormDifference] | None = None
    predicted: list[PredictionRow] | None = None
    built_alike: list[Built] | None = None
    covered: list[CoverageRow] | None = None
    runs: ComparedRuns | None = None
    # Of each side the path, which its runs are named beside; empty of what was asked for by its own name.
    paths: tuple[str, str] = ("", "")

    @property
    def contexts(self) -> pd.DataFrame | None:
        """See ``describe("context_difference")``; None where neither side is a snapshot, or one has no context."""
        return _frame(self.form_differences, FormDifference)

    @property
    def predictions(self) -> pd.DataFrame | None:
        """See ``describe("predictions")``: the entries of the side that is a directory, and whether the process of
        the other would find them; None where there is no such process.
        """
        return _frame(self.predicted, PredictionRow)

    @property
    def built(self) -> pd.DataFrame | None:
        """See ``describe("built")``: what both hold under one key, and whether it was built alike; None where a side
        holds no entries.
        """
        return _frame(self.built_alike, Built)

    @property
    def coverage(self) -> pd.DataFrame | None:
        """See ``describe("coverage")``: what of one side the mega-caches of the other hold; None where no side consists
        of mega-caches.
        """
        return _frame(self.covered, CoverageRow)

    @property
    def frame(self) -> pd.DataFrame:
        """One row per field that differs between paired keys, folded; see ``describe("differences")``."""
        groups = () if self.graphs is None else self.graphs.groups
        rows = (
            like(DifferenceRow, change, group=number, pairs=len(pairs))
            for number, (changes, pairs) in enumerate(groups)
            for change in changes
        )
        return Table(DifferenceRow, list(rows)).frame

    @classmethod
    def of(cls, read: Recording, before: Side, after: Side) -> Self:
        """What differs between two sides of what was read."""
        looked_up = {row.run for row in read.facts.lookups.values()}
        one, other = ([run for run in side.runs if run in looked_up] for side in (before, after))
        return cls(
            before.name,
            after.name,
            graphs=difference(read, before.keys, after.keys) if before.keys and after.keys else None,
            form_differences=_form_differences(read, before, after),
            predicted=_predicted(read, before, after),
            built_alike=_built(read, before, after) if before.entries and after.entries else None,
            covered=_covered(read, before, after),
            runs=ComparedRuns.of(read, one, other) if one and other and {*one}.isdisjoint(other) else None,
            paths=(before.path, after.path),
        )


def _form_differences(read: Recording, one: Side, other: Side) -> list[FormDifference] | None:
    if not one.snapshots and not other.snapshots:
        return None
    before, after = _context_of(read, one), _context_of(read, other)
    if before is None or after is None:
        return None
    return context_difference(read.all_contexts.rows, before, after)


def _built(read: Recording, one: Side, other: Side) -> list[Built]:
    old, new = ([row for row in side.entries if row.cache in COMPARED] for side in (one, other))
    return [*built_alike(old, new, read.tables.autotune.rows, read.generated_code, read.kernel_binaries)]


def _covered(read: Recording, one: Side, other: Side) -> list[CoverageRow] | None:
    bundles, rest = (one, other) if _is_of_bundles(one) else (other, one)
    if not _is_of_bundles(bundles) or _is_of_bundles(rest) or not (rest.runs or rest.entries):
        return None
    reading = Reading(details=read.tables.hash_details)
    held = [held_in(row.path, reading) for row in bundles.entries]
    lookups = [row for row in read.history.lookups if row.run in rest.runs]
    return [*coverage_rows(held, lookups, rest.entries, content_hash)]


def _is_of_bundles(side: Side) -> bool:
    return {row.cache for row in side.entries} == {MEGA_CACHE} and not side.runs


def _context_of(read: Recording, side: Side) -> int | None:
    """The snapshot of a side, else the context of its last run."""
    of_runs = [row.context for row in read.all_contexts.rows if row.run in side.runs]
    return next(iter(side.snapshots[-1:] or of_runs[-1:]), None)


def _predicted(read: Recording, one: Side, other: Side) -> list[PredictionRow] | None:
    directories = [side for side in (one, other) if side.entries]
    processes = [side for side in (one, other) if not side.entries and (side.snapshots or side.runs)]
    if not directories or not processes:
        return None
    (directory,), (process,) = directories, processes
    if process.snapshots:
        known = context_fields(read, process.snapshots[-1])
    else:
        known = run_fields(read, process.runs[-1])
    return predictions(read, directory.entries, known)


def _frame(rows: list[Any] | None, kind: type) -> pd.DataFrame | None:
    return None if rows is None else Table(kind, rows).frame
