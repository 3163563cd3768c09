"""The frame of phases: where compile time went."""

from __future__ import annotations

from typing import Final

from cachescope.columns import FLAG, TEXT, WHOLE, Column, Frame

PHASES: Final = Frame(
    "phases",
    "the events of one name in one compile of one process",
    (
        Column("run", WHOLE, "the process, an id into runs"),
        Column("compile_id", TEXT, "frame / compile of that frame; an event without its own has that of the event "
               "around it", missing="no compile: it happened while the program ran", torch_name="CompileId"),
        Column("segment", WHOLE, "distinguishes compiles of a run with the same compile id, as in lookups"),
        Column("phase", TEXT, "the part of a compile that the event belongs to; ``not named:`` and its name if the event is not known"),
        Column("event", TEXT, "the name of the event", torch_name="chromium_event name"),
        Column("count", WHOLE, "how many of these events began"),
        Column("unended", WHOLE, "how many of them have no end in the trace: the process ended, is still running, or the log lost it"),
        Column("time_ns", WHOLE, "time in which at least one of them was open", "ns"),
        Column("self_time_ns", WHOLE, "the part of it in which no later event was open, and no other thread was compiling; over all events, self times add up to "
               "the time of the outermost events", "ns"),
        Column("is_skipped_by_hit", FLAG, "whether an AOTAutograd hit skips this phase", missing="the phase of the event is not known"),
    ),
)  # fmt: skip
