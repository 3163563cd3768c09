"""Rows as text for spreadsheets: separated by tabs to paste, by commas to keep."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Final

from cachescope.wording import harmless

SEPARATORS: Final = {"tsv": "\t", "csv": ","}
# A spreadsheet takes a cell that begins so for a formula and runs it.
_FORMULA: Final = ("=", "+", "-", "@")


def delimited(names: Sequence[str], rows: Iterable[Sequence[object]], separator: str) -> str:
    r"""The names and the rows, one a line. Texts come from logs: none is a formula, none steers a terminal.

    Examples
    --------
    >>> delimited(["lookup", "why"], [[0, "=1+1"], [1, None], [-2, "a\tb"]], ",")
    "lookup,why\n0,'=1+1\n1,\n-2,a b\n"
    """
    written = io.StringIO()
    writer = csv.writer(written, delimiter=separator, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([_cell(value) for value in row] for row in rows)
    return written.getvalue()


def _cell(value: object) -> object:
    if value is None or isinstance(value, (bool, int, float)):
        return value
    # One line and one cell wherever it is pasted.
    text = " ".join(harmless(str(value)).split())
    return f"'{text}" if text.startswith(_FORMULA) else text
