"""Rows of phases: where compile time went."""

from __future__ import annotations

from cachescope.rows import col, row

# fmt: off


@row("phases")
class PhaseRow:
    """The events of one name in one compile of one process."""

    run: int = col("the process, an id into runs")
    compile_id: str | None = col(
        "frame / compile of that frame; an event without its own has that of the event around it",
        missing="no compile: it happened while the program ran", torch_name="CompileId")
    segment: int = col("distinguishes compiles of a run with the same compile id, as in lookups")
    phase: str = col("the part of a compile that the event belongs to; ``not named:`` and its name if the event is not known")
    event: str = col("the name of the event", torch_name="chromium_event name")
    count: int = col("how many of these events began")
    unended: int = col("how many of them have no end in the trace: the process ended, is still running, or the log lost it")
    time_ns: int = col("time in which at least one of them was open", unit="ns")
    self_time_ns: int = col(
        "the part of it in which no later event was open, and no other thread was compiling; over all events, self times add up "
        "to the time of the outermost events",
        unit="ns")
    is_skipped_by_hit: bool | None = col(
        "whether an AOTAutograd hit skips this phase", missing="the phase of the event is not known")
