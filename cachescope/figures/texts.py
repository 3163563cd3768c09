"""Texts in figures: short, harmless in plotly's pseudo-HTML, and whole (within bounds) in the hover text."""

from __future__ import annotations

import html
import re
import textwrap
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

from cachescope.frames.compile_rows import CompileRow
from cachescope.frames.recorded_rows import LookupRow, RunRow
from cachescope.wording import clock_of, function_name, harmless, place_text, short_names

NAME: Final = 44
HOVER_LINE: Final = 72
_RUN: Final = 24
_HOVER: Final = 6 * HOVER_LINE
_SPACE: Final = re.compile(r"\s+")


def plain(text: str, limit: int = NAME) -> str:
    """A text on one line, cut to a length, with control characters made visible; not escaped yet."""
    # Cut first: a value may be a megabyte.
    line = _SPACE.sub(" ", harmless(text[: 2 * limit + 2])).strip()
    return line if len(line) <= limit and len(text) <= 2 * limit else line[: limit - 1] + "…"


def escaped(text: str) -> str:
    """A text that plotly shows word for word: no tag, and no formula between dollar signs."""
    return html.escape(text, quote=False).replace("$", "&#36;")


def shown(text: object, limit: int = NAME) -> str:
    """A text from a log for a label: short, on one line, escaped."""
    return escaped(plain(str(text), limit))


def hover(*lines: object) -> str:
    """A hover text of several lines, each wrapped and cut; None is left out."""
    # Cut first: a value may be a megabyte, and lines are kept.
    return "<br>".join(_hover_line(str(line)[: 2 * _HOVER + 2]) for line in lines if line is not None)


# A figure has thousands of lines, most of them many times.
@lru_cache(10_000)
def _hover_line(line: str) -> str:
    whole = plain(line, _HOVER)
    parts = [whole] if len(whole) <= HOVER_LINE else textwrap.wrap(whole, HOVER_LINE)
    return "<br>".join(map(escaped, parts))


def wrapped(text: str, width: int) -> str:
    """A sentence on several lines, six at most."""
    return "<br>".join(escaped(line) for line in textwrap.wrap(plain(text, 6 * width), width))


def run_labels(runs: Iterable[RunRow]) -> dict[int, str]:
    """``run 3 · rank 0 · --bs 16`` for each run, or its time if nothing else tells it apart, in UTC; not escaped yet."""
    labels, rows = {}, list(runs)
    clock = clock_of(row.start_time for row in rows)
    for row in rows:
        parts = [f"run {row.run}", *([] if row.rank is None else [f"rank {row.rank}"])]
        if row.label is not None:
            parts.append(plain(row.label, _RUN))
        elif row.start_time is not None:
            parts.append(clock(row.start_time))
        labels[row.run] = " · ".join(parts)
    return labels


def place_labels(rows: Sequence[LookupRow | CompileRow]) -> list[str | None]:
    """``forward (model.py:88)`` for each lookup or compile; None where neither function nor file is known."""
    files = short_names(row.file for row in rows if row.file)
    return [place_text(function_name(row), row.file and files[row.file], row.line) for row in rows]
