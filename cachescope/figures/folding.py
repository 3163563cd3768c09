"""Many things on few marks: if a picture cannot hold all, runs share a row and files a box. None is left out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from cachescope.figures.texts import run_labels, shown
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.recorded_rows import RunRow
from cachescope.grouping import by_key
from cachescope.wording import plural

MOST_ROWS: Final = 64


@dataclass(frozen=True, slots=True)
class Folded:
    """The row of each run."""

    row_of: dict[int, int]
    names: list[str]  # one per row
    first: list[int]  # the first run of each row
    members: int  # the number of runs

    @property
    def labels(self) -> list[str]:
        """The names, for an axis."""
        return [shown(name) for name in self.names]

    @property
    def folded(self) -> bool:
        """Whether runs share rows."""
        return self.members > len(self.names)

    @property
    def remark(self) -> str:
        """That they do; empty if each has its own."""
        if not self.folded:
            return ""
        return f"{plural(self.members, 'run')} in {len(self.names)} rows: neighbours share one"


def folded_runs(of: Iterable[int], runs: Iterable[RunRow], most: int = MOST_ROWS) -> Folded:
    """The rows for the runs that occur, in their order."""
    numbers = sorted(set(of))
    per_row = max(1, -(-len(numbers) // most))
    groups = [numbers[at : at + per_row] for at in range(0, len(numbers), per_row)]
    labels = run_labels(runs) if per_row == 1 else {}
    names = [
        labels.get(group[0], f"run {group[0]}") if len(group) == 1 else f"runs {group[0]}–{group[-1]}"
        for group in groups
    ]
    row_of = {run: row for row, group in enumerate(groups) for run in group}
    return Folded(row_of, names, [group[0] for group in groups], len(numbers))


@dataclass(frozen=True, slots=True)
class Files:
    """Files that share a box: their number, their total size, and the number of damaged ones."""

    count: int
    size_bytes: int
    damaged: int

    @classmethod
    def of(cls, rows: Sequence[EntryRow]) -> Files:
        """Some files together."""
        sizes = sum(row.size_bytes or 0 for row in rows)
        return cls(len(rows), sizes, sum(row.status == "damaged" for row in rows))


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder: all of its files, the largest, and the others."""

    path: str
    files: Files
    largest: Sequence[EntryRow]
    others: Files


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of files: all of them, the largest folders, and the files of the others."""

    kind: str
    files: Files
    largest: Sequence[Folder]
    others: Files


def folded_entries(entries: Iterable[EntryRow], most_folders: int, most_files: int) -> list[Kind]:
    """Entries by kind and folder, the largest first."""
    found = []
    for kind, of_kind in by_key((row.cache, row) for row in entries).items():
        folders = []
        for path, rows in by_key((row.path.rpartition("/")[0], row) for row in of_kind).items():
            rows.sort(key=lambda row: (-(row.size_bytes or 0), row.entry))
            folders.append(Folder(path, Files.of(rows), rows[:most_files], Files.of(rows[most_files:])))
        folders.sort(key=lambda folder: (-folder.files.size_bytes, folder.path))
        left = {folder.path for folder in folders[most_folders:]}
        others = [row for row in of_kind if row.path.rpartition("/")[0] in left] if left else []
        found.append(Kind(kind, Files.of(of_kind), folders[:most_folders], Files.of(others)))
    return sorted(found, key=lambda one: (-one.files.size_bytes, one.kind))
