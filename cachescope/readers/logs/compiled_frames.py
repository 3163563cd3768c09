"""The compiles of a log: why each was made, what became a symbol in it, where its graph broke. Of a trace in a pass of its own.

torch/_dynamo/convert_frame.py writes ``dynamo_start``, torch/_dynamo/guards.py ``recompile_reasons``, torch/_dynamo/symbolic_convert.py
``dynamo_graph_break_reason``, torch/fx/experimental/symbolic_shapes.py symbols and the guards on them, torch/_inductor/debug.py
``inductor_collective_schedule`` of each graph with collectives that it compiles (seen from 2.10 on); torch/_dynamo/utils.py,
`record_compilation_metrics`, writes the metrics when a compile ends. torch 2.4 to 2.15.

That the recompile limit is reached stands in every text log, as it is a warning. That a compile begins, why again, and graph breaks need
``TORCH_LOGS=dynamo``, ``recompiles`` or ``graph_breaks``. No message says when a compile ended, or what became a symbol.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from cachescope.frames.compile_rows import CompileRow, SymbolRow
from cachescope.json_types import JsonObject
from cachescope.readers.json_record import Record, load_json
from cachescope.readers.logs.log_prefix import LogClock, time_at
from cachescope.readers.logs.text_messages import (
    FAILED_GUARD,
    FAILED_GUARD_2_4,
    GRAPH_BREAK,
    LIMIT,
    RECOMPILES,
    STARTS_TRACING,
)
from cachescope.readers.logs.trace_compiles import (
    NOWHERE,
    OF_TORCH,
    WRAP_INLINE,
    Place,
    Stacks,
    compile_id_of,
    error_in,
    first_attempt,
    frame_of,
    function_in,
    interned_string,
    place_in,
    recompile_reasons,
    squeezed,
)
from cachescope.readers.logs.trace_records import TracePass

_RECORD: Final = re.compile(
    rb'\] \{"(?:(str|dynamo_start|dynamo_output_graph|create_(?:unbacked_)?symbol|guard_added_fast|symbolic_shape_specialization'
    rb'|(?:bwd_)?compilation_metrics)"'
    rb'|artifact": \{"name": "(recompile_reasons|dynamo_graph_break_reason|inductor_collective_schedule)")'
)
_BREAK: Final = re.compile(
    r"Graph break(?: \([^)\n]*\))? in user code at (?P<file>[^\n]+):(?P<line>\d{1,9})\n"
)
# Before 2.6 in text logs alone; since then where torch leaves a whole function to Python.
_FRAME: Final = re.compile(r'^ *File "(?P<file>[^"\n]+)", line (?P<line>\d{1,9})', re.MULTILINE)
_RAISED: Final = re.compile(r"^torch\._dynamo\.exc\.\w+: (?P<reason>[^\n]*)", re.MULTILINE)
_BREAK_REASON: Final = re.compile(r"(?:Graph Break )?Reason: (?P<reason>[^\n]*)")
# torch/_dynamo/exc.py: `RecompileLimitExceeded`, before 2.6 `CacheLimitExceeded`; since 2.13 a kind of `Unsupported`.
_LIMIT: Final = re.compile(
    r"(?:Recompile|Cache)LimitExceeded|torch\._dynamo hit config\.|(?i:recompile limit exceeded)"
)
_RESUMED: Final = "torch_dynamo_resume_in_"
_NAMES: Final = re.compile(r"\b[a-z]+\d+\b")
# What runs after Dynamo has traced the program. Its guards are written in the same words where torch suppresses them
# (`ShapeEnv.suppress_guards`), and 2.15 writes stacks of its own code where the program has none.
_AFTER_TRACING: Final = re.compile(
    r"[\\/]torch[\\/](?:fx|_inductor|_subclasses|_functorch[\\/]_aot_autograd)[\\/]"
)


@dataclass(slots=True)
class CompiledFrame:
    """One compile, from its start to its end, or the compile of its backward graph, while it is read."""

    row: CompileRow
    has_ended: bool = False
    symbols: list[SymbolRow] = field(default_factory=list)
    """Those of its last attempt: each attempt begins with none."""
    attempt: int = 0
    guards: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    """By the name of a symbol, the guards on it that lines of the program added, each with its code."""
    specialized: dict[str | None, tuple[str, str | None]] = field(default_factory=dict)
    """By the name of a symbol, the one value that torch fixed it to, and the line that made it."""
    graph_breaks: list[str] = field(default_factory=list)
    collectives: list[str] = field(default_factory=list)

    @property
    def place(self) -> Place:
        """The code that is compiled."""
        return Place(self.row.function, self.row.file, self.row.line)

    @place.setter
    def place(self, place: Place) -> None:
        self.row.function, self.row.file, self.row.line = place

    def create_symbol(self, record: Record, envelope: Record, stacks: Stacks) -> None:
        """Read ``create_symbol``, or ``create_unbacked_symbol``: of a number that the program computes, which has no source."""
        name = record.text("symbol")
        if name is None:
            return
        stack = record.objects("user_stack")
        of_program = _of_program(stack, stacks)
        if "create_unbacked_symbol" in envelope.values and not of_program:
            return
        self._begin(envelope)
        made = SymbolRow(compile_id=self.row.compile_id, segment=self.row.segment, symbol=name)
        made.value, made.source, made.range = map(record.text, ("val", "source", "vr"))
        made.function, made.file, made.line = stacks.place_of(of_program or stack, envelope.wrong)
        self.symbols.append(made)

    def guard(self, record: Record, envelope: Record, stacks: Stacks) -> None:
        """Read ``guard_added_fast``: torch evaluated a condition on symbols, and relies on its outcome."""
        expr = record.text("expr")
        if expr is None or not (stack := _of_program(record.objects("user_stack"), stacks)):
            return
        self._begin(envelope)
        place, code = stacks.place_of(stack, envelope.wrong), stacks.code_of(stack, envelope.wrong)
        for name in {*_NAMES.findall(expr)}:
            self.guards.setdefault(name, []).append((f"{_at(place)}: {expr}", code or ""))

    def specialize(self, record: Record, envelope: Record, stacks: Stacks) -> None:
        """Read ``symbolic_shape_specialization``."""
        if (value := record.text("value")) is None:
            return
        place = stacks.place_of(_of_program(record.objects("user_stack"), stacks), envelope.wrong)
        self._begin(envelope)
        self.specialized[record.text("symbol")] = value, None if place.file is None else _at(place)

    def _begin(self, envelope: Record) -> None:
        attempt = envelope.whole("attempt") or 0
        if attempt != self.attempt:
            self.attempt = attempt
            self.symbols.clear()
            self.guards.clear()
            self.specialized.clear()

    def finish(self) -> None:
        """Put into the rows what is known once all of the trace is read."""
        row = self.row
        row.graph_breaks, row.collectives = tuple(self.graph_breaks), tuple(self.collectives)
        row.symbols = tuple(one.symbol for one in self.symbols)
        for symbol in self.symbols:
            guards = self.guards.get(symbol.symbol, ())
            symbol.guards = tuple(text for text, _ in guards)
            symbol.guard_code = tuple(code for _, code in guards)
            symbol.specialized, symbol.specialized_at = self.specialized.get(symbol.symbol, (None, None))
        if row.kind == "backward":
            return
        if row.error is not None and _LIMIT.search(row.error):
            row.kind = "limit"
        elif not row.compile_id.endswith("/0"):
            row.kind = "recompile"
        elif (row.function or "").startswith(_RESUMED):
            row.kind = "resume"


def _at(place: Place) -> str:
    return f"{place.file or '?'}:{place.line or '?'}"


def _of_program(stack: list[JsonObject], stacks: Stacks) -> list[JsonObject]:
    """A stack down to the program's own line, from which modules and functions of torch were called; empty if it is none of the program."""
    files = [stacks.file_of(frame) or "" for frame in stack]
    if any(_AFTER_TRACING.search(file) for file in files):
        return []
    own = [place for place, file in enumerate(files) if not OF_TORCH.search(file)]
    return stack[: own[-1] + 1] if own else stack


