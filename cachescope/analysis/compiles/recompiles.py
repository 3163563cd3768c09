"""The frame ``recompiles``: recompiles of a frame, grouped by the guard that failed, whatever the values were."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

import pandas as pd

from cachescope.cells import code_file
from cachescope.columns import frame_of, rows_of
from cachescope.frames.compile_rows import CompileRow, RecompileRow

# torch/_dynamo/guards.py, `get_and_maybe_log_recompilation_reasons`: the compile whose guard failed, the guard, the line
# of code that it is from.
_GUARD: Final = re.compile(r"(?:!?\d+(?:/\d+)*: )?(?P<guard>.*?)(?: # .*| \(HINT: .*)?")
_VALUE: Final = re.compile(r"(?<= )(==|!=|<=?|>=?|expected|actual) [^,]+")
_Group = tuple[str | None, str | None, int | None, str | None]


def recompiles_frame(compiles: pd.DataFrame) -> pd.DataFrame:
    """Group the recompiles by function and guard.

    Parameters
    ----------
    compiles : DataFrame
        The frame compiles.
    """
    groups: dict[_Group, list[CompileRow]] = defaultdict(list)
    for row in rows_of(compiles, CompileRow):
        if row.kind in ("recompile", "limit"):
            groups[row.function, code_file(row.file), row.line, _guard(row.recompile_reasons)].append(row)
    rows = [_row(guard, members) for (*_, guard), members in groups.items()]
    rows.sort(key=lambda row: -(row.time_taken_ns or 0))
    return frame_of(rows, RecompileRow)


def _guard(reasons: Iterable[str]) -> str | None:
    """The guard of the latest compile without its values, which differ each time."""
    for reason in reasons:
        if match := _GUARD.fullmatch(reason):
            return _VALUE.sub(r"\1 …", match["guard"])
    return None


def _row(guard: str | None, members: Sequence[CompileRow]) -> RecompileRow:
    first = members[0]
    taken = [row.time_taken_ns for row in members if row.time_taken_ns is not None]
    limits = sum(row.kind == "limit" for row in members)
    return RecompileRow(
        function=first.function,
        file=first.file,
        line=first.line,
        guard=guard,
        example=next((reason for row in members for reason in row.recompile_reasons), None),
        compiles=len(members) - limits,
        limits=limits,
        time_taken_ns=sum(taken) if taken else None,
        runs=tuple(dict.fromkeys(row.run for row in members)),
        compile_ids=tuple(dict.fromkeys(row.compile_id for row in members)),
    )
