"""The compiles of a TORCH_TRACE file: why each was made, what became a symbol in it, where its graph broke. In a pass of its own.

torch/_dynamo/convert_frame.py writes ``dynamo_start``, torch/_dynamo/guards.py ``recompile_reasons``, torch/_dynamo/symbolic_convert.py
``dynamo_graph_break_reason``, torch/fx/experimental/symbolic_shapes.py symbols and the guards on them, torch/_inductor/debug.py
``inductor_collective_schedule`` of each graph with collectives that it compiles (seen from 2.10 on); torch/_dynamo/utils.py,
`record_compilation_metrics`, writes the metrics when a compile ends. torch 2.4 to 2.15.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple

from cachescope.json_types import JsonObject
from cachescope.readers.json_record import Record, load_json
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
# Before 2.6 in text logs alone; since then where torch leaves a whole frame to Python ("skip: ").
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


class ShapeGuard(NamedTuple):
    """A guard on symbols that a line of the program added, and that line."""

    expr: str
    place: Place
    code: str | None


class Specialization(NamedTuple):
    """The one value that torch fixed a symbol to, and the line that made it."""

    value: str
    place: Place


@dataclass(slots=True)
class Symbol:
    """A size or a number of the program that became a symbol."""

    name: str
    value: str | None
    source: str | None
    range: str | None
    place: Place
    guards: list[ShapeGuard] = field(default_factory=list)
    specialization: Specialization | None = None


@dataclass(slots=True)
class Symbols:
    """The symbols of one compile, of its last attempt: each attempt begins with none."""

    rows: list[Symbol] = field(default_factory=list)
    attempt: int = 0

    def create(self, record: Record, envelope: Record, stacks: Stacks) -> None:
        """Read ``create_symbol``, or ``create_unbacked_symbol``: of a number that the program computes, which has no source."""
        name = record.text("symbol")
        if name is None:
            return
        stack = record.objects("user_stack")
        of_program = _of_program(stack, stacks)
        if "create_unbacked_symbol" in envelope.values and not of_program:
            return
        self._begin(envelope)
        values = (record.text("val"), record.text("source"), record.text("vr"))
        self.rows.append(Symbol(name, *values, stacks.place_of(of_program or stack, envelope.wrong)))

    def guard(self, record: Record, envelope: Record, stacks: Stacks) -> None:
        """Read ``guard_added_fast``: torch evaluated a condition on symbols, and relies on its outcome."""
        expr = record.text("expr")
        if expr is None or not (stack := _of_program(record.objects("user_stack"), stacks)):
            return
        self._begin(envelope)
        place, code = stacks.place_of(stack, envelope.wrong), stacks.code_of(stack, envelope.wrong)
        names = set(_NAMES.findall(expr))
        for symbol in self.rows:
            if symbol.name in names:
                symbol.guards.append(ShapeGuard(expr, place, code))

    def specialize(self, record: Record, envelope: Record, stacks: Stacks) -> None:
        """Read ``symbolic_shape_specialization``."""
        if (value := record.text("value")) is None:
            return
        place = stacks.place_of(_of_program(record.objects("user_stack"), stacks), envelope.wrong)
        self._begin(envelope)
        for symbol in self.rows:
            if symbol.name == record.text("symbol"):
                symbol.specialization = Specialization(value, place)

    def _begin(self, envelope: Record) -> None:
        attempt = envelope.whole("attempt") or 0
        if attempt != self.attempt:
            self.attempt = attempt
            self.rows.clear()


def _of_program(stack: list[JsonObject], stacks: Stacks) -> list[JsonObject]:
    """A stack down to the program's own line, from which modules and functions of torch were called; empty if it is none of the program."""
    files = [stacks.file_of(frame) or "" for frame in stack]
    if any(_AFTER_TRACING.search(file) for file in files):
        return []
    own = [place for place, file in enumerate(files) if not OF_TORCH.search(file)]
    return stack[: own[-1] + 1] if own else stack


_ReadSymbol = Callable[[Symbols, Record, Record, Stacks], None]
_SYMBOLS: Final[dict[str, _ReadSymbol]] = {
    "create_symbol": Symbols.create,
    "create_unbacked_symbol": Symbols.create,
    "guard_added_fast": Symbols.guard,
    "symbolic_shape_specialization": Symbols.specialize,
}


class GraphBreak(NamedTuple):
    """Where a graph ends, and why."""

    file: str | None
    line: int | None
    reason: str