_ReadSymbol = Callable[[CompiledFrame, Record, Record, Stacks], None]
_SYMBOLS: Final[dict[str, _ReadSymbol]] = {
    "create_symbol": CompiledFrame.create_symbol,
    "create_unbacked_symbol": CompiledFrame.create_symbol,
    "guard_added_fast": CompiledFrame.guard,
    "symbolic_shape_specialization": CompiledFrame.specialize,
}


class CompiledFrames(TracePass):
    """The compiles of one trace, in the order in which they began; and what could not be read."""

    def __init__(self, path: str, size: int | None = None) -> None:
        super().__init__(path, size)
        self.rows: list[CompiledFrame] = []
        self._stacks = Stacks()
        self._segments: Counter[str] = Counter()
        self._current: dict[str, CompiledFrame] = {}
        self._place_of_frame: dict[str, Place] = {}
        self._reasons: dict[str, tuple[str, ...]] = {}
        # Of a backward graph that is compiled later: its row begins with its metrics.
        self._collectives_since: dict[str, list[str]] = defaultdict(list)
        self._read: dict[bytes, Callable[[Record, str, bytes], None]] = {
            b"dynamo_start": self._start,
            b"dynamo_output_graph": self._graph,
            **{kind.encode(): partial(self._symbol, kind) for kind in _SYMBOLS},
            b"recompile_reasons": self._recompile,
            b"dynamo_graph_break_reason": self._break,
            b"inductor_collective_schedule": self._schedule,
            b"compilation_metrics": self._metrics,
            b"bwd_compilation_metrics": self._metrics,
        }
        for found in self.find(_RECORD):
            kind, line = found.match[1] or found.match[2], found.line[found.line.index(found.match[0]) + 2 :]
            if kind == b"str" and (string := interned_string(line)) is not None:
                self._stacks.note_string(*string)
            if kind == b"str" or self.is_repeated(found):
                continue
            try:
                envelope = Record(load_json(line))
            except ValueError as error:
                if not found.is_cut:
                    self.problem(found.at, "not_json", f"{kind.decode()}: {error}")
                continue
            compile_id = compile_id_of(envelope)
            if compile_id is not None:
                self._read[kind](envelope, first_attempt(compile_id), found.text)
            if envelope.wrong:
                self.problem(found.at, "bad_value", f"{kind.decode()}: " + "; ".join(envelope.wrong))
        for one in self.rows:
            one.finish()

    def _start(self, envelope: Record, compile_id: str, _: bytes) -> None:
        start = envelope.record("dynamo_start")
        self._collectives_since.pop(compile_id, None)
        self._segments[compile_id] += 1
        one = self._add(compile_id)
        one.place = self._stacks.place_of([] if start is None else start.objects("stack"), envelope.wrong)
        self._place_of_frame[frame_of(compile_id)] = one.place

    def _graph(self, _: Record, compile_id: str, payload: bytes) -> None:
        one = self._open(compile_id)
        if one is not None and WRAP_INLINE.search(one.place.file or ""):
            one.place = function_in(payload, 0, len(payload)) or one.place

    def _add(self, compile_id: str, place: Place = NOWHERE) -> CompiledFrame:
        one = self._current[compile_id] = self._append(compile_id, place)
        one.row.recompile_reasons = self._reasons.pop(compile_id, ())
        # Those of a compile whose beginning is lost are not about a later one of the same id.
        self._reasons.clear()
        return one

    def _append(self, compile_id: str, place: Place) -> CompiledFrame:
        row = CompileRow(compile_id=compile_id, segment=self._segments[compile_id], **place._asdict())
        self.rows.append(CompiledFrame(row))
        return self.rows[-1]

    def _open(self, compile_id: str) -> CompiledFrame | None:
        """The compile with an id that has begun and not ended."""
        one = self._current.get(compile_id)
        return None if one is None or one.has_ended else one

    def _recompile(self, envelope: Record, compile_id: str, payload: bytes) -> None:
        """Torch writes the reasons before it begins."""
        self._reasons[compile_id] = recompile_reasons(payload)

    def _symbol(self, kind: str, envelope: Record, compile_id: str, _: bytes) -> None:
        one = self._open(compile_id)
        if one is not None and (record := envelope.record(kind)) is not None:
            _SYMBOLS[kind](one, record, envelope, self._stacks)

    def _break(self, envelope: Record, compile_id: str, payload: bytes) -> None:
        one = self._current.get(compile_id)
        # That a whole function is left to Python is written when its compile has failed and ended (2.7 and later).
        if one is not None and (not one.has_ended or one.row.error is not None):
            one.graph_breaks.append(graph_break(payload.decode("utf-8", "replace")))

    def _schedule(self, envelope: Record, compile_id: str, payload: bytes) -> None:
        try:
            loaded = load_json(payload)
        except ValueError as error:
            envelope.wrong.append(f"its schedule is not JSON: {error}")
            return
        names = [one for one in loaded if isinstance(one, str)] if isinstance(loaded, list) else []
        one = self._open(compile_id)
        (self._collectives_since[compile_id] if one is None else one.collectives).extend(names)

    def _metrics(self, envelope: Record, compile_id: str, _: bytes) -> None:
        metrics = envelope.record("compilation_metrics") or envelope.record("bwd_compilation_metrics")
        if metrics is None:
            return
        error = error_in(metrics)
        is_limit = error is not None and _LIMIT.search(error) is not None
        # torch 2.5 and 2.6 write the limit into the record of backward graphs as well.
        is_in_other = "bwd_compilation_metrics" in envelope.values and not is_limit
        one = self._open(compile_id)
        if metrics.flag("is_forward") is False or is_in_other:
            forward = self._current.get(compile_id)
            place = NOWHERE if forward is None else forward.place
            one = self._append(compile_id, place)
            one.row.kind = "backward"
            one.collectives = self._collectives_since.pop(compile_id, [])
        elif one is None:
            # At the limit nothing is compiled. Else its beginning is not in the log, and ids may have begun again since.
            place = self._place_of_frame.get(frame_of(compile_id), NOWHERE) if is_limit else NOWHERE
            one = self._add(compile_id, place)
        if one.place.file is None and (named := place_in(metrics)).file is not None:
            one.place = named
        one.has_ended, row = True, one.row
        row.error, row.start_time = error, metrics.moment_of_us("start_time_us")
        row.time_taken_ns = metrics.duration_ns("duration_us", 1000)
        if row.time_taken_ns is None:  # torch 2.4 and 2.5 write seconds alone
            row.time_taken_ns = metrics.duration_ns("entire_frame_compile_time_s", 10**9)
        row.operators = metrics.whole("graph_op_count")
        row.restarts = tuple(map(_first_line, metrics.texts("restart_reasons") or ()))


