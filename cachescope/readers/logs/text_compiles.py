"""What a text log tells of compiles: where Dynamo begins, why it compiles again, when it no longer does, where graphs break.

That the recompile limit is reached stands in every log, as it is a warning. The others need ``TORCH_LOGS=dynamo``, ``recompiles`` or
``graph_breaks``. No message says when a compile ended, or what became a symbol.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable

from cachescope.readers.json_record import Record, load_json
from cachescope.readers.logs.compiled_frames import CompiledFrame, GraphBreak, graph_break
from cachescope.readers.logs.log_prefix import LogClock
from cachescope.readers.logs.text_messages import (
    FAILED_GUARD,
    FAILED_GUARD_2_4,
    GRAPH_BREAK,
    LIMIT,
    RECOMPILES,
    STARTS_TRACING,
)
from cachescope.readers.logs.trace_compiles import NOWHERE, Place, first_attempt, squeezed


class TextCompiles:
    """The compiles of one process, in the order in which the log first tells of them."""

    def __init__(self) -> None:
        self._rows: list[CompiledFrame] = []
        # When each began, on the clock of the log.
        self._clocks: list[int | None] = []
        self._segments: Counter[str] = Counter()
        self._of_id: dict[str, CompiledFrame] = {}
        # Of those that torch has named with its reasons, and not begun to trace.
        self._announced: set[str] = set()

    def of(self, compile_id: str | None) -> CompiledFrame | None:
        """The latest compile with an id."""
        return None if compile_id is None else self._of_id.get(first_attempt(compile_id))

    def read(self, text: str, attempt: str, clock_us: int | None) -> None:
        """Read a message, if it is one of compiles; `attempt` is the compile id in its prefix."""
        compile_id = first_attempt(attempt)
        one = self._of_id.get(compile_id)
        if match := RECOMPILES.match(text):
            one = self._begin(compile_id, _place(match), clock_us)
            reasons = FAILED_GUARD.findall(text) or FAILED_GUARD_2_4.findall(text)
            one.recompile_reasons = tuple(map(squeezed, reasons))
            self._announced.add(compile_id)
        elif match := STARTS_TRACING.fullmatch(text):
            is_first = attempt == compile_id and compile_id not in self._announced
            if one is None or is_first:
                self._begin(compile_id, _place(match), clock_us)
            self._announced.discard(compile_id)
        elif match := LIMIT.match(text):
            if one is None or compile_id not in self._announced:
                one = self._add(compile_id, _place(match), clock_us)
                one.recompile_reasons = (squeezed(match["reason"]),)
            else:
                # It was announced, and is not compiled.
                self._segments[compile_id] -= 1
                one.segment -= 1
            one.error = match["error"]
            self._announced.discard(compile_id)
        elif GRAPH_BREAK.match(text):
            one = one or self._add(compile_id, NOWHERE, None)
            one.graph_breaks.append(graph_break(text))

    def _begin(self, compile_id: str, place: Place, clock_us: int | None) -> CompiledFrame:
        self._segments[compile_id] += 1
        return self._add(compile_id, place, clock_us)

    def _add(self, compile_id: str, place: Place, clock_us: int | None) -> CompiledFrame:
        one = self._of_id[compile_id] = CompiledFrame(compile_id, self._segments[compile_id], place)
        self._rows.append(one)
        self._clocks.append(clock_us)
        return one

    def as_json(self, clock: LogClock | None) -> tuple[str, ...]:
        """The compiles as texts, which `compiles_in` reads: what the index and the folder of a fleet keep of a process."""
        return tuple(
            json.dumps({
                "compile_id": one.compile_id,
                "segment": one.segment,
                "start_ns": None if clock is None or at is None else clock.ns(at),
                **one.place._asdict(),
                "reasons": one.recompile_reasons,
                "graph_breaks": [each._asdict() for each in one.graph_breaks],
                "error": one.error,
            })
            for one, at in zip(self._rows, self._clocks, strict=True)
        )  # fmt: skip


def compiles_in(texts: Iterable[str]) -> list[CompiledFrame]:
    """The compiles of a process, of their JSON; what is none, as in a damaged folder, is left out."""
    return [one for one in map(_compile, texts) if one is not None]


def _compile(text: str) -> CompiledFrame | None:
    try:
        record = Record(load_json(text.encode("utf-8", "replace")))
    except ValueError:
        return None
    compile_id, segment = record.text("compile_id"), record.whole("segment")
    if compile_id is None or segment is None:
        return None
    place = Place(record.text("function"), record.text("file"), record.whole("line"))
    one = CompiledFrame(compile_id, segment, place, start_ns=record.moment_ns("start_ns"))
    one.error = record.text("error")
    one.recompile_reasons = tuple(record.texts("reasons") or ())
    for each in map(Record, record.objects("graph_breaks")):
        one.graph_breaks.append(GraphBreak(each.text("file"), each.whole("line"), each.text("reason") or ""))
    return one


def _place(match: re.Match[str]) -> Place:
    return Place(match["function"], match["file"], int(match["line"]))
