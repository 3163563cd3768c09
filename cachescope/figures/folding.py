"""Many runs on few rows: beyond what a picture holds, neighbours share a row. Marks are folded, never left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import pandas as pd

MOST_ROWS: Final = 64


@dataclass(frozen=True, slots=True)
class Folded:
    """The row of each run.

    Attributes
    ----------
    row_of : dict of run to row
    labels : list of str
        One per row.
    first : list of int
        The first run of each row.
    members : int
        Runs.
    """

    row_of: dict[int, int]
    labels: list[str]
    first: list[int]
    members: int

    @property
    def folded(self) -> bool:
        """Whether runs share rows."""
        return self.members > len(self.labels)


def folded_runs(of: pd.Series[Any], labels: dict[int, str], most: int = MOST_ROWS) -> Folded:
    """The rows for the runs that occur in a column, in their order."""
    numbers = sorted(int(run) for run in of.dropna().unique())
    per_row = max(1, -(-len(numbers) // most))
    groups = [numbers[at : at + per_row] for at in range(0, len(numbers), per_row)]
    names = [
        labels.get(group[0], f"run {group[0]}") if len(group) == 1 else f"runs {group[0]}–{group[-1]}"
        for group in groups
    ]
    row_of = {run: row for row, group in enumerate(groups) for run in group}
    return Folded(row_of, names, [group[0] for group in groups], len(numbers))
