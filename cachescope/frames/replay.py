"""Frames of a replay under other keys: lookups that would have hit, and fields that would help."""

from __future__ import annotations

from typing import Final

from cachescope.columns import FLAG, REAL, TEXT, TUPLE, WHOLE, Column, Frame
from cachescope.frames.answers import HIT_RATES

WHAT_IF: Final = Frame(
    "what_if",
    "one lookup, before and after",
    (
        Column("lookup", WHOLE, "an id into lookups"),
        Column("run", WHOLE, "the process, an id into runs"),
        Column("cache", TEXT, "aotautograd or fxgraph"),
        Column("cache_key", TEXT, "torch's key", missing="bypassed before there was a key"),
        Column("what_if_key", TEXT, "cachescope's own key over the remaining hash details, never one of torch's",
               missing="there is no key"),
        Column("outcome", TEXT, "as recorded"),
        Column("outcome_after", TEXT, "what it would have been", missing="cannot be known: no details, or guards"),
        Column("changed_side", FLAG, "whether a miss would have hit",
               missing="cannot be known, for example because its outcome was not seen"),
        Column("time_won_ns", WHOLE, "compile time that the hit would have saved", "ns",
               "it would not have hit, or not recorded (AOTAutograd: counted at its FX graphs)"),
        Column("note", TEXT, "a note on the result", missing="nothing to note"),
    ),
)  # fmt: skip

WHAT_IF_RATES: Final = Frame(
    "what_if_rates",
    "all lookups, before or after",
    (
        Column("when", TEXT, "before (as recorded) or after"),
        *HIT_RATES.columns,
        Column(
            "undecided",
            WHOLE,
            "misses for which it cannot be known whether they would have hit; counted as misses",
        ),
    ),
)

WHAT_IF_CAUSES: Final = Frame(
    "what_if_causes",
    "one cause of misses",
    (
        Column("cause", WHOLE, "an id into causes"),
        Column("verdict", TEXT, "verdict of its root misses"),
        Column("summary", TEXT, "what it is, in a few words"),
        Column("misses", WHOLE, "misses that have this cause"),
        Column("hits_after", WHOLE, "how many of them would have hit"),
        Column("unknown", WHOLE, "how many of them cannot be decided"),
        Column("time_won_ns", WHOLE, "compile time saved", "ns", "none, or not recorded"),
        Column("why", TEXT, "why some of its misses remain, or may remain, although all its changed fields are left out",
               missing="none remains, or its fields still count"),
    ),
)  # fmt: skip

CAUSE_SAVINGS: Final = Frame(
    "cause_savings",
    "one cause of misses other than first lookups, and the effect of leaving out its own changed fields",
    (
        Column("cause", WHOLE, "an id into causes"),
        Column("verdict", TEXT, "verdict of its root misses"),
        Column("summary", TEXT, "what it is, in a few words"),
        Column("fields", TUPLE, "its changed fields; empty for other verdicts than key_changed"),
        Column("misses", WHOLE, "misses that have this cause"),
        Column("time_lost_ns", WHOLE, "compile time of those misses", "ns", "not recorded"),
        Column("hits_after", WHOLE, "how many of them hit if these fields do not count"),
        Column("time_won_ns", WHOLE, "compile time of those", "ns", "none, or not recorded"),
        Column("unknown", WHOLE, "how many of its misses cannot be decided"),
        Column("staggered", WHOLE, "how many of the remaining misses would hit if the first compile of each key had ended before "
               "the others began"),
        Column("staggered_time_ns", WHOLE, "compile time of those", "ns", "none, or not recorded"),
        Column("why", TEXT, "why some of its misses remain or may remain", missing="none remains"),
    ),
)  # fmt: skip

