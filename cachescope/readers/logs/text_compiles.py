"""What a text log tells of compiles: where Dynamo begins, why it compiles again, when it no longer does, where graphs break.

That the recompile limit is reached stands in every log, as it is a warning. The others need ``TORCH_LOGS=dynamo``, ``recompiles`` or
``graph_breaks``. No message says when a compile ended, or what became a symbol.
"""

from __future__ import annotations

import re
from collections import Counter

from cachescope.frames.compile_rows import CompileRow
from cachescope.readers.logs.compiled_frames import CompiledFrame, graph_break
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
            one.row.start_time = None if clock is None or at is None else clock.ns(at)
            one.finish()
        return [one.row for one in self._read]


def _place(match: re.Match[str]) -> Place:
    return Place(match["function"], match["file"], int(match["line"]))