def graph_break(text: str) -> str:
    """Where a graph breaks, and why, of what torch says of it in a trace or in a text log."""
    where = _BREAK.match(text)
    if where is None:
        # The innermost line of the program's stack.
        *_, where = [None, *_FRAME.finditer(text.partition("\nTraceback ")[0])]
    return ("" if where is None else f"{where['file']}:{int(where['line'])}: ") + _reason_of_break(text)


def _reason_of_break(text: str) -> str:
    """The first line of the reason; since 2.10 a sentence on what torch was doing precedes it."""
    match = (_BREAK_REASON if _BREAK.match(text) else _RAISED).search(text)
    if match is None:
        return _first_line(text)
    if match["reason"].endswith(":"):
        following = (line.strip() for line in text[match.end() :].split("\n"))
        return next((line for line in following if line), match["reason"])
    return match["reason"]


def _first_line(text: str) -> str:
    return text.strip().split("\n", 1)[0]


class TextCompiles:
    """The compiles of one process of a text log, in the order in which the log first tells of them."""

    def __init__(self) -> None:
        self._read: list[CompiledFrame] = []
        # When each began, on the clock of the log.
        self._clocks: list[int | None] = []
        self._segments: Counter[str] = Counter()
        self._of_id: dict[str, CompiledFrame] = {}
        # Of those that torch has named with its reasons, and not begun to trace.
        self._announced: set[str] = set()

    def of(self, compile_id: str | None) -> CompiledFrame | None:
        """The latest compile with an id."""
        return None if compile_id is None else self._of_id.get(first_attempt(compile_id))

    def segment_of(self, compile_id: str | None) -> int:
        """Which of the compiles with an id is the latest, from 1; 0 if the log shows no beginning of one."""
        return self._segments[first_attempt(compile_id or "")]

    def count_lookup(self, compile_id: str | None) -> None:
        """Count a lookup of AOTAutograd as a compile of its own, but where the log shows by itself that the compile began."""
        compile_id = first_attempt(compile_id or "")
        one = self._of_id.get(compile_id)
        if one is None or not one.row.segment:
            self._segments[compile_id] += 1

    def read(self, text: str, attempt: str, clock_us: int | None) -> None:
        """Read a message, if it is one of compiles; `attempt` is the compile id in its prefix."""
        compile_id = first_attempt(attempt)
        one = self._of_id.get(compile_id)
        if match := RECOMPILES.match(text):
            one = self._begin(compile_id, _place(match), clock_us)
            reasons = FAILED_GUARD.findall(text) or FAILED_GUARD_2_4.findall(text)
            one.row.recompile_reasons = tuple(map(squeezed, reasons))
            self._announced.add(compile_id)
        elif match := STARTS_TRACING.fullmatch(text):
            is_first = attempt == compile_id and compile_id not in self._announced
            if one is None or is_first:
                self._begin(compile_id, _place(match), clock_us)
            self._announced.discard(compile_id)
        elif match := LIMIT.match(text):
            if one is None or compile_id not in self._announced:
                one = self._add(compile_id, _place(match), clock_us)
                one.row.recompile_reasons = (squeezed(match["reason"]),)
            else:
                # It was announced, and is not compiled.
                self._segments[compile_id] -= 1
                one.row.segment -= 1
            one.row.error = match["error"]
            self._announced.discard(compile_id)
        elif GRAPH_BREAK.match(text):
            one = one or self._add(compile_id, NOWHERE, None)
            one.graph_breaks.append(graph_break(text))

    def _begin(self, compile_id: str, place: Place, clock_us: int | None) -> CompiledFrame:
        self._segments[compile_id] += 1
        return self._add(compile_id, place, clock_us)

    def _add(self, compile_id: str, place: Place, clock_us: int | None) -> CompiledFrame:
        row = CompileRow(compile_id=compile_id, segment=self._segments[compile_id], **place._asdict())
        one = self._of_id[compile_id] = CompiledFrame(row)
        self._read.append(one)
        self._clocks.append(clock_us)
        return one

    def rows(self, clock: LogClock | None) -> list[CompileRow]:
        """The compiles as they are read."""
        for one, at in zip(self._read, self._clocks, strict=True):
            one.row.start_time = time_at(clock, at)
            one.finish()
        return [one.row for one in self._read]


def _place(match: re.Match[str]) -> Place:
    return Place(match["function"], match["file"], int(match["line"]))
