"""The cells of runs by graphs: one for each graph in each row of runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import pandas as pd

from cachescope.columns import rows_of
from cachescope.figures.folding import Folded
from cachescope.figures.palette import OUTCOME_COLOURS
from cachescope.figures.texts import place_labels, shown
from cachescope.terms import AOTAUTOGRAD

_OUTCOMES: Final = tuple(OUTCOME_COLOURS)
CODES: Final = {outcome: code for code, outcome in enumerate(_OUTCOMES)}
"""Outcomes as whole numbers, the worst last."""
_GRAPH: Final = ["cache", "direction", "compile_id", "function"]


class Graph(NamedTuple):
    """What is one graph in every run: a compile id has many after ``torch._dynamo.reset()``, or where one compile is split."""

    compile_id: str
    function: str
    nth: int

    def label(self, letters: int) -> str:
        """The compile id with its number in the run, and the function below it; lines of so many letters at most."""
        again = f"·{self.nth + 1}" if self.nth else ""
        function = f"<br>{shown(self.function, letters)}" if self.function else ""
        return shown(self.compile_id + again, letters) + function


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: the worst outcome of its lookups, how many they are, and the lookup that it shows."""

    row: int
    cache: str
    direction: str
    compile_id: str
    function: str
    nth: int
    order: int
    place: str | None
    code: int
    count: int
    taken: float | None
    cache_key: str | None
    lookup: int

    @property
    def graph(self) -> Graph:
        """The graph that it is of."""
        return Graph(self.compile_id, self.function, self.nth)

    @property
    def outcome(self) -> str:
        """The worst outcome."""
        return _OUTCOMES[self.code]


def cells_of(lookups: pd.DataFrame, rows: Folded) -> list[Cell]:
    """The cells: the worst outcome, the number of lookups, their compile time, and the lookup that each shows."""
    texts = _texts(lookups)
    numbers = pd.DataFrame(
        {
            # Texts are grouped once; what follows groups and sorts numbers.
            "graph": texts.groupby(_GRAPH).ngroup(),
            "run": lookups["run"].astype("int64"),
            "row": lookups["run"].map(rows.row_of),
            "order": lookups["order"].astype("int64"),
            "code": lookups["outcome"].map(CODES),
            "taken": lookups["time_taken_ns"].astype("Float64").fillna(0).astype(float),
            "at": range(len(lookups)),
        }
    )
    known = numbers[numbers["code"].notna()].sort_values(["run", "order"], kind="stable")
    known["nth"] = known.groupby(["run", "graph"]).cumcount()
    worst = known.sort_values("code", kind="stable")
    cells = (
        worst.groupby(["graph", "nth", "row"])
        .agg(
            code=("code", "last"),
            at=("at", "last"),
            count=("code", "size"),
            order=("order", "min"),
            taken=("taken", "sum"),
        )
        .reset_index()
    )
    shown_ones = texts.assign(
        lookup=lookups["lookup"], cache_key=lookups["cache_key"], place=place_labels(lookups)
    )
    return rows_of(pd.concat([cells, shown_ones.iloc[cells["at"]].reset_index(drop=True)], axis=1), Cell)


def _texts(lookups: pd.DataFrame) -> pd.DataFrame:
    """What distinguishes graphs."""
    compile_id = lookups["compile_id"]
    if compile_id.isna().any():
        # Without one, the place among the lookups of the run.
        compile_id = compile_id.where(compile_id.notna(), "#" + lookups["order"].astype("str"))
    # AOTAutograd keys cover both directions; a bypassed FX lookup may record none.
    direction = lookups["direction"].fillna("no direction").where(lookups["cache"] != AOTAUTOGRAD, "")
    # Not file and line: they differ between machines and edits of one program.
    function = lookups["function"].fillna("")
    return pd.DataFrame(
        {"cache": lookups["cache"], "direction": direction, "compile_id": compile_id, "function": function}
    )
