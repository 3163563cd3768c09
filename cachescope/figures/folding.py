"""Many things on few marks: if a picture cannot hold all, runs share a row and files a box. None is left out."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from cachescope.columns import rows_of
from cachescope.figures.texts import run_labels
from cachescope.frames.directory_rows import EntryRow
from cachescope.rows import names_of
from cachescope.wording import plural

MOST_ROWS: Final = 64


@dataclass(frozen=True, slots=True)
class Folded:
    """The row of each run."""

    row_of: dict[int, int]
    labels: list[str]  # one per row
    first: list[int]  # the first run of each row
    members: int  # the number of runs

    @property
    def folded(self) -> bool:
        """Whether runs share rows."""
        return self.members > len(self.labels)

    @property
    def remark(self) -> str:
        """That they do; empty if each has its own."""
        if not self.folded:
            return ""
        return f"{plural(self.members, 'run')} in {len(self.labels)} rows: neighbours share one"


def folded_runs(of: pd.Series[Any], runs: pd.DataFrame, most: int = MOST_ROWS) -> Folded:
    """The rows for the runs that occur in a column, in their order."""
    numbers = sorted(int(run) for run in of.dropna().unique())
    per_row = max(1, -(-len(numbers) // most))
    groups = [numbers[at : at + per_row] for at in range(0, len(numbers), per_row)]
    labels = run_labels(runs) if per_row == 1 else {}
    names = [
        labels.get(group[0], f"run {group[0]}") if len(group) == 1 else f"runs {group[0]}–{group[-1]}"
        for group in groups
    ]
    row_of = {run: row for row, group in enumerate(groups) for run in group}
    return Folded(row_of, names, [group[0] for group in groups], len(numbers))


def by_row(sums: pd.Series[Any], level: str, name: str) -> dict[int, int]:
    """What belongs to one name at a level of the index, by row."""
    mine = sums[sums.index.get_level_values(level) == name].droplevel(level)
    return {int(row): int(one) for row, one in zip(mine.index.tolist(), mine.tolist(), strict=True)}


@dataclass(frozen=True, slots=True)
class Files:
    """Files that share a box: their number, their total size, and the number of damaged ones."""

    count: int
    size_bytes: int
    damaged: int


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder: all of its files, the largest, and the others."""

    path: str
    files: Files
    largest: list[EntryRow]
    others: Files


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of files: all of them, the largest folders, and the files of the others."""

    kind: str
    files: Files
    largest: list[Folder]
    others: Files


def folded_entries(entries: pd.DataFrame, most_folders: int, most_files: int) -> list[Kind]:
    """Entries by kind and folder, the largest first; only files that have a box of their own become objects."""
    sizes = entries["size_bytes"].fillna(0).to_numpy(dtype=np.int64)
    damaged = (entries["status"] == "damaged").to_numpy(dtype=bool)
    kind_of, kinds = pd.factorize(entries["cache"].astype(object))
    folders = [path.rpartition("/")[0] for path in entries["path"].tolist()]
    folder_of, paths = pd.factorize(np.array(folders, dtype=object))
    group_of, groups = pd.factorize(kind_of * len(paths) + folder_of)
    place = np.lexsort((entries["entry"].to_numpy(dtype=np.int64), -sizes, group_of))
    starts = np.searchsorted(group_of[place], np.arange(len(groups) + 1))
    totals = np.bincount(group_of, weights=sizes, minlength=len(groups))

    def files(at: npt.NDArray[np.intp]) -> Files:
        return Files(len(at), int(sizes[at].sum()), int(damaged[at].sum()))

    def places_of(chosen: Sequence[int]) -> npt.NDArray[np.intp]:
        parts = [place[starts[group] : starts[group + 1]] for group in chosen]
        return np.concatenate(parts) if parts else place[:0]

    def path(group: int) -> str:
        return str(paths[groups[group] % len(paths)])

    of_kind = [np.flatnonzero(groups // len(paths) == kind).tolist() for kind in range(len(kinds))]
    for listed in of_kind:
        listed.sort(key=lambda group: (-totals[group], path(group)))
    boxes = [places_of([group])[:most_files] for listed in of_kind for group in listed[:most_folders]]
    # All rows at once: taking a few from a frame is slow.
    chosen = np.concatenate(boxes) if boxes else place[:0]
    rows = iter(rows_of(entries.iloc[chosen].reindex(columns=names_of(EntryRow)), EntryRow))

    def folder(group: int) -> Folder:
        at = places_of([group])
        largest = list(itertools.islice(rows, min(len(at), most_files)))
        return Folder(path(group), files(at), largest, files(at[most_files:]))

    found = [
        Kind(
            str(name),
            files(places_of(listed)),
            [folder(group) for group in listed[:most_folders]],
            files(places_of(listed[most_folders:])),
        )
        for name, listed in zip(kinds, of_kind, strict=True)
    ]
    return sorted(found, key=lambda one: (-one.files.size_bytes, one.kind))
