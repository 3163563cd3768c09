"""Frames of compiles: what torch compiled and why, the symbols in it, and its recompiles by reason."""

from __future__ import annotations

from typing import Final

from cachescope.columns import TEXT, TIME, TUPLE, WHOLE, Column, Frame

_SEGMENT: Final = Column(
    "segment",
    WHOLE,
    "tells compiles of one run with one compile id apart, as in lookups; 0 where the log does not show that it began",
)
_FUNCTION: Final = Column("function", TEXT, "the user's function that was compiled",
                          missing="the log does not show where the compile began", torch_name="dynamo_start")  # fmt: skip
_FILE: Final = Column("file", TEXT, "the file of the function", missing="as for function")
_LINE: Final = Column("line", WHOLE, "the line of the function", missing="as for function")

COMPILES: Final = Frame(
    "compiles",
    "one compile of one frame, or of its backward graph; only traces have them",
    (
        Column("run", WHOLE, "the process, an id into runs"),
        Column("compile_id", TEXT, "frame / compile of that frame, without attempts", torch_name="CompileId"),
        _SEGMENT,
        Column("kind", TEXT, "first; recompile, where guards of earlier compiles of the frame failed; resume, the rest of a function "
               "after a graph break; backward; limit, where torch reached its recompile limit: it did not compile, and the row is the attempt"),
        _FUNCTION,
        _FILE,
        _LINE,
        Column("start_time", TIME, "when it began", "UTC", "it has no end in the log, or torch did not write it",
               "start_time_us"),
        Column("time_taken_ns", WHOLE, "how long it took, with the compiles that were made within it", "ns",
               "it has no end in the log", "duration_us"),
        Column("recompile_reasons", TUPLE, "why earlier compiles of the frame did not fit, the latest first, each as a text: "
               "``0/0: n == 2``, the compile and its guard that failed", torch_name="recompile_reasons"),
        Column("symbols", TUPLE, "the symbols in it: see the frame symbols", torch_name="create_symbol"),
        Column("graph_breaks", TUPLE, "where its graph ends early, and why: ``file:line: reason``",
               torch_name="dynamo_graph_break_reason"),
        Column("restarts", TUPLE, "why torch began anew within it", torch_name="restart_reasons"),
        Column("error", TEXT, "why it failed", missing="it did not fail, or has no end in the log",
               torch_name="fail_type, fail_reason"),
        Column("lookups", TUPLE, "the lookups that were made in it, ids into lookups; empty where none are known: caches were off, "
               "or the log cannot tell which compile they were made in"),
        Column("hits", WHOLE, "how many of these hit", missing="no lookups of it are known"),
        Column("full_misses", WHOLE, "how many missed, of every entry under their key or because there was none",
               missing="as for hits"),
        Column("guard_misses", WHOLE, "how many missed because guards did not hold", missing="as for hits"),
        Column("bypasses", WHOLE, "how many were bypassed", missing="as for hits"),
    ),
)  # fmt: skip

SYMBOLS: Final = Frame(
    "symbols",
    "one size or number of the program that became a symbol in one compile; only traces have them",
    (
        Column("run", WHOLE, "the process, an id into runs"),
        Column("compile_id", TEXT, "the compile, as in compiles"),
        _SEGMENT,
        Column("symbol", TEXT, "its name in graphs and guards", torch_name="create_symbol.symbol"),
        Column("value", TEXT, "its value when it was compiled", missing="not recorded", torch_name="create_symbol.val"),
        Column("source", TEXT, "what it is in the program: ``L['x'].size()[0]``", missing="not recorded",
               torch_name="create_symbol.source"),
        Column("range", TEXT, "the values that it may take, before guards", missing="not recorded",
               torch_name="create_symbol.vr"),
        Column("function", TEXT, "the function in which it became a symbol", missing="not recorded",
               torch_name="create_symbol.user_stack"),
        Column("file", TEXT, "the file of that function", missing="not recorded"),
        Column("line", WHOLE, "the line at which it became one", missing="not recorded"),
    ),
)  # fmt: skip

RECOMPILES: Final = Frame(
    "recompiles",
    "one guard for which one function was compiled again, the costliest first; only traces have them",
    (
        _FUNCTION,
        _FILE,
        _LINE,
        Column("guard", TEXT, "the guard that failed, of the latest of the earlier compiles, without its values",
               missing="torch gave no reason"),
        Column("example", TEXT, "one of the reasons as torch gave it", missing="torch gave no reason",
               torch_name="recompile_reasons"),
        Column("compiles", WHOLE, "how many compiles the guard caused; attempts at the recompile limit are not counted"),
        Column("limits", WHOLE, "how often the guard failed at the recompile limit, and torch did not compile"),
        Column("time_taken_ns", WHOLE, "how long these compiles took; backward graphs are rows of their own in compiles", "ns", "none of them has an end in the log"),
        Column("runs", TUPLE, "the processes"),
        Column("compile_ids", TUPLE, "the compiles"),
    ),
)  # fmt: skip
