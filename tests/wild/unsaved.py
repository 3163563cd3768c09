"""What each lookup must be called where something before it was not stored, written down from what was done.

In the notation of ../scenarios.py, with the kind of an `entry_unavailable` behind a colon; kinds parted by ``|`` are both
true. The recordings are those of ../data/unsaved_scenarios.py.
"""

from scenarios import COLD, COLD_TRAINING, HIT, HIT_TRAINING, Run


def again(kind: str) -> Run:
    """Both are compiled anew, for the same reason."""
    return [f"A full_miss entry_unavailable: {kind}", f"F full_miss entry_unavailable <: {kind}"]


FAILED: list[Run] = [COLD, again("failed compile"), HIT]
ENDED: list[Run] = [COLD, again("process ended"), HIT]
# Ctrl-C ends the compile and the process.
INTERRUPTED: list[Run] = [COLD, again("failed compile|interrupted|process ended"), HIT]
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
        COLD_TRAINING,
        [
            "A full_miss entry_unavailable: failed compile",
            "F hit",
            "B full_miss entry_unavailable <: failed compile",
        ],
        HIT_TRAINING,
    ],
    "failed_compiler": FAILED,
    "interrupted": INTERRUPTED,
    "interrupted_second": [[*COLD, *COLD], [*HIT, *INTERRUPTED[1]], HIT * 2],
    "killed_compiling": ENDED,
    "exited_compiling": ENDED,
    "killed_before_save": [COLD, ["A full_miss entry_unavailable: process ended", "F hit"], HIT],
    # The AOTAutograd entry would have been stored with the backward graph, which was never compiled.
    "killed_after_forward": [
        COLD,
        ["A full_miss entry_unavailable: process ended|never stored", "F hit", "B full_miss first_lookup <"],
        HIT_TRAINING,
    ],
    "read_only_directory": [COLD, again(NOWHERE), HIT],
    "disk_full": [COLD, again(NOWHERE), HIT],
    "other_owner": [
        COLD,
        [
            "A full_miss entry_unavailable <",
            "F full_miss entry_unavailable: load error",
            "F full_miss entry_unavailable <: load error",
        ],
        HIT,
    ],
    "entries_not_writable": [COLD, again("not saved"), again("not saved"), HIT],
    "fxgraph_full": [COLD, FX_ENTRY_MISSING, FX_ENTRY_MISSING, HIT],
}

# Why a compile failed, where one did, as torch wrote it into its metrics; part of it, as the rest names paths. Of Ctrl-C it writes nothing.
FAILURES: dict[str, str] = {
    "failed_codegen": "ValueError: no code for this graph",
    "failed_suppressed": "ValueError: no code for this graph",
    "failed_backward": "ValueError: no code for this graph",
    "failed_compiler": "CppCompileError: C++ compile error",
    "read_only_directory": "PermissionError: [Errno 13] Permission denied",
    "disk_full": "OSError: [Errno 28] No space left on device",
    "entries_not_writable": "PermissionError: [Errno 13] Permission denied",
    "other_owner": "PermissionError: [Errno 13] Permission denied",
    "interrupted": "interrupted, as by Ctrl-C",
    "interrupted_second": "interrupted, as by Ctrl-C",
}

# Those that were recorded of every version.
_EVERYWHERE = (
    "failed_codegen", "failed_backward", "failed_compiler", "interrupted", "killed_compiling", "other_owner",
    "entries_not_writable",
)  # fmt: skip
# Those of UNSAVED that were recorded; of 2.15 not all.
RECORDED: dict[str, tuple[str, ...]] = {
    "2.13.0": tuple(UNSAVED),
    "2.6.0": (*_EVERYWHERE, "interrupted_second"),
    "2.10.0": (*_EVERYWHERE, "interrupted_second"),
    "2.15.0": (*_EVERYWHERE, "interrupted_second"),
}


# 2.6 goes on where it cannot write an FX entry, and fails where it cannot write an AOTAutograd entry.
_NOT_WRITTEN_2_6: Run = ["A full_miss entry_unavailable: failed compile|not saved", again("not saved")[1]]
_OTHERWISE = {("2.6.0", "entries_not_writable"): [COLD, _NOT_WRITTEN_2_6, _NOT_WRITTEN_2_6, HIT]}


def expectation(version: str, name: str) -> list[Run]:
    """What must be told of a recording; no run where it is none of these."""
    return _OTHERWISE.get((version, name)) or UNSAVED.get(name, [])


def failed_runs(version: str, name: str) -> set[int]:
    if (version, name) == ("2.6.0", "entries_not_writable"):
        return {0, 1}
    if name == "other_owner":
        return {1}
    return {0} if name in FAILURES and name != "entries_not_writable" else set()
