"""What torch did besides looking up: where the time went, and what it compiled and compiled again."""

from __future__ import annotations

from typing import Final

from cachescope.analysis.phases.names import PHASES
from cachescope.answers.compiled import Compiled
from cachescope.answers.read import Read
from cachescope.answers.time_spent import TimeSpent
from cachescope.figures.compile_time import compiles, phases
from cachescope.grouping import by_key
from cachescope.report.blocks import Block, Drawing, Section, table
from cachescope.report.compiled import compiled_lines
from cachescope.report.layout import Line
from cachescope.report.tables import TIMES, Column, timed
from cachescope.report.time_spent import said_texts
from cachescope.wording import plural

# Of each list of compiles.
_LISTED: Final = 100
_COMPILE_COLUMNS: Final = [
    "run", "compile_id", "kind", "function", "file", "line", "start_time", "time_taken_ns", "recompile_reasons", "error",
]  # fmt: skip
_RUN_COLUMNS: Final = ["run", "rank", "start_time"]
_SKIPPED: Final = {phase.name: "yes" if phase.is_skipped_by_hit else "no" for phase in PHASES}
_PHASES: Final = (
    Column("Phase", "word", lambda phase: phase[0]),
    Column("Self time", "number", lambda phase: timed(sum(phase[1]))),
    Column("Runs", "number", lambda phase: len(phase[1])),
    Column("An AOTAutograd hit skips it", "word", lambda phase: _SKIPPED.get(phase[0])),
)
_NO_EVENTS: Final = (
    "No trace with events was read: they are in the files that torch writes to the folder TORCH_TRACE names."
)


def spent_section(scope: Read) -> Section:
    """Where the time of compiling went."""
    sentence = (
        "Self times of what torch does, by the events of its traces: each moment counts once. What no event covers is a phase"
        " of its own; what a program does besides compiling is in none."
    )
    spent = TimeSpent.of(scope)
    blocks: list[Block] = [Line(_NO_EVENTS)]
    if spent.runs:
        of_phases = by_key(phase for one in spent.runs for phase in one.phases.items())
        by_phase = sorted(of_phases.items(), key=lambda item: -sum(item[1]))  # the longest first
        blocks = [
            *map(Line, said_texts(spent)),
            table("What caches could do about it", TIMES, spent.runs, "runs", "cachescope time --json"),
            table("Phases of all runs", _PHASES, by_phase, "phases", "scope.phases"),
        ]
    if spent.without and spent.runs:
        blocks.append(Line(f"No trace with events: {plural(len(spent.without), 'run')}.", style="dim"))
    return Section("spent", "Where did the time go?", sentence, tuple(blocks))


def path_drawing(scope: Read) -> list[Block]:
    """What each start spent its time on; nothing where no trace has events."""
    if scope.phases.empty:
        return []
    drawn = (scope.phases[["run", "phase", "self_time_ns"]], scope.runs[_RUN_COLUMNS])
    return [Drawing("Self time of each phase, by run", phases, drawn)]


def compiles_section(scope: Read) -> Section:
    """What torch compiled, and why again."""
    sentence = (
        "Every compile with the function it is of, and why it was compiled: for the first time, again because a guard failed,"
        " as the rest of a function after a graph break, or as a backward graph."
    )
    headline, *lists = compiled_lines(
        Compiled.of(scope), _LISTED, "scope.compiles and scope.recompiles have all"
    )
    drawings = []
    if len(scope.compiles):
        drawn = (scope.compiles[_COMPILE_COLUMNS], scope.runs[_RUN_COLUMNS])
        drawings.append(Drawing("Compiles over time", compiles, drawn))
    return Section("compiles", "What was compiled, and why again?", sentence, (headline, *drawings, *lists))
