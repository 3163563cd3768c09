"""Frames of compiles: what torch compiled and why, the symbols in it, and its recompiles by reason."""

from __future__ import annotations

from typing import Final

from cachescope.columns import TEXT, TIME, TUPLE, WHOLE, Column, Frame

_SEGMENT: Final = Column(
    "segment",
    WHOLE,
    "tells compiles of one run with one compile id apart, as in lookups; 0 where the log does not show that it began",
)
_FUNCTION: Final = Column("function", TEXT, "the user's function that was compiled; its caller, where torch compiles it through a wrapper of its own",
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
        Column("collectives", TUPLE, "the collectives of the graphs that Inductor compiled in it, in their order, and the waits for them; empty where there are none, where the "
               "graphs came from a cache, and where torch does not record them (2.6; 2.10 and later do)", torch_name="inductor_collective_schedule"),
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
    "one size or number of the program that became a symbol in one compile, in the last attempt of it; only traces have them",
    (
        Column("run", WHOLE, "the process, an id into runs"),
        Column("compile_id", TEXT, "the compile, as in compiles"),
        _SEGMENT,
        Column("symbol", TEXT, "its name in graphs and guards", torch_name="create_symbol.symbol"),
        Column("value", TEXT, "its value when it was compiled", missing="not recorded; a number that the program computes from data (``item()``, u0) has none",
               torch_name="create_symbol.val"),
        Column("source", TEXT, "what it is in the program: ``L['x'].size()[0]``; where inputs share a symbol, the first of them",
               missing="not recorded; the program computes it from data", torch_name="create_symbol.source"),
        Column("range", TEXT, "the values that it may take, before guards", missing="not recorded",
               torch_name="create_symbol.vr"),
        Column("function", TEXT, "the function in which it became a symbol", missing="not recorded",
               torch_name="create_symbol.user_stack"),
        Column("file", TEXT, "the file of that function", missing="not recorded"),
        Column("line", WHOLE, "the line at which it became one", missing="not recorded"),
        Column("changed_from", TEXT, "its value in an earlier compile, where torch compiled again because it changed: since then it is a symbol",
               missing="torch's reasons to compile again do not name it: it was a symbol from the start, or marked as dynamic",
               torch_name="recompile_reasons"),
        Column("range_after", TEXT, "the values that remain once its guards hold: range, narrowed by guards that are bounds of it, or of what equals it, "
               "in whole numbers; a remainder (``Mod``) or a comparison with another symbol does not narrow it",
               missing="its range is not recorded, or it is no whole number"),
        Column("guards", TUPLE, "the guards on it that lines of the program added, as ``file:line: s0 > 10``; those that Inductor or AOTAutograd "
               "added are not among them", torch_name="guard_added_fast"),
        Column("guard_code", TUPLE, "the text of the line of each guard; empty where it is not recorded (before 2.10)"),
        Column("specialized", TEXT, "the one value that torch fixed it to in the end", missing="it stayed a symbol, or that is not recorded",
               torch_name="symbolic_shape_specialization"),
        Column("specialized_at", TEXT, "the line that made torch do so, as ``file:line``",
               missing="it stayed a symbol, or no line of the program did"),
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
