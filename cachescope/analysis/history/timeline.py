"""When compiles ended and what they stored, as far as the lookups and the ends of their processes show."""

from __future__ import annotations

import re
import signal
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import accumulate
from typing import Final, NamedTuple

from cachescope.frames.recorded_rows import LookupRow, RunRow
from cachescope.grouping import by_key
from cachescope.kept import kept
from cachescope.terms import AOTAUTOGRAD, FXGRAPH, INTERRUPTED, MISSED, VLLM
from cachescope.verdict_kinds import NOT_KNOWN

NEVER: Final = 2**31 - 1
"""The position of what does not happen."""
# A text log does not record when a compile ended; a race is over by then.
_UNKNOWN_COMPILE_NS: Final = 2_000_000_000
# What the operating system reports when a file cannot be written.
CANNOT_WRITE: Final = re.compile(
    r"PermissionError|Permission denied|Read-only file system|No space left|Disk quota exceeded|\[Errno (?:13|28|30|122)\]"
)


class NotStored(NamedTuple):
    """Why nothing was stored after a miss."""

    # ``failed compile``, ``interrupted``, ``process ended``, ``not saved``, ``never stored``, ``restarted compile``, ``compiled autograd``, ``graph bypassed`` or ``not known``
    kind: str
    why: str  # A clause that states the reason
    # Whether torch or the operating system reported it; otherwise it follows from what the log lacks.
    is_recorded: bool
    # Whether it also holds for the graphs compiled below: the process or its log ended there, or nothing says how the compile ended.
    is_of_process: bool = False


_CUT_SHORT: Final = NotStored(
    NOT_KNOWN,
    "its log ends within that compile: the process ended there, or the rest is missing",
    False,
    True,
)

_NOT_NAMED: Final = NotStored(
    NOT_KNOWN,
    "its text log names the entries that are written, and none of this compile, which may have failed",
    False,
    True,
)


NOT_CERTAIN: Final = (_CUT_SHORT, _NOT_NAMED)
"""Where nothing says how a compile ended, its entry may have been stored all the same."""


def _ended_abnormally(how: str) -> NotStored:
    return NotStored("process ended", f"its process ended before that: {how}", True, True)


