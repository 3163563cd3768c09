"""Rows of compiles: what torch compiled and why, the symbols in it, its recompiles by reason, and where the time went."""

from __future__ import annotations

from cachescope.rows import Time, col, row, same_as

# fmt: off


@row("compiles", frozen=False)
class CompileRow:
    """One compile of one frame, or of its backward graph.

    Traces have them. A text log names those that torch says something of: recompiles (``TORCH_LOGS=recompiles``), those with graph breaks
    (``graph_breaks``) or at the recompile limit, and all but backward graphs with ``dynamo``; not when they ended, nor symbols.
    """

    run: int = col("the process, an id into runs", default=0)
    compile_id: str = col("frame / compile of that frame, without attempts", torch_name="CompileId", default="")
    segment: int = col(
        "distinguishes compiles of a run with the same compile id, as in lookups; 0 if the log does not show its beginning", default=0)
    kind: str = col(
        "first; recompile: guards of earlier compiles of the frame failed; resume: the rest of a function after a graph break; "
        "backward; limit: torch reached its recompile limit and did not compile, the row is the attempt",
        words=("first", "recompile", "resume", "backward", "limit"), default="first")
    function: str | None = col(
        "the user's function that was compiled; its caller, if torch compiles it through a wrapper",
        missing="the log does not show where the compile began", torch_name="dynamo_start", default=None)
    file: str | None = col("the file of the function", missing="as for function", default=None)
    line: int | None = col("the line of the function", missing="as for function", default=None)
    start_time: Time | None = col(
        "when it began", unit="UTC", missing="its end is not in the trace, torch did not log it, or a text log has only its graph breaks", torch_name="start_time_us", default=None)
    time_taken_ns: int | None = col(
        "how long it took, including nested compiles; for a backward graph, also the wait while another thread compiled",
        unit="ns", missing="its end is not in the log", torch_name="duration_us", default=None)
    recompile_reasons: tuple[str, ...] = col(
        "why earlier compiles of the frame did not fit, the latest first, each as text: ``0/0: n == 2``, the compile and the "
        "guard that failed",
        torch_name="recompile_reasons", default=())
    symbols: tuple[str, ...] = col("the symbols in it: see the frame symbols", torch_name="create_symbol", default=())
    graph_breaks: tuple[str, ...] = col(
        "where its graph breaks, and why: ``file:line: reason``", torch_name="dynamo_graph_break_reason", default=())
    restarts: tuple[str, ...] = col("why torch restarted the analysis within it", torch_name="restart_reasons", default=())
    error: str | None = col(
        "why it failed", missing="it did not fail, or its end is not in the log", torch_name="fail_type, fail_reason", default=None)
    collectives: tuple[str, ...] = col(
        "the collectives of the graphs that Inductor compiled in it, in order, and the waits for them; empty if there are none, "
        "if the graphs came from a cache, or if torch does not record them (2.6; 2.10 and later do)",
        torch_name="inductor_collective_schedule", default=())
    lookups: tuple[int, ...] = col(
        "the lookups that were made in it, ids into lookups; empty if none are known: caches were off, or the log does not show "
        "which compile they belong to",
        default=())
    class_name: str | None = col(
        "the class of the function's `self`, as its lookups have it", missing="none of them has it, or several classes share the method",
        default=None)
    hits: int | None = col("how many of these hit", missing="no lookups of it are known", default=None)
    full_misses: int | None = col(
        "how many missed because there was no entry, or none could be loaded", missing="as for hits", default=None)
    guard_misses: int | None = col("how many missed because guards did not hold", missing="as for hits", default=None)
    bypasses: int | None = col("how many were bypassed, or had caching switched off", missing="as for hits", default=None)
    operators: int | None = col(
        "how many operators the graph has that Dynamo made; one with no operator and no output goes to no compiler, and is not looked up",
        missing="it failed, Dynamo made no graph, it is a backward graph, or its end is not in the log", torch_name="graph_op_count", default=None)


IN_NO_TEXT_LOG = (
    "run", "time_taken_ns", "symbols", "restarts", "collectives", "lookups", "class_name", "hits", "full_misses", "guard_misses",
    "bypasses", "operators",
)
"""What no text log tells of a compile."""