WHAT_IF_RUNS: Final = Frame(
    "what_if_runs",
    "one run",
    (
        Column("run", WHOLE, "an id into runs"),
        Column("lookups", WHOLE, "its lookups"),
        Column("hits", WHOLE, "lookups that hit"),
        Column("hits_after", WHOLE, "lookups that would have hit"),
        Column("unknown", WHOLE, "misses for which it cannot be known whether they would have hit"),
        Column("hit_rate", REAL, "hits / lookups whose outcome was seen", missing="there are none"),
        Column(
            "hit_rate_after",
            REAL,
            "the same for hits_after; what cannot be known counts as missed",
            missing="there are none",
        ),
        Column("time_won_ns", WHOLE, "compile time saved", "ns", "none, or not recorded"),
    ),
)

WHAT_IF_DIFFERENCES: Final = Frame(
    "what_if_differences",
    "one recorded outcome that differs from what the stored entries imply",
    (
        Column("lookup", WHOLE, "an id into lookups"),
        Column("run", WHOLE, "the process, an id into runs"),
        Column("outcome", TEXT, "as recorded"),
        Column("expected", TEXT, "the outcome implied by the earlier lookups and entries"),
        Column(
            "reason", TEXT, "why it was different, as far as is known; every replay treats it as an event"
        ),
    ),
)

WHAT_IF_WARNINGS: Final = Frame(
    "what_if_warnings",
    "two entries that would share a key but have different generated code, or different kernels compiled from it",
    (
        Column("what_if_key", TEXT, "the key they would share"),
        Column("what", TEXT, "what differs: generated code or compiled kernels"),
        Column("entry", WHOLE, "an id into entries"),
        Column("other_entry", WHOLE, "an id into entries"),
        Column("cache_key", TEXT, "torch's key of the one"),
        Column("other_key", TEXT, "torch's key of the other"),
        Column("code_key", TEXT, "generated code of the one"),
        Column("other_code_key", TEXT, "generated code of the other"),
    ),
)

SENSITIVITY: Final = Frame(
    "sensitivity",
    "one field, or one small set of fields",
    (
        Column("fields", TUPLE, "the fields that would not count"),
        Column("misses_alone", WHOLE, "misses that hit if exactly these do not count"),
        Column("time_alone_ns", WHOLE, "compile time of those misses", "ns", "not recorded"),
        Column("misses_together", WHOLE, "how many of them no subset of these fields turns into hits"),
        Column("staggered", WHOLE, "further misses that would hit if the first compile of each key had ended before the others began: their runs "
               "compiled at the same time"),
        Column("staggered_time_ns", WHOLE, "compile time of those", "ns", "none, or not recorded"),
        Column("needs_all", FLAG, "an interaction: no subset of these fields turns any of them into a hit"),
        Column("unknown", WHOLE, "misses whose outcome would not be known"),
        Column("example_lookup", WHOLE, "the costliest of those misses"),
        Column("affects", TEXT, "what torch's source shows about the fields, the strongest effect among them: "
               "graph, inputs, generated code, unknown or host; see cachescope.fields()"),
        Column("same_code", WHOLE, "pairs of entries that differ only in these fields and have the same code"),
        Column("different_code", WHOLE, "pairs of entries that differ only in these fields and have different code"),
        Column("safety", TEXT, "whether they may be left out, judged by both: safe, unknown, unsafe, or program (what is compiled)"),
        Column("advice", TEXT, "the same in words"),
    ),
)  # fmt: skip

EVIDENCE: Final = Frame(
    "evidence",
    "one set of fields that are the only difference between entries of one graph",
    (
        Column("fields", TUPLE, "the fields"),
        Column("pairs", WHOLE, "pairs of FX entries that differ only in these fields"),
        Column("same_code", WHOLE, "how many of them have the same generated code, and no compiled kernel known to differ"),
        Column("same_binaries", WHOLE, "how many of those have compiled kernels that are known to be equal"),
        Column("different_code", WHOLE, "pairs with different generated code or different compiled kernels"),
        Column("entry", WHOLE, "an example, with different code if there is one"),
        Column("other_entry", WHOLE, "the other entry of the example"),
    ),
)  # fmt: skip
