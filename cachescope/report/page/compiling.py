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
from cachescope.report.compiled import compiled_headline, short_break
from cachescope.report.layout import Line
from cachescope.report.tables import TIMES, Column, timed
from cachescope.report.time_spent import said_texts
from cachescope.wording import plural

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
    parts: list[Block] = [Line(_NO_EVENTS)]
    if spent.runs:
        of_phases = by_key(phase for one in spent.runs for phase in one.phases.items())
        by_phase = sorted(of_phases.items(), key=lambda item: -sum(item[1]))  # the longest first
        parts = [
            *map(Line, said_texts(spent)),
            table("What caches could do about it", TIMES, spent.runs, "runs", "cachescope time --json"),
            table("Phases of all runs", _PHASES, by_phase, "phases", "scope.phases"),
        ]
    if spent.without and spent.runs:
        parts.append(Line(f"No trace with events: {plural(len(spent.without), 'run')}.", style="dim"))
    return Section("spent", "Where did the time go?", sentence, tuple(parts))


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
    compiled = Compiled.of(scope)
    if not compiled.kinds:
        return Section("compiles", "What was compiled, and why again?", sentence, (Line(_NO_EVENTS),))
    columns = [
        "run", "compile_id", "kind", "function", "file", "line", "start_time", "time_taken_ns", "recompile_reasons", "error",
    ]  # fmt: skip
    drawn = (scope.compiles[columns], scope.runs[_RUN_COLUMNS])
    drawing = Drawing("Compiles over time", compiles, drawn)
    parts: list[Block] = [Line(f"{compiled_headline(compiled)}."), drawing]
    if compiled.recompiles:
        again = (
            Column("Function", "text", compiled.place),
            Column("Recompiles", "number", "compiles"),
            Column("Limits reached", "number", lambda row: row.limits or None, is_optional=True),
            Column("Time", "number", lambda row: timed(row.time_taken_ns)),
            Column("Guard", "long", lambda row: row.guard or "torch gave no reason"),
            Column("As in", "long", "example"),
        )
        parts.append(table("Compiled again", again, compiled.recompiles, "guards", "scope.recompiles"))
    if compiled.broken:
        breaks = [(row, count, text) for row, count in compiled.broken for text in row.graph_breaks]
        broken = (
            Column("Function", "text", lambda one: compiled.place(one[0])),
            Column("Where and why", "long", lambda one: short_break(compiled, one[2])),
            Column("Compiles", "number", lambda one: one[1]),
        )
        parts.append(table("Graph breaks", broken, breaks, "graph breaks", "scope.compiles"))
    return Section("compiles", "What was compiled, and why again?", sentence, tuple(parts))