@row("recorded")
class RecordedText:
    """One text that torch recorded of one compile: a graph, guards, generated code; only traces have them."""

    run: int = col("the process, an id into runs")
    compile_id: str = col("frame / compile of that frame, with the attempt if it is not the first", torch_name="CompileId")
    name: str = col("torch's name of it, as dynamo_output_graph, aot_forward_graph, inductor_output_code, dynamo_cpp_guards_str")
    file: str | None = col("the file that torch wrote it to", missing="none, or not recorded", torch_name="filename")
    text: str = col("the text", torch_name="payload")
    is_whole: bool = col("whether it has the hash that torch wrote beside it; where the log was cut or changed it has not", torch_name="has_payload")


@row("symbols", frozen=False)
class SymbolRow:
    """One size or number that became a symbol in the last attempt of one compile; only traces have them."""

    run: int = col("the process, an id into runs", default=0)
    compile_id: str = col("the compile, as in compiles", default="")
    segment: int = same_as(CompileRow, "segment", default=0)
    symbol: str = col("its name in graphs and guards", torch_name="create_symbol.symbol", default="")
    value: str | None = col(
        "its value when it was compiled", missing="not recorded, or the program computes it from data (``item()``, u0)",
        torch_name="create_symbol.val", default=None)
    source: str | None = col(
        "what it is in the program: ``L['x'].size()[0]``; if inputs share a symbol, the first of them",
        missing="not recorded, or the program computes it from data", torch_name="create_symbol.source", default=None)
    range: str | None = col("the values that it may take, without guards", missing="not recorded", torch_name="create_symbol.vr", default=None)
    function: str | None = col(
        "the function in which it became a symbol", missing="not recorded", torch_name="create_symbol.user_stack", default=None)
    file: str | None = col("the file of that function", missing="not recorded", default=None)
    line: int | None = col("the line at which it became a symbol", missing="not recorded", default=None)
    changed_from: str | None = col(
        "its value in an earlier compile, if its change caused a recompile; since then it is a symbol",
        missing="torch's recompile reasons do not name it: it was a symbol from the start, or marked as dynamic",
        torch_name="recompile_reasons", default=None)
    range_after: str | None = col(
        "the values that its guards leave: range, narrowed by guards that bound it, or bound what equals it, by whole numbers; a "
        "remainder (``Mod``) or a comparison with another symbol does not narrow it",
        missing="its range is not recorded, or it is not a whole number", default=None)
    guards: tuple[str, ...] = col(
        "the guards on it that lines of the program added, as ``file:line: s0 > 10``; guards that Inductor or AOTAutograd added "
        "are left out",
        torch_name="guard_added_fast", default=())
    guard_code: tuple[str, ...] = col("the source line of each guard; empty if not recorded (before 2.10)", default=())
    specialized: str | None = col(
        "the single value that torch specialized it to", missing="it stayed a symbol, or this is not recorded",
        torch_name="symbolic_shape_specialization", default=None)
    specialized_at: str | None = col(
        "the line that caused this, as ``file:line``", missing="it stayed a symbol, or no line of the program caused it", default=None)


@row("recompiles")
class RecompileRow:
    """One guard whose failure made torch recompile one function, the costliest first."""

    function: str | None = same_as(CompileRow, "function")
    file: str | None = same_as(CompileRow, "file")
    line: int | None = same_as(CompileRow, "line")
    class_name: str | None = same_as(CompileRow, "class_name")
    guard: str | None = col("the failed guard of the latest earlier compile, without its values", missing="no reason is recorded")
    example: str | None = col(
        "one of the reasons, as torch gave it", missing="no reason is recorded", torch_name="recompile_reasons")
    compiles: int = col("how many recompiles the guard caused, without attempts at the recompile limit")
    limits: int = col("how often the guard failed at the recompile limit, so that torch did not compile")
    time_taken_ns: int | None = col(
        "how long these compiles took; backward graphs are separate rows in compiles", unit="ns",
        missing="the log has the end of none of them")
    runs: tuple[int, ...] = col("the processes")
    compile_ids: tuple[str, ...] = col("the compiles")



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
