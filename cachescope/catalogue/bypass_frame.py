"""The frame of the reasons for which torch does not cache a graph."""

from __future__ import annotations

from typing import Final

from cachescope.columns import TEXT, TUPLE, Column, Frame

BYPASSES: Final = Frame(
    "bypasses",
    "one reason for which torch does not cache a graph",
    (
        Column("message", TEXT, "torch's reason; … stands for what it puts in; empty where it gives none",
               torch_name="cache_bypass_reason"),
        Column("caches", TUPLE, "the caches whose lookups say it"),
        Column("versions", TUPLE, "the versions read that have it"),
        Column("first_version", TEXT, "the first of the versions read that has it"),
        Column("last_version", TEXT, "the last of the versions read that has it"),
        Column("meaning", TEXT, "when torch gives it"),
        Column("advice", TEXT, "what lifts it, or that nothing does"),
        Column("basis", TEXT, "what the advice rests on: tried with a torch, or torch's sources alone"),
        Column("raised_in", TUPLE, "the files and functions of torch that raise it",
               torch_name="BypassFxGraphCache, BypassAOTAutogradCache"),
    ),
)  # fmt: skip
