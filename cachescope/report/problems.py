"""What could not be read, as lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from cachescope.frames.recorded_rows import ProblemRow
from cachescope.report.layout import Line, rest
from cachescope.wording import short

_SHOWN: Final = 3


def problem_lines(problems: Sequence[ProblemRow]) -> Iterator[Line]:
    """The first problems with reading."""
    for row in problems[:_SHOWN]:
        where = f" ({row.where})" if row.where else ""
        more = f"; and {row.count - 1:,} like it" if row.count > 1 else ""
        # The message is cut alone: a long path would leave nothing of it.
        yield Line(f"{row.source}{where}: {row.kind}: {short(row.message)}{more}", 2, "dim")
    yield from rest(len(problems) - _SHOWN, where="--json lists all", indent=2)
