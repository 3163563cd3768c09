"""Frames of compiles: what torch compiled and why, the symbols in it, and its recompiles by reason."""

from __future__ import annotations

from typing import Final

from cachescope.columns import TEXT, TIME, TUPLE, WHOLE, Column, Frame

_SEGMENT: Final = Column(
    "segment",
    WHOLE,
    "distinguishes compiles of a run with the same compile id, as in lookups; 0 if the log does not show its beginning",
)
_FUNCTION: Final = Column("function", TEXT, "the user's function that was compiled; its caller, if torch compiles it through a wrapper",
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
        Column("kind", TEXT, "first; recompile: guards of earlier compiles of the frame failed; resume: the rest of a function "
               "after a graph break; backward; limit: torch reached its recompile limit and did not compile, the row is the attempt"),
        _FUNCTION,
        _FILE,
        _LINE,
        Column("start_time", TIME, "when it began", "UTC", "its end is not in the log, or torch did not log it",
               "start_time_us"),
        Column("time_taken_ns", WHOLE, "how long it took, including nested compiles; for a backward graph, also the wait while another thread compiled", "ns",
               "its end is not in the log", "duration_us"),
        Column("recompile_reasons", TUPLE, "why earlier compiles of the frame did not fit, the latest first, each as text: "
               "``0/0: n == 2``, the compile and the guard that failed", torch_name="recompile_reasons"),
        Column("symbols", TUPLE, "the symbols in it: see the frame symbols", torch_name="create_symbol"),
        Column("graph_breaks", TUPLE, "where its graph breaks, and why: ``file:line: reason``",
               torch_name="dynamo_graph_break_reason"),
        Column("restarts", TUPLE, "why torch restarted the analysis within it", torch_name="restart_reasons"),
        Column("error", TEXT, "why it failed", missing="it did not fail, or its end is not in the log",
               torch_name="fail_type, fail_reason"),
        Column("collectives", TUPLE, "the collectives of the graphs that Inductor compiled in it, in order, and the waits for them; empty if there are none, if the "
               "graphs came from a cache, or if torch does not record them (2.6; 2.10 and later do)", torch_name="inductor_collective_schedule"),
        Column("lookups", TUPLE, "the lookups that were made in it, ids into lookups; empty if none are known: caches were off, "
               "or the log does not show which compile they belong to"),
        Column("hits", WHOLE, "how many of these hit", missing="no lookups of it are known"),
        Column("full_misses", WHOLE, "how many missed because there was no entry, or none could be loaded",
               missing="as for hits"),
        Column("guard_misses", WHOLE, "how many missed because guards did not hold", missing="as for hits"),
        Column("bypasses", WHOLE, "how many were bypassed", missing="as for hits"),
    ),
)  # fmt: skip

SYMBOLS: Final = Frame(
    "symbols",
    "one size or number that became a symbol in the last attempt of one compile; only traces have them",
    (
        Column("run", WHOLE, "the process, an id into runs"),
        Column("compile_id", TEXT, "the compile, as in compiles"),
        _SEGMENT,
        Column("symbol", TEXT, "its name in graphs and guards", torch_name="create_symbol.symbol"),
        Column("value", TEXT, "its value when it was compiled", missing="not recorded, or the program computes it from data (``item()``, u0)",
               torch_name="create_symbol.val"),
        Column("source", TEXT, "what it is in the program: ``L['x'].size()[0]``; if inputs share a symbol, the first of them",
               missing="not recorded, or the program computes it from data", torch_name="create_symbol.source"),
        Column("range", TEXT, "the values that it may take, without guards", missing="not recorded",
               torch_name="create_symbol.vr"),
        Column("function", TEXT, "the function in which it became a symbol", missing="not recorded",
               torch_name="create_symbol.user_stack"),
        Column("file", TEXT, "the file of that function", missing="not recorded"),
        Column("line", WHOLE, "the line at which it became a symbol", missing="not recorded"),
        Column("changed_from", TEXT, "its value in an earlier compile, if its change caused a recompile; since then it is a symbol",
               missing="torch's recompile reasons do not name it: it was a symbol from the start, or marked as dynamic",
               torch_name="recompile_reasons"),
        Column("range_after", TEXT, "the values that its guards leave: range, narrowed by guards that bound it, or bound what equals it, "
               "by whole numbers; a remainder (``Mod``) or a comparison with another symbol does not narrow it",
               missing="its range is not recorded, or it is not a whole number"),
        Column("guards", TUPLE, "the guards on it that lines of the program added, as ``file:line: s0 > 10``; guards that Inductor or AOTAutograd "
               "added are left out", torch_name="guard_added_fast"),
        Column("guard_code", TUPLE, "the source line of each guard; empty if not recorded (before 2.10)"),
        Column("specialized", TEXT, "the single value that torch specialized it to", missing="it stayed a symbol, or this is not recorded",
               torch_name="symbolic_shape_specialization"),
        Column("specialized_at", TEXT, "the line that caused this, as ``file:line``",
               missing="it stayed a symbol, or no line of the program caused it"),
    ),
)  # fmt: skip

RECOMPILES: Final = Frame(
    "recompiles",
    "one guard whose failure made torch recompile one function, the costliest first; only traces have them",
    (
        _FUNCTION,
        _FILE,
        _LINE,
        Column("guard", TEXT, "the failed guard of the latest earlier compile, without its values",
               missing="torch gave no reason"),
        Column("example", TEXT, "one of the reasons, as torch gave it", missing="torch gave no reason",
               torch_name="recompile_reasons"),
        Column("compiles", WHOLE, "how many recompiles the guard caused, without attempts at the recompile limit"),
        Column("limits", WHOLE, "how often the guard failed at the recompile limit, so that torch did not compile"),
        Column("time_taken_ns", WHOLE, "how long these compiles took; backward graphs are separate rows in compiles", "ns", "the log has the end of none of them"),
        Column("runs", TUPLE, "the processes"),
        Column("compile_ids", TUPLE, "the compiles"),
    ),
)  # fmt: skip
