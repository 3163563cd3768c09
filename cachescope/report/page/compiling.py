"""What torch did besides looking up: where the time went, and what it compiled and compiled again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from cachescope.answers.read import Read
from cachescope.answers.time_spent import TimeSpent
from cachescope.figures.compile_time import compiles, phases
from cachescope.report.blocks import Block, Drawing
from cachescope.report.time_spent import time_lines


def spent_blocks(scope: Read) -> Iterator[Block]:
    """Where the time of compiling went."""
    # What vLLM says of its starts, and what could not be read, stands in sections of their own.
    yield from time_lines(replace(TimeSpent.of(scope), starts=(), problems=()))
    drawn = (scope.compiles_read[0].rows, scope.tables.runs.rows)
    if drawn[0]:
        yield Drawing("Compiles over time", compiles, drawn)


def path_drawing(scope: Read) -> Iterator[Block]:
    """What each start spent its time on; nothing where no trace has events."""
    drawn = (scope.phases_read[0].rows, scope.tables.runs.rows)
    if drawn[0]:
        yield Drawing("Self time of each phase, by run", phases, drawn)
