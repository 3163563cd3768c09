"""The compiles of a trace, to which its lookups belong: the compiled code, whether the compile ended, and how.

torch/_dynamo/convert_frame.py writes ``dynamo_start`` when a compile begins; torch/_dynamo/utils.py,
`record_compilation_metrics`, writes ``compilation_metrics`` when it ends, with or without an error.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from itertools import islice
from typing import Any, Final, NamedTuple

from cachescope.frames.recorded_rows import LookupRow
from cachescope.json_types import JsonObject
from cachescope.readers.json_record import Record, load_json
from cachescope.readers.reading import Compile, Process
from cachescope.terms import AOTAUTOGRAD, FXGRAPH, INTERRUPTED
from cachescope.wording import place_text

NO_COMPILE: Final = "None"
"""What torch prints as the id of a compile where there is none, as in what AOTInductor compiles."""

# torch/_logging/structured.py, `intern_string`: texts that many stacks contain are written once.
_STRING: Final = re.compile(rb'\{"str": \[("(?:[^"\\]|\\.)*"), (\d+)\]')
_DYNAMO: Final = re.compile(r"[\\/]torch[\\/]_dynamo[\\/]")
_MODULE: Final = re.compile(r"[\\/]torch[\\/]nn[\\/]modules[\\/]module\.py$")
_WRAPPERS: Final = re.compile(r"[\\/]torch[\\/](?:_dynamo[\\/]|nn[\\/]modules[\\/]module\.py$)")
# Where a stack of torch 2.4 ends: above the code that is compiled.
_ABOVE_CODE: Final = re.compile(r"[\\/]torch[\\/]_dynamo[\\/]convert_frame\.py$")
# `wrap_inline`, through which Dynamo compiles what its rules skip.
WRAP_INLINE: Final = re.compile(r"[\\/]torch[\\/]_dynamo[\\/]external_utils\.py$")
OF_TORCH: Final = re.compile(r"[\\/](?:site|dist)-packages[\\/]torch[\\/]")
# torch/fx/graph.py, `_ParsedStackTrace.get_summary_str`: the comment above the operators of one line of the program.
_LINE_OF_GRAPH: Final = re.compile(rb"^\t? *+# File: ([^\n]*?), code: ", re.MULTILINE)
_PLACE: Final = re.compile(r"(.+):(\d{1,9}) in (.+)")
# What Dynamo's graph prints of types and sizes, and where a line of the program stands; in its own statements, what may follow from inputs.
_OF_VALUES: Final = re.compile(rb' ?: "[^"\n]*"|# File: (?:(?!# File: )[^\n])*?, code: ')
_OF_INPUTS: Final = re.compile(
    rb"(?<![\w.])(?:\d+|torch\.(?:b?float|double|half|complex|u?int|bool)\w*)(?![\w.])"
)
_MOST_FAILED: Final = 100
# torch/_dynamo/exc.py; since 2.7 Inductor's own errors have a class of their own.
_OF_BACKEND: Final = ("BackendCompilerFailed", "InductorError", INTERRUPTED)


class Place(NamedTuple):
    """Where code is: its function, its file and a line."""

    function: str | None
    file: str | None
    line: int | None


NOWHERE: Final = Place(None, None, None)


class Stacks:
    """The stacks of a trace: their files are texts that were written once, and have numbers."""

    def __init__(self) -> None:
        self.strings: dict[str, str] = {}
        """Texts that stacks refer to, by their numbers."""
        self.note_string = self.strings.__setitem__

    def place_of(self, stack: list[JsonObject], wrong: list[str]) -> Place:
        """The code that is compiled: the last frame of a stack; where a module calls it through a wrapper of torch, who calls the module.

        Of a wrapper that no module calls, as of a function under ``torch.no_grad()``, the stack leaves out the caller since torch 2.9.
        In torch 2.4 no stack has the code: the callers alone are in it.
        """
        *before, last = ["", *(self.file_of(frame) or "" for frame in stack[-2:])]
        if not stack or _ABOVE_CODE.search(last):
            return NOWHERE
        is_of_function = WRAP_INLINE.search(last) and not any(map(_WRAPPERS.search, before))
        frame = Record(stack[-1] if is_of_function else self._users(stack), wrong)
        return Place(frame.text("name"), self.file_of(frame.values), frame.whole("line"))

    def code_of(self, stack: list[JsonObject], wrong: list[str]) -> str | None:
        """The text of the line at `place_of`; torch 2.10 and later write it."""
        return Record(self._users(stack), wrong).text("loc") if stack else None

    def file_of(self, frame: JsonObject) -> str | None:
        """The file of one frame of a stack."""
        file = frame.get("filename")
        return file if isinstance(file, str) else self.strings.get(str(file))

    def caller_of(self, stack: list[JsonObject]) -> str | None:
        """The file that calls the user's code, past Dynamo's own; None if what is compiled is a wrapper's."""
        if not stack or self._users(stack) is not stack[-1]:
            return None
        files = (self.file_of(frame) or "" for frame in reversed(stack[:-1]))
        return next((file for file in files if not _DYNAMO.search(file)), "")

    def _users(self, stack: list[JsonObject]) -> JsonObject:
        users = (frame for frame in reversed(stack) if not _WRAPPERS.search(self.file_of(frame) or ""))
        return next(users, stack[-1])


