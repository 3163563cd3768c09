"""What each lookup must be called where something before it was not stored, written down from what was done.

In the notation of ../scenarios.py, with the kind of an `entry_unavailable` behind a colon; kinds parted by ``|`` are both
true. The recordings are those of ../data/unsaved_scenarios.py. A trace alone does not tell of a lookup of the FX cache
whose compile failed or did not end (torch writes about it afterwards): such a line begins with ``text``.
"""

from __future__ import annotations

Run = list[str]

COLD: Run = ["A full_miss first_lookup", "F full_miss first_lookup <"]
COLD_TRAINING: Run = [*COLD, "B full_miss first_lookup <"]
CUT_SHORT: Run = [COLD[0], f"text {COLD[1]}"]
HIT: Run = ["A hit", "F hit"]
HIT_TRAINING: Run = [*HIT, "B hit"]


def again(kind: str) -> Run:
    """Both are compiled anew, for the same reason."""
    return [f"A full_miss entry_unavailable: {kind}", f"F full_miss entry_unavailable <: {kind}"]


FAILED: list[Run] = [CUT_SHORT, again("failed compile"), HIT]
ENDED: list[Run] = [CUT_SHORT, again("process ended"), HIT]
# torch said why: it may not write, or there is no room; and the compile failed of it.
NOWHERE = "failed compile|not saved"
# The AOTAutograd entry is found, the FX entry it points to is not; then the graph is looked up by itself.
FX_ENTRY_MISSING: Run = [
    "A full_miss entry_unavailable <",
    "F full_miss entry_unavailable: not saved",
    "F full_miss entry_unavailable <: not saved",
]

UNSAVED: dict[str, list[Run]] = {
    "failed_codegen": FAILED,
    "failed_suppressed": FAILED,
    "failed_backward": [
        [*COLD, "text B full_miss first_lookup <"],
        [
            "A full_miss entry_unavailable: failed compile",
            "F hit",
            "B full_miss entry_unavailable <: failed compile",
        ],
        HIT_TRAINING,
    ],
    "killed_compiling": ENDED,
    "exited_compiling": ENDED,
    "killed_before_save": [COLD, ["A full_miss entry_unavailable: process ended", "F hit"], HIT],
    # The AOTAutograd entry would have been stored with the backward graph, which was never compiled.
    "killed_after_forward": [
        COLD,
        ["A full_miss entry_unavailable: process ended|never stored", "F hit", "B full_miss first_lookup <"],
        HIT_TRAINING,
    ],
    "read_only_directory": [CUT_SHORT, again(NOWHERE), HIT],
    "disk_full": [CUT_SHORT, again(NOWHERE), HIT],
    "other_owner": [
        COLD,
        [
            "A full_miss entry_unavailable <",
            "F full_miss entry_unavailable: load error",
            "text F full_miss entry_unavailable <: load error",
        ],
        HIT,
    ],
    "entries_not_writable": [COLD, again("not saved"), again("not saved"), HIT],
    "fxgraph_full": [COLD, FX_ENTRY_MISSING, FX_ENTRY_MISSING, HIT],
}

# Why the first compile failed, as torch wrote it into its metrics; part of it, as the rest names paths.
FAILURES: dict[str, str] = {
    "failed_codegen": "InductorError: ValueError: no code for this graph",
    "failed_suppressed": "InductorError: ValueError: no code for this graph",
    "failed_backward": "no code for this graph",
    "read_only_directory": "PermissionError: [Errno 13] Permission denied",
    "disk_full": "OSError: [Errno 28] No space left on device",
}

# Those of UNSAVED that were recorded.
RECORDED: dict[str, tuple[str, ...]] = {
    "2.13.0": (
        "failed_codegen",
        "failed_suppressed",
        "failed_backward",
        "killed_compiling",
        "exited_compiling",
        "killed_before_save",
        "killed_after_forward",
        "read_only_directory",
        "disk_full",
        "other_owner",
        "entries_not_writable",
        "fxgraph_full",
    ),
}
