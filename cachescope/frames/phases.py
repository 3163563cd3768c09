"""The frame of phases: where the time of compiling went."""

from __future__ import annotations

from typing import Final

from cachescope.columns import FLAG, TEXT, WHOLE, Column, Frame

PHASES: Final = Frame(
    "phases",
    "the events of one name in one compile of one process",
    (
        Column("run", WHOLE, "the process, an id into runs"),
        Column("compile_id", TEXT, "frame / compile of that frame; of an event that does not say its own, that of the event "
               "around it", missing="no compile: something that was done as the program ran", torch_name="CompileId"),
        Column("segment", WHOLE, "tells compiles of one run with one compile id apart, as in lookups"),
        Column("phase", TEXT, "the part of a compile that the event belongs to; ``not named:`` and its name if that is not known"),
        Column("event", TEXT, "the name of the event", torch_name="chromium_event name"),
        Column("count", WHOLE, "how many of these events began"),
        Column("unended", WHOLE, "how many of them the trace has no end of: the process ended, still runs, or its log lost it"),
        Column("time_ns", WHOLE, "time in which one of them was open", "ns"),
        Column("self_time_ns", WHOLE, "the part of it in which no later event was open; over all events these add up to "
               "the time of the outermost ones", "ns"),
        Column("is_skipped_by_hit", FLAG, "whether an AOTAutograd hit skips this phase", missing="the phase of the event is not known"),
    ),
)  # fmt: skip