class TraceCompiles:
    """The compiles of one trace, while its records are read."""

    def __init__(self) -> None:
        self.rows: list[Compile] = []
        self.segments: Counter[str] = Counter()
        self.classes: dict[tuple[str, int], str] = {}
        """The class of the `self` of each compile, by its id and segment."""
        self.devices: dict[tuple[str, int], str] = {}
        """The default device of each compile, likewise."""
        self._callers: dict[str, str | None] = {}
        """The file that calls what is compiled under an id; None if that is a wrapper, not the user's own code."""
        self._place_of_frame: dict[str, Place] = {}
        self._stacks = Stacks()
        self.note_string = self._stacks.note_string
        self._current: dict[str, Compile] = {}
        self._aot: dict[tuple[str, int], LookupRow] = {}
        self._forward: dict[str, tuple[Compile | None, int]] = {}
        """By compile id, the latest compile of a forward graph, and its segment: a backward graph that is compiled later is of that."""
        self._open: dict[str, tuple[int, list[LookupRow]]] = {}
        """Lookups whose compile has no recorded end so far, each with how many compiles had ended before the first."""
        self._nowhere: dict[tuple[str, int], list[LookupRow]] = {}
        """By compile id and segment, lookups of which no beginning says what is compiled: it is lost, or of torch 2.4."""
        self._ended = 0
        self._reasons: dict[str, str] = {}

    def note_reasons(self, compile_id: str | None, reasons: Sequence[str]) -> None:
        """Note why the compile that begins next is a recompile."""
        if compile_id is not None and reasons:
            self._reasons[compile_id] = "\n".join(reasons)

    def begin(self, compile_id: str, at_us: int | None, stack: list[JsonObject], wrong: list[str]) -> None:
        """Note that a compile begins; the last frame of the stack is the code that is compiled."""
        self.segments[compile_id] += 1
        place = self._place_of_frame[frame_of(compile_id)] = self._stacks.place_of(stack, wrong)
        one = Compile(compile_id, at_us, *place)
        one.recompile_reasons = self._reasons.pop(compile_id, None)
        # Those of a compile whose beginning is lost are not about a later one of the same id.
        self._reasons.clear()
        self._callers[compile_id] = self._stacks.caller_of(stack)
        self._add(one)

    def note_graph(
        self, compile_id: str | None, traced: tuple[str, str], place: Sequence[Any] | None
    ) -> None:
        """Note the graph that Dynamo traced, and the function that a wrapper calls: it is written before its lookups."""
        if (one := self._current.get(first_attempt(compile_id or ""))) is None:
            return
        one.traced_graph, one.traced_code = traced
        if place is not None and WRAP_INLINE.search(one.file or ""):
            one.function, one.file, one.line = place

    def note_guards(self, compile_id: str | None, class_name: str, device: str, is_self: bool) -> None:
        """Note what guards say of the code that is compiled: the default device, and the class of its `self`. They are written after its lookups.

        A decorated method has it as the first of its `*args`, if a module calls it.
        """
        found = first_attempt(compile_id or "")
        compiled, caller = (found, self.segments[found]), self._callers.get(found)
        if device:
            self.devices[compiled] = device
        if class_name and caller is not None and (is_self or _MODULE.search(caller)):
            self.classes[compiled] = class_name

    def note(self, lookup: LookupRow, *, is_over: bool, direction: str | None = None) -> None:
        """Note a lookup; `is_over` if torch writes its record only after it has compiled and stored what was missed."""
        compile_id = lookup.compile_id or ""
        name = first_attempt(compile_id)
        lookup.segment, one = self.segments[name], self._current.get(name)
        if direction == "forward":
            self._forward[name] = one, lookup.segment
        elif direction == "backward":
            one, _ = self._forward.get(name, (one, None))
        elif direction is None and lookup.cache == FXGRAPH:
            self._forward.pop(name, None)
        if one is not None:
            one.tell(lookup)
        if lookup.file is None:
            self._nowhere.setdefault((name, lookup.segment), []).append(lookup)
        if lookup.cache == AOTAUTOGRAD:
            self._aot[compile_id, lookup.segment] = lookup
        if is_over:
            lookup.compile_ended = True
        elif lookup.compile_id is not None:
            self._open.setdefault(compile_id, (self._ended, []))[1].append(lookup)

    def end(
        self, found: str | None, at_us: int | None, error: str | None, place: Place, is_backward: bool = False
    ) -> None:
        """Note that the compile with this id, or of its backward graph, ended, with or without an error, and the code that its metrics name."""
        if found is None:
            return
        name = first_attempt(found)
        one, segment = self._current.get(name), self.segments[name]
        if is_backward:
            # After a reset, another compile may have the id.
            one, segment = self._forward.get(name, (one, segment))
        if one is None:
            # It began before the log; or torch records no beginning, at its recompile limit.
            one = Compile(name, None, *self._place_of_frame.get(frame_of(name), NOWHERE))
            self._add(one)
        if one.file is None and place.file is not None:
            one.function, one.file, one.line = place
            for lookup in self._nowhere.pop((name, segment), ()):
                one.tell(lookup)
        one.ended_us, one.error = at_us, error
        self._ended += 1
        for lookup in self._open.pop(found, (0, []))[1]:
            lookup.compile_ended, lookup.compile_error = True, error
        aot = self._aot.get((found, segment))
        if error is not None and aot is not None and aot.outcome != "hit":
            # Its entry is stored with the backward graph, which may be compiled much later.
            aot.compile_error = error

    def finish(self) -> None:
        """Note that the log ends: compiles that are still open did not end in it, or if another ended since, may have without a record."""
        for ended, lookups in self._open.values():
            for lookup in lookups:
                lookup.compile_ended = None if ended < self._ended else False

    def _add(self, one: Compile) -> None:
        self.rows.append(one)
        self._current[one.compile_id] = one


