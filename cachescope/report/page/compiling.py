"""What torch did besides looking up: where the time went, and what it compiled and compiled again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from cachescope.answers.read import Read
from cachescope.answers.time_spent import TimeSpent
from cachescope.figures.compile_time import compiles, phases
from cachescope.report.blocks import Block, Drawing, Section
from cachescope.report.subjects import SUBJECTS, told
from cachescope.report.time_spent import time_lines

# Of each list of compiles.
_LISTED: Final = 100


def spent_section(scope: Read) -> Section:
    """Where the time of compiling went."""
    sentence = (
        "Self times of what torch does, by the events of its traces: each moment counts once. What no event covers is a phase"
        " of its own; what a program does besides compiling is in none."
    )
    # What vLLM says of its starts, and what could not be read, stands in sections of their own.
    spent = replace(TimeSpent.of(scope), starts=(), problems=())
    drawn = (scope.compiles_read[0].rows, scope.tables.runs.rows)
    drawings = [Drawing("Compiles over time", compiles, drawn)] if len(drawn[0]) else []
    return Section("spent", "Where did the time go?", sentence, (*time_lines(spent), *drawings))


def path_drawing(scope: Read) -> list[Block]:
    """What each start spent its time on; nothing where no trace has events."""
    drawn = (scope.phases_read[0].rows, scope.tables.runs.rows)
    return [Drawing("Self time of each phase, by run", phases, drawn)] if drawn[0] else []


def subject_sections(scope: Read) -> Iterator[Section]:
    """The answers that have a module each."""
    for name, subject in SUBJECTS.items():
        blocks = told(name).blocks(scope, _LISTED, f"scope.{subject.frame}")
        yield Section(name, subject.question, subject.about, tuple(blocks))