@dataclass(slots=True)
class CompiledFrame:
    """One compile, from its start to its end, or the compile of its backward graph."""

    compile_id: str
    segment: int
    place: Place = NOWHERE
    is_backward: bool = False
    has_ended: bool = False
    start_ns: int | None = None
    time_taken_ns: int | None = None
    recompile_reasons: tuple[str, ...] = ()
    symbols: Symbols = field(default_factory=Symbols)
    graph_breaks: list[GraphBreak] = field(default_factory=list)
    restarts: tuple[str, ...] = ()
    error: str | None = None
    collectives: tuple[str, ...] = ()
    operators: int | None = None

    @property
    def kind(self) -> str:
        """Why it was compiled: ``first``, ``recompile``, ``resume``, ``backward``; or that it was not: ``limit``."""
        if self.is_backward:
            return "backward"
        if self.error is not None and _LIMIT.search(self.error):
            return "limit"
        if not self.compile_id.endswith("/0"):
            return "recompile"
        return "resume" if (self.place.function or "").startswith(_RESUMED) else "first"


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
        self._collectives_since: dict[str, tuple[str, ...]] = {}
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
        for found in self._find(_RECORD):
            kind, line = found.match[1] or found.match[2], found.line[found.line.index(found.match[0]) + 2 :]
            if kind == b"str" and (string := interned_string(line)) is not None:
                self._stacks.note_string(*string)
            if kind == b"str" or self._is_repeated(found):
                continue
            try:
                envelope = Record(load_json(line))
            except ValueError as error:
                if not found.is_cut:
                    self._problem(found.at, "not_json", f"{kind.decode()}: {error}")
                continue
            compile_id = compile_id_of(envelope)
            if compile_id is not None:
                self._read[kind](envelope, first_attempt(compile_id), found.text)
            if envelope.wrong:
                self._problem(found.at, "bad_value", f"{kind.decode()}: " + "; ".join(envelope.wrong))

    def _start(self, envelope: Record, compile_id: str, _: bytes) -> None:
        start = envelope.record("dynamo_start")
        frame = frame_of(compile_id)
        self._collectives_since.pop(compile_id, None)
        if compile_id.endswith("/0"):
            # Ids may begin again: what was written for compiles whose beginning was lost is about other code.
            self._reasons = {name: why for name, why in self._reasons.items() if frame_of(name) != frame}
        self._segments[compile_id] += 1
        one = self._add(CompiledFrame(compile_id, self._segments[compile_id]))
        one.place = self._stacks.place_of([] if start is None else start.objects("stack"), envelope.wrong)
        self._place_of_frame[frame] = one.place

    def _graph(self, _: Record, compile_id: str, payload: bytes) -> None:
        one = self._open(compile_id)
        if one is not None and WRAP_INLINE.search(one.place.file or ""):
            one.place = function_in(payload, 0, len(payload)) or one.place

    def _add(self, one: CompiledFrame) -> CompiledFrame:
        one.recompile_reasons = self._reasons.pop(one.compile_id, ())
        self.rows.append(one)
        self._current[one.compile_id] = one
        return one

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
            _SYMBOLS[kind](one.symbols, record, envelope, self._stacks)

    def _break(self, envelope: Record, compile_id: str, payload: bytes) -> None:
        # That a whole function is left to Python is written when its compile has ended (2.7 to 2.9).
        if (one := self._current.get(compile_id)) is not None:
            one.graph_breaks.append(graph_break(payload.decode("utf-8", "replace")))

    def _schedule(self, envelope: Record, compile_id: str, payload: bytes) -> None:
        try:
            loaded = load_json(payload)
        except ValueError as error:
            envelope.wrong.append(f"its schedule is not JSON: {error}")
            return
        names = tuple(one for one in loaded if isinstance(one, str)) if isinstance(loaded, list) else ()
        if (one := self._open(compile_id)) is not None:
            one.collectives += names
        else:
            before = self._collectives_since.get(compile_id, ())
            self._collectives_since[compile_id] = before + names

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
            one = CompiledFrame(compile_id, self._segments[compile_id], place, is_backward=True)
            one.collectives = self._collectives_since.pop(compile_id, ())
            self.rows.append(one)
        elif one is None:
            # At the limit nothing is compiled. Else its beginning is not in the log, and ids may have begun again since.
            place = self._place_of_frame.get(frame_of(compile_id), NOWHERE) if is_limit else NOWHERE
            one = self._add(CompiledFrame(compile_id, self._segments[compile_id], place))
        if one.place.file is None and (named := place_in(metrics)).file is not None:
            one.place = named
        one.has_ended, one.error = True, error
        one.start_ns = metrics.moment_of_us("start_time_us")
        one.time_taken_ns = metrics.duration_ns("duration_us", 1000)
        if one.time_taken_ns is None:  # torch 2.4 and 2.5 write seconds alone
            one.time_taken_ns = metrics.duration_ns("entire_frame_compile_time_s", 10**9)
        one.operators = metrics.whole("graph_op_count")
        one.restarts = tuple(map(_first_line, metrics.texts("restart_reasons") or ()))


def graph_break(text: str) -> GraphBreak:
    """Read what torch says of a graph break, in a trace or in a text log."""
    where = _BREAK.match(text)
    if where is None:
        # The innermost line of the program's stack.
        *_, where = [None, *_FRAME.finditer(text.partition("\nTraceback ")[0])]
    file, line = (None, None) if where is None else (where["file"], int(where["line"]))
    return GraphBreak(file, line, _reason_of_break(text))


def _reason_of_break(text: str) -> str:
    """The first line of the reason; since 2.10 a sentence on what torch was doing precedes it."""
    match = _BREAK_REASON.search(text) or _RAISED.search(text)
    if match is None:
        return _first_line(text)
    if match["reason"].endswith(":"):
        following = (line.strip() for line in text[match.end() :].split("\n"))
        return next((line for line in following if line), match["reason"])
    return match["reason"]


def _first_line(text: str) -> str:
    return text.strip().split("\n", 1)[0]
