"""Two sides beside each other: graphs and keys, contexts, and which entries of one the other would find."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import pandas as pd

from cachescope.analysis.directory.built import COMPARED, built_alike
from cachescope.analysis.directory.coverage import coverage_rows
from cachescope.answers.difference import Difference, difference
from cachescope.answers.predictions import context_fields, predictions, run_fields
from cachescope.answers.read import Read
from cachescope.answers.sides import Side
from cachescope.columns import frame_of, rows_of
from cachescope.frames.compared import Built, CoverageRow, DifferenceRow
from cachescope.frames.directory_rows import EntryRow, TimingRow
from cachescope.readers.directory.bundles import held_in
from cachescope.readers.directory.file_contents import content_hash
from cachescope.readers.reading import Reading
from cachescope.terms import MEGA_CACHE


@dataclass(frozen=True, slots=True)
class Comparison:
    """What differs between two sides.

    Attributes
    ----------
    before, after : str
        What the sides are.
    graphs : Difference or None
        Keys paired by their graphs; None where a side holds no keys.
    contexts : DataFrame or None
        See ``describe("context_difference")``; None where neither side is a snapshot, or one has no context.
    predictions : DataFrame or None
        See ``describe("predictions")``: the entries of the side that is a directory, and whether the process of
        the other would find them; None where there is no such process.
    built : DataFrame or None
        See ``describe("built")``: what both hold under one key, and whether it was built alike; None where a side
        holds no entries.
    coverage : DataFrame or None
        See ``describe("coverage")``: what of one side the mega-caches of the other hold; None where no side consists
        of mega-caches.
    """

    before: str
    after: str
    graphs: Difference | None = None
    contexts: pd.DataFrame | None = None
    predictions: pd.DataFrame | None = None
    built: pd.DataFrame | None = None
    coverage: pd.DataFrame | None = None

    @property
    def frame(self) -> pd.DataFrame:
        """One row per field that differs between paired keys, folded; see ``describe("differences")``."""
        groups = () if self.graphs is None else self.graphs.groups
        rows = (
            DifferenceRow(
                group=number,
                field=change.field,
                kind=change.kind,
                summary=change.summary,
                before=change.before,
                after=change.after,
                pairs=len(pairs),
            )
            for number, (changes, pairs) in enumerate(groups)
            for change in changes
        )
        return frame_of(rows, DifferenceRow)

    @classmethod
    def of(cls, read: Read, before: Side, after: Side) -> Self:
        """What differs between two sides of what was read."""
        names = (before.name, after.name)
        both_have_keys = before.keys and after.keys
        return cls(
            *names,
            graphs=difference(read, before.keys, after.keys, names) if both_have_keys else None,
            contexts=_contexts(read, before, after),
            predictions=_predictions(read, before, after),
            built=_built(read, before, after) if len(before.entries) and len(after.entries) else None,
            coverage=_coverage(read, before, after),
        )


def _contexts(read: Read, one: Side, other: Side) -> pd.DataFrame | None:
    if not one.snapshots and not other.snapshots:
        return None
    before, after = _context_of(read, one), _context_of(read, other)
    return None if before is None or after is None else read.context_difference(before, after)


def _built(read: Read, one: Side, other: Side) -> pd.DataFrame:
    old, new = (
        rows_of(side.entries[side.entries["cache"].isin(COMPARED)], EntryRow) for side in (one, other)
    )
    timings = rows_of(read.autotune, TimingRow)
    return frame_of(built_alike(old, new, timings, read.generated_code, read.kernel_binaries), Built)


def _coverage(read: Read, one: Side, other: Side) -> pd.DataFrame | None:
    bundles, rest = (one, other) if _is_of_bundles(one) else (other, one)
    if not _is_of_bundles(bundles) or _is_of_bundles(rest) or not (rest.runs or len(rest.entries)):
        return None
    reading = Reading(details=read.tables.hash_details)
    held = [held_in(path, reading) for path in bundles.entries["path"].tolist()]
    lookups = [row for row in read.history.lookups if row.run in rest.runs]
    return frame_of(coverage_rows(held, lookups, rows_of(rest.entries, EntryRow), content_hash), CoverageRow)


def _is_of_bundles(side: Side) -> bool:
    return bool(len(side.entries)) and set(side.entries["cache"]) == {MEGA_CACHE} and not side.runs


def _context_of(read: Read, side: Side) -> int | None:
    """The snapshot of a side, else the context of its last run."""
    if side.snapshots:
        return side.snapshots[-1]
    contexts = read.contexts
    of_runs = contexts.loc[contexts["run"].isin(side.runs), "context"].tolist()
    return of_runs[-1] if of_runs else None


def _predictions(read: Read, one: Side, other: Side) -> pd.DataFrame | None:
    directories = [side for side in (one, other) if len(side.entries)]
    processes = [side for side in (one, other) if not len(side.entries) and (side.snapshots or side.runs)]
    if not directories or not processes:
        return None
    (directory,), (process,) = directories, processes
    if process.snapshots:
        known = context_fields(read, process.snapshots[-1])
    else:
        known = run_fields(read, process.runs[-1])
    return predictions(read, directory.entries, known)
