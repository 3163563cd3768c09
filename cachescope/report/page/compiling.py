"""What torch did besides looking up: where the time went, and what it compiled and compiled again."""

from __future__ import annotations

from typing import Final

from cachescope.analysis.phases.names import PHASES
from cachescope.answers.compiled import Compiled
from cachescope.answers.read import Read
from cachescope.answers.time_spent import RunTime, TimeSpent
from cachescope.figures.compile_time import compiles, phases
from cachescope.frames.compile_rows import RecompileRow
from cachescope.report.compiled import compiled_headline, short_break
from cachescope.report.page.outcomes import timed
from cachescope.report.page.parts import Cell, Drawing, Head, Part, Section, Sorted, Text
from cachescope.report.page.truncation import table
from cachescope.report.time_spent import said_texts
from cachescope.wording import plural

_RUN_COLUMNS: Final = ["run", "rank", "start_time"]
_TIMES: Final = (
    Head("Run", "word"),
    Head("In all", "number"),
    Head("Hits could still save", "number"),
    Head("Stays", "number"),
    Head("Hits", "number"),
    Head("They saved", "number"),
    Head("Before its first record", "number", is_optional=True),
    Head("Between its events", "number", is_optional=True),
)
_PHASES: Final = (
    Head("Phase", "word"),
    Head("Self time", "number"),
    Head("Runs", "number"),
    Head("An AOTAutograd hit skips it", "word"),
)
_RECOMPILES: Final = (
    Head("Function"),
    Head("Recompiles", "number"),
    Head("Limits reached", "number", is_optional=True),
    Head("Time", "number"),
    Head("Guard", "long"),
    Head("As in", "long"),
)
_BREAKS: Final = (Head("Function"), Head("Where and why", "long"), Head("Compiles", "number"))
_SKIPPED: Final = {phase.name: "yes" if phase.is_skipped_by_hit else "no" for phase in PHASES}
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
    parts: list[Part] = [Text(_NO_EVENTS)]
    if spent.runs:
        drawn = (scope.phases[["run", "phase", "self_time_ns"]], scope.runs[_RUN_COLUMNS])
        readings = [_time_row(one) for one in spent.runs]
        parts = [
            Drawing("Self time of each phase, by run", phases, drawn),
            *map(Text, said_texts(spent)),
            table("What caches could do about it", _TIMES, readings, "runs", "cachescope time --json"),
            table("Phases of all runs", _PHASES, _phase_rows(spent), "phases", "scope.phases"),
        ]
    if spent.without and spent.runs:
        parts.append(Text(f"No trace with events: {plural(len(spent.without), 'run')}.", "faint"))
    return Section("spent", "Where did the time go?", sentence, tuple(parts))


def compiles_section(scope: Read) -> Section:
    """What torch compiled, and why again."""
    sentence = (
        "Every compile with the function it is of, and why it was compiled: for the first time, again because a guard failed,"
        " as the rest of a function after a graph break, or as a backward graph."
    )
    compiled = Compiled.of(scope)
    if not compiled.kinds:
        return Section("compiles", "What was compiled, and why again?", sentence, (Text(_NO_EVENTS),))
    columns = [
        "run", "compile_id", "kind", "function", "file", "line", "start_time", "time_taken_ns", "recompile_reasons", "error",
    ]  # fmt: skip
    drawn = (scope.compiles[columns], scope.runs[_RUN_COLUMNS])
    parts: list[Part] = [
        Text(f"{compiled_headline(compiled)}."),
        Drawing("Compiles over time", compiles, drawn),
    ]
    if compiled.recompiles:
        rows = [_recompile_row(compiled, row) for row in compiled.recompiles]
        parts.append(table("Compiled again", _RECOMPILES, rows, "guards", "scope.recompiles"))
    if compiled.broken:
        breaks: list[tuple[Cell, ...]] = [
            (compiled.place(row), short_break(compiled, text), count)
            for row, count in compiled.broken
            for text in row.graph_breaks
        ]
        parts.append(table("Graph breaks", _BREAKS, breaks, "graph breaks", "scope.compiles"))
    return Section("compiles", "What was compiled, and why again?", sentence, tuple(parts))


def _time_row(one: RunTime) -> tuple[Cell, ...]:
    readings, besides = one.readings, one.besides
    return (
        one.name,
        timed(readings.total_ns),
        Sorted("nothing", 0) if one.could_save_ns == 0 else timed(one.could_save_ns),
        timed(one.stays_ns),
        readings.hits,
        timed(readings.saved_ns if readings.hits else None),
        timed(besides.before_ns),
        timed(besides.between_ns),
    )


def _phase_rows(spent: TimeSpent) -> list[tuple[Cell, ...]]:
    of_phases: dict[str, list[int]] = {}
    for one in spent.runs:
        for name, ns in one.phases.items():
            of_phases.setdefault(name, []).append(ns)
    ordered = sorted(of_phases.items(), key=lambda item: -sum(item[1]))
    return [(name, timed(sum(times)), len(times), _SKIPPED.get(name)) for name, times in ordered]


def _recompile_row(compiled: Compiled, row: RecompileRow) -> tuple[Cell, ...]:
    return (
        compiled.place(row),
        row.compiles,
        row.limits or None,
        timed(row.time_taken_ns),
        row.guard or "torch gave no reason",
        row.example,
    )
