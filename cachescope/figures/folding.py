"""Many runs on few rows: those that went alike share one. None is left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from cachescope.figures.texts import run_labels, shown
from cachescope.frames.recorded_rows import RunRow
from cachescope.grouping import by_key
from cachescope.wording import plural, rank_names

MOST_ROWS: Final = 64
# As many rows have a label and numbers in their bars.
_MOST_ALONE: Final = 24


@dataclass(frozen=True, slots=True)
class Folded:
    """The row of each run."""

    row_of: dict[int, int]
    names: list[str]  # one per row
    first: list[int]  # the first run of each row
    sizes: list[int]  # how many runs it has

    @property
    def labels(self) -> list[str]:
        """The names, for an axis."""
        return [shown(name) for name in self.names]

    @property
    def folded(self) -> bool:
        """Whether runs share rows."""
        return sum(self.sizes) > len(self.names)

    @property
    def remark(self) -> str:
        """That they do; empty if each has its own."""
        if not self.folded:
            return ""
        runs, rows = plural(sum(self.sizes), "run"), plural(len(self.names), "row")
        return f"{runs} in {rows}, the rarest first: those that went alike share one"


def folded_runs(of: Iterable[tuple[int, Hashable]], runs: Iterable[RunRow]) -> Folded:
    """The rows for the runs that occur, in their order; of many, those of one label for which the same occurs share one, the rarest first."""
    went, rows = by_key(of), {row.run: row for row in runs}
    labels = {run: row.label for run, row in rows.items()}
    groups = [[run] for run in sorted(went)]
    if len(groups) > _MOST_ALONE:
        how = {run: (labels.get(run), frozenset(Counter(went[run]).items())) for run in sorted(went)}
        groups = sorted(
            by_key((way, run) for run, way in how.items()).values(), key=lambda one: (len(one), one)
        )
        # Where few went alike, neighbours share a row.
        a_row = -(-len(groups) // MOST_ROWS)
        groups = [list(chain(*groups[at : at + a_row])) for at in range(0, len(groups), a_row)]
    alone = run_labels(rows.values())
    names = [alone.get(g[0], f"run {g[0]}") if len(g) == 1 else _name(g, rows) for g in groups]
    row_of = {run: row for row, group in enumerate(groups) for run in group}
    return Folded(row_of, names, [group[0] for group in groups], [*map(len, groups)])


def _name(group: Sequence[int], rows: Mapping[int, RunRow]) -> str:
    """How many runs, with the label that all have, and their ranks or numbers."""
    mine = [rows[run] for run in group if run in rows]
    labels = {row.label for row in mine}
    ranks = sorted({row.rank for row in mine if row.rank is not None})
    label = labels.pop() if len(labels) == 1 else None
    told = f"ranks {rank_names(ranks)}" if ranks else label or rank_names(group)
    return f"{len(group)} runs · {told}"