class Timeline:
    """What was compiled and stored, and when. Lookups are named by their index in time order, which is their *position*."""

    def __init__(self, rows: Sequence[LookupRow], aot: Sequence[int | None], runs: Iterable[RunRow]) -> None:
        self._lookups = rows
        self._aot = aot
        self._graphs = by_key((above, at) for at, above in enumerate(aot) if above is not None)
        runs = tuple(runs)
        self._how_ended = {run.run: how for run in runs if (how := _abnormal_end(run)) is not None}
        self._last_record = {run.run: run.end_time for run in runs if run.end_time is not None}
        # The last lookup of each run, which is in its last compile.
        self._last = {row.run: row for row in rows if row.cache != VLLM}
        # The last lookup of each run in a compile of compiled autograd: ``!0/1/0``, torch/_guards.py, `CompileId`, since 2.7.
        self._last_of_compiled_autograd = {
            row.run: row.lookup for row in rows if (row.compile_id or "").startswith("!")
        }
        self.has_text_log = {row.run for row in rows if _shows_what_is_written(row)} - {
            run.run for run in runs if run.has_lost_lines
        }
        """The runs whose text log was read and is known to have lost no lines: what it does not say did not happen."""

    def graphs_of(self, aot: int) -> Sequence[int]:
        """The FX lookups made under an AOTAutograd lookup."""
        return self._graphs.get(aot, ())

    @cached_property
    def end(self) -> list[int | None]:
        """When the compile after each lookup ended; None if no log has times."""
        ended = [_ended(row, row.end_time or 0) for row in self._lookups]
        for aot, graphs in self._graphs.items():
            row = self._lookups[aot]
            if row.time_taken_ns is None:
                ended[aot] = _ended(row, max(row.end_time or 0, *[ended[graph] or 0 for graph in graphs]))
        # Torch compiles one function at a time: a compile that failed had ended when its process began the next one, or wrote its last record.
        next_of: dict[int, tuple[tuple[str | None, int], int | None, int | None]] = {}
        for at in reversed(range(len(ended))):
            row = self._lookups[at]
            own = row.compile_id, row.segment
            compiled, began, next_began = next_of.get(row.run, (own, None, None))
            next_began = next_began if compiled == own else began
            next_of[row.run] = own, row.time, next_began
            end = ended[at]
            if row.compile_error is not None and end is not None:
                latest = self._last_record.get(row.run, end) if next_began is None else next_began - 1
                ended[at] = min(end, latest)
        return ended

    def position_of(self, time: int | None) -> int:
        """The first lookup made after a time; 0 if the time is unknown."""
        return 0 if time is None else bisect_right(self._times, time)

    @cached_property
    def _times(self) -> list[int]:
        # A lookup without a time, or after the clock was set back, gets the time of the one before it.
        return list(accumulate((row.time or 0 for row in self._lookups), max))

    @cached_property
    def until(self) -> list[int]:
        """The position at which the compile after each lookup ends, after all lookups of its graphs: twice each if an AOTAutograd entry failed."""
        return [
            max(self.position_of(end), at + 1, 0 if aot is None else self._graphs[aot][-1] + 1)
            for at, (end, aot) in enumerate(zip(self.end, self._aot, strict=True))
        ]

    @cached_property
    def last_seen(self) -> list[int | None]:
        """The latest time at which the compile after each lookup is recorded to have been running; None where nothing shows it."""
        latest = [_latest(row.end_time, _compiled_until(row)) for row in self._lookups]
        for aot, graphs in self._graphs.items():
            latest[aot] = _latest(latest[aot], *(latest[graph] for graph in graphs))
        return latest

    def has_ended(self, at: int) -> bool:
        """Whether the compile after a miss is known to have ended, which is when torch stores its result.

        A trace has the record of an FX miss only then (torch/_inductor/compile_fx.py, `_compile_fx_inner`). An
        AOTAutograd entry is written after the last of its graphs; only a text log records that.
        """
        row, graphs = self._lookups[at], self.graphs_of(at)
        if row.compile_ended is not None:
            return row.compile_ended and row.compile_error is None
        if self._is_written(at):
            return True
        return bool(graphs) and all(
            self._lookups[graph].outcome == "hit" or self._is_written(graph) for graph in graphs
        )

    def is_stored(self, at: int) -> bool:
        """Whether the result of a miss is known to have been stored.

        If torch cannot write an entry, it carries on, and only a text log records the failure. A compile that ended without an error is
        not enough: torch records none for Ctrl-C (torch/_dynamo/convert_frame.py, `_compile`: `except Exception`).
        """
        is_logged = self._lookups[at].run in self.has_text_log
        return is_logged and self._is_written(at) and at not in self.not_stored

    def _is_written(self, at: int) -> bool:
        row = self._lookups[at]
        return row.entry_path is not None or (row.cache == FXGRAPH and row.time_taken_ns is not None)

    @cached_property
    def not_stored(self) -> Mapping[int, NotStored]:
        """Why nothing was stored after a lookup, where that is known."""
        whys = map(self._why_not_stored, range(len(self._lookups)))
        return {at: why for at, why in enumerate(whys) if why is not None}

    def _is_in_last_compile(self, at: int) -> bool:
        row = self._lookups[at]
        last = self._last.get(row.run)
        return last is not None and row.compile_id == last.compile_id

    @cached_property
    def _attempts(self) -> Mapping[tuple[int, str], list[tuple[int, int]]]:
        """The later attempts of AOTAutograd compiles, by run and compile id: the id of the lookup and the number of the attempt."""
        later = (row for row in self._lookups if row.cache == AOTAUTOGRAD and "_" in (row.compile_id or ""))
        named = ((row, *_attempt_of(row.compile_id or "")) for row in later)
        return by_key(((row.run, name), (row.lookup, attempt)) for row, name, attempt in named)

    def _why_not_stored(self, at: int) -> NotStored | None:
        row = self._lookups[at]
        if (reason := row.save_bypass) is not None:
            return NotStored("never stored", f"torch would not store it: {reason}", True)
        if (error := row.save_error) is not None:
            return NotStored("not saved", f"torch could not store it: {error_line(error)}", True)
        if self._is_written(at):
            return None
        if (error := row.compile_error) == INTERRUPTED:
            return NotStored("interrupted", f"its compile was {error}", True)
        if error is not None:
            what = f"its compile failed: {error_line(error)}"
            return NotStored("not saved" if CANNOT_WRITE.search(error) else "failed compile", what, True)
        return self._autograd_not_stored(at) if row.cache == AOTAUTOGRAD else self._graph_not_stored(at)

    @kept
    def _autograd_not_stored(self, at: int) -> NotStored | None:
        row = self._lookups[at]
        graphs = [self._lookups[graph] for graph in self.graphs_of(at)]
        if not graphs and self._was_restarted(at):
            why = "torch restarted its compile, and the new attempt has its own key"
            return NotStored("restarted compile", why, True)
        if any(graph.outcome == "bypass" for graph in graphs):
            # torch/_functorch/_aot_autograd/graph_compile.py, `_should_save_cache`: the graphs need a key (2.8 to 2.15). With
            # `caching_precompile` they need none, but then no AOTAutograd key is ever looked up twice.
            why = "torch stores no AOTAutograd entry above a graph that it bypasses"
            return NotStored("graph bypassed", why, True)
        # Whether all of its graphs were compiled.
        is_compiled = row.compile_ended
        if is_compiled is None:
            is_compiled = bool(graphs) and not any(graph.outcome == "unknown" for graph in graphs)
        directions = {graph.direction for graph in graphs}
        is_half = "forward" in directions and "backward" not in directions
        if (how := self._how_ended_within(at)) is not None:
            # A text log names each entry that is written.
            if not is_compiled or is_half or row.run in self.has_text_log:
                return _ended_abnormally(how)
        elif not is_compiled and self._is_in_last_compile(at):
            return _CUT_SHORT
        if is_half:
            why = "the entry of a training graph is written with its backward graph, which was not compiled"
            if row.lookup < self._last_of_compiled_autograd.get(row.run, -1):
                why = f"{why}: compiled autograd compiles graphs of its own for it"
                return NotStored("compiled autograd", why, False)
            return NotStored("never stored", why, False)
        # A trace records how a compile ended.
        return _NOT_NAMED if row.compile_ended is None and row.run in self.has_text_log else None

    def _graph_not_stored(self, at: int) -> NotStored | None:
        """Why an FX graph was not stored: its process ended, as for the AOTAutograd lookup above it."""
        row, aot = self._lookups[at], self._aot[at]
        if aot is not None and self._lookups[aot].outcome in MISSED:
            found = self._why_not_stored(aot)
            if found is not None and found.is_of_process:
                return found
        if row.compile_ended is False:
            how = self._how_ended_within(at)
            return _CUT_SHORT if how is None else _ended_abnormally(how)
        return None

    def _was_restarted(self, at: int) -> bool:
        """Whether torch abandoned a compile before it looked a graph up, and restarted it: 0/0, then 0/0_1.

        torch/_dynamo/convert_frame.py: an attempt whose analysis must restart is followed by the next attempt.
        """
        row = self._lookups[at]
        if row.compile_id is None:
            return False
        name, attempt = _attempt_of(row.compile_id)
        later = self._attempts.get((row.run, name), ())
        return any(other_attempt > attempt and other > row.lookup for other, other_attempt in later)

    def _how_ended_within(self, at: int) -> str | None:
        """How a process ended during the compile of a lookup; None if it went on, or nothing shows that."""
        how = self._how_ended.get(self._lookups[at].run)
        return how if how is not None and self._is_in_last_compile(at) else None