def first_attempt(compile_id: str) -> str:
    """The compile id without the number of its attempt: torch notes the beginning once, before it attempts anything."""
    return compile_id.partition("_")[0]


def frame_of(compile_id: str) -> str:
    """The frame that a compile is of: compile ``0/1`` is the second of frame ``0``, and ``!2/0/0`` one of compiled autograd."""
    return compile_id.rpartition("/")[0]


def failed_compiles(process: Process) -> tuple[str, ...]:
    """What failed to compile and why, each once."""
    found: dict[str, None] = {}
    for one in process.compiles:
        if one.error is not None:
            place = place_text(one.function, one.file, one.line)
            # torch says which backend raised, and what on the next line.
            line, _, more = one.error.partition("\n")
            line += f" {more.partition(chr(10))[0]}" if line.endswith(" raised:") else ""
            found[f"{place or one.compile_id}: {line}"] = None
    return tuple(islice(found, _MOST_FAILED))


def unrecorded_compiles(process: Process) -> tuple[str, ...]:
    """What was being compiled when the backend failed, the compile was interrupted, or the log ends, and no lookup of it is recorded."""
    looked_up = {first_attempt(lookup.compile_id or "") for lookup in process.lookups}
    found = (
        place_text(one.function, one.file, one.line)
        for one in process.compiles
        if one.compile_id not in looked_up
        and (one.ended_us is None if one.error is None else one.error.startswith(_OF_BACKEND))
    )
    return tuple(islice(dict.fromkeys(place for place in found if place is not None), _MOST_FAILED))