def _shows_what_is_written(row: LookupRow) -> bool:
    """Whether a text log of AOTAutograd's logger at INFO was read: it tells outcomes, and names the entries that are written."""
    is_of_text = row.end_time is None and row.cache_state in ("hit", "miss")
    return row.entry_path is not None or (is_of_text and row.cache == AOTAUTOGRAD)


def _compiled_until(row: LookupRow) -> int | None:
    """When a compile ended, by the time that it took."""
    return None if row.time is None or row.time_taken_ns is None else row.time + row.time_taken_ns


def _ended(row: LookupRow, latest: int) -> int | None:
    """When a compile ended, given the latest time known of it (0 if none is)."""
    if row.time is None or row.time_taken_ns is not None:
        return _compiled_until(row)
    return latest if latest > row.time else row.time + _UNKNOWN_COMPILE_NS


def _latest(*times: int | None) -> int | None:
    return max([time for time in times if time is not None], default=None)


def _attempt_of(compile_id: str) -> tuple[str, int]:
    """The id of a compile without its attempt, and the attempt: torch/_guards.py, `TraceId.__str__`."""
    name, _, attempt = compile_id.partition("_")
    return name, int(attempt) if attempt.isdecimal() and len(attempt) < 10 else 0


def _abnormal_end(run: RunRow) -> str | None:
    """How a process ended abnormally; None if it ended normally, or nothing shows that."""
    status = run.exit_status if run.own_exit_status is None else run.own_exit_status
    if status is not None and status > 128:
        with suppress(ValueError):
            return f"signal {signal.Signals(status - 128).name}"
    return f"exit status {status}" if status else None


def error_line(text: str) -> str:
    """The line that names an error: the last of a traceback, the first of a message."""
    lines = text.strip().split("\n")
    if lines[0].endswith(" raised:"):
        # torch/_dynamo/exc.py, `BackendCompilerFailed`: the error is on the next line.
        return " ".join(lines[:2])
    return lines[-1 if "Traceback (most recent call last)" in text else 0]