def tell_of_compiles(process: Process, lookups: list[LookupRow]) -> None:
    """Complete lookups that only the text log has, above all those of failed compiles, from the process's trace."""
    rows = process.compiles
    for lookup in lookups:
        at_us = process.clock_us(lookup.time)
        if at_us is None or lookup.compile_id is None:
            continue
        compile_id = first_attempt(lookup.compile_id)
        own = [row for row in rows if row.compile_id == compile_id and (row.began_us or 0) <= at_us]
        if not own:
            continue
        one = own[-1]
        one.tell(lookup)
        # A text log may count the compiles of an id otherwise.
        lookup.segment = sum(row.began_us is not None for row in own)
        lookup.compile_error = one.error
        if one.ended_us is not None:
            lookup.compile_ended = True
        elif not any((row.ended_us or 0) > at_us for row in rows):
            lookup.compile_ended = False


def compile_id_of(envelope: Record) -> str | None:
    """The compile id of an envelope, as torch prints it: torch/_guards.py, `CompileId.__str__` and `TraceId.__str__` (attempt)."""
    names = ("compiled_autograd_id", "frame_id", "frame_compile_id", "attempt")
    autograd, frame, number, attempt = map(envelope.whole, names)
    if frame is None:
        return None if autograd is None else f"!{autograd}"
    text = f"{frame}/{number}" if autograd is None else f"!{autograd}/{frame}/{number}"
    return f"{text}_{attempt}" if attempt else text


def recompile_reasons(payload: bytes) -> tuple[str, ...]:
    """Why a function is compiled again, the latest earlier compile first: torch writes one reason as plain text, several as a list."""
    try:
        loaded = load_json(payload)
    except ValueError:
        # A list that has lost lines says nothing for certain.
        loaded = [] if payload.startswith(b"[") else payload.decode("utf-8", "replace")
    reasons = loaded if isinstance(loaded, list) else [loaded]
    return tuple(squeezed(one) for one in reasons if isinstance(one, str))


def function_in(data: bytes | bytearray, start: int, end: int) -> Place | None:
    """The one function of the program that a graph has lines of, at the first of them; None if it has those of several, or of none."""
    found: dict[tuple[str, str], int] = {}
    for line in _LINE_OF_GRAPH.finditer(data, start, end):
        place = _PLACE.fullmatch(line[1].decode("utf-8", "replace"))
        if place and not OF_TORCH.search(place[1]):
            found.setdefault((place[3], place[1]), int(place[2]))
            if len(found) > 1:
                return None
    return next((Place(*code, number) for code, number in found.items()), None)


def without_values(graph: bytes) -> bytes:
    """Dynamo's graph without the types and sizes of its values, and without where the program's lines stand."""
    return _OF_VALUES.sub(lambda found: b"# " if found[0].startswith(b"#") else b"", graph)


def traced_in(data: bytes) -> tuple[str, str]:
    """Hashes of Dynamo's graph: without the types and sizes of its values; and also without whole numbers and dtypes but those of the program's lines."""
    graph = without_values(data)
    lines = (
        line if line.lstrip().startswith(b"#") else _OF_INPUTS.sub(b"", line) for line in graph.split(b"\n")
    )
    return sha256(graph).hexdigest()[:16], sha256(b"\n".join(lines)).hexdigest()[:16]


def squeezed(reason: str) -> str:
    """A reason on one line: torch pads the guard, and puts the line of code after it."""
    return " ".join(reason.strip().partition("\n")[0].split())


def interned_string(line: bytes) -> tuple[str, str] | None:
    """The number of a text that stacks refer to, and the text; None if the line contains none."""
    match = _STRING.match(line)
    return None if match is None else (match[2].decode(), _text(match[1]))


def place_in(metrics: Record) -> Place:
    """The code that metrics name: none of a backward graph, and a wrapper of torch does not say what it wraps."""
    file = metrics.text("co_filename")
    if _WRAPPERS.search(file or ""):
        return NOWHERE
    return Place(metrics.text("co_name"), file, metrics.whole("co_firstlineno"))


def error_in(metrics: Record) -> str | None:
    """The error in metrics; None if the compile succeeded."""
    kind, reason = metrics.text("fail_type"), metrics.text("fail_reason")
    # A frame that is skipped has no code either, and no backend compiled for it.
    has_begun = metrics.duration_ns("backend_compile_time_s", 10**9) is not None
    if kind is None and has_begun and metrics.flag("has_guarded_code") is False:
        return INTERRUPTED
    return f"{kind}: {reason}" if kind and reason else kind


def _text(literal: bytes) -> str:
    try:
        return str(load_json(literal))
    except ValueError:
        return literal.decode("utf-8", "replace")
