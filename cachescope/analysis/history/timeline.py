"""When compiles ended and what they stored, as far as the lookups and the ends of their processes show."""

from __future__ import annotations

import re
import signal
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from cachescope.analysis.history.rows import LookupRow, RunRow
from cachescope.terms import AOTAUTOGRAD, FXGRAPH

# A text log does not record when a compile ended; a race is over by then.
_UNKNOWN_COMPILE_NS: Final = 2_000_000_000
# A symbolic size, as in torch.Size([s77, 8]) or ('s77',): torch/_inductor/codecache.py, `_reduce_symint`.
_SYMBOL: Final = re.compile(r"\b(?:Size\(\[[^][]*\b|\(')[su]\d+\b")
NOT_KNOWN: Final = "not known"
"""The kind if no source records the reason."""
# What the operating system reports when a file cannot be written.
CANNOT_WRITE: Final = re.compile(
    r"PermissionError|Permission denied|Read-only file system|No space left|Disk quota exceeded|\[Errno (?:13|28|30|122)\]"
)


@dataclass(frozen=True, slots=True)
class NotStored:
    """Why nothing was stored after a miss.

    Attributes
    ----------
    kind : str
        ``failed compile``, ``process ended``, ``not saved``, ``never stored`` or ``not known``.
    why : str
        A clause that states the reason.
    is_recorded : bool
        Whether torch or the operating system reported it; otherwise it follows from what the log lacks.
    """

    kind: str
    why: str
    is_recorded: bool


_CUT_SHORT: Final = NotStored(
    NOT_KNOWN, "its log ends within that compile: the process ended there, or the rest is missing", False
)


def _ended(how: str) -> NotStored:
    return NotStored("process ended", f"its process ended before that: {how}", True)


class Timeline:
    """What was compiled and stored, and when.

    Parameters
    ----------
    lookups : sequence of LookupRow
        In time order.
    runs : sequence of RunRow, optional
        How the processes ended.
    """

    def __init__(self, lookups: Sequence[LookupRow], runs: Sequence[RunRow] = ()) -> None:
        self._graphs: dict[int, list[LookupRow]] = defaultdict(list)
        self._aot = {row.lookup: row for row in lookups if row.cache == AOTAUTOGRAD}
        self._last: dict[int, LookupRow] = {}
        self._attempts: dict[tuple[int, str], list[tuple[int, int]]] = defaultdict(list)
        self._is_text: dict[int, bool] = defaultdict(bool)
        for row in lookups:
            if row.aot_lookup is not None:
                self._graphs[row.aot_lookup].append(row)
            self._last[row.run] = row
            if row.cache == AOTAUTOGRAD and row.compile_id is not None:
                name, attempt = _attempt_of(row.compile_id)
                if attempt:
                    self._attempts[row.run, name].append((row.lookup, attempt))
            self._is_text[row.run] |= row.entry_path is not None
        self._runs = {run.run: run for run in runs}

    def graphs_of(self, aot: LookupRow) -> list[LookupRow]:
        """The FX lookups made under an AOTAutograd lookup."""
        return self._graphs.get(aot.lookup, [])

    def end_of(self, row: LookupRow) -> int | None:
        """When the compile after a miss ended; None if no log has times."""
        if row.time is None:
            return None
        if row.time_taken_ns is not None:
            return row.time + row.time_taken_ns
        inner = [self.end_of(graph) for graph in self.graphs_of(row)]
        known = [end for end in [*inner, row.end_time] if end is not None]
        return max(known) if known and max(known) > row.time else row.time + _UNKNOWN_COMPILE_NS

    def has_ended(self, row: LookupRow) -> bool:
        """Whether the compile after a miss is known to have ended, which is when torch stores its result.

        A trace has the record of an FX miss only then (torch/_inductor/compile_fx.py, `_compile_fx_inner`). An
        AOTAutograd entry is written after the last of its graphs; only a text log records that.
        """
        if row.compile_ended is not None:
            return row.compile_ended and row.compile_error is None
        graphs = self.graphs_of(row)
        return self._is_written(row) or (
            bool(graphs) and all(graph.is_hit or self._is_written(graph) for graph in graphs)
        )

    def is_stored(self, row: LookupRow) -> bool:
        """Whether the result of a miss is known to have been stored.

        If torch cannot write it, it goes on, and only a text log records the failure. A compile that ended without an error is
        not enough: torch records none for Ctrl-C (torch/_dynamo/convert_frame.py, `_compile`: `except Exception`).
        """
        return self._is_text[row.run] and self._is_written(row) and self.why_not_stored(row) is None

    def _is_written(self, row: LookupRow) -> bool:
        return row.entry_path is not None or (row.cache == FXGRAPH and row.time_taken_ns is not None)

    def why_not_stored(self, row: LookupRow) -> NotStored | None:
        """Why nothing was stored after a miss; None if it was stored, as far as is known."""
        if row.save_bypass is not None:
            return NotStored("never stored", f"torch would not store it: {row.save_bypass}", True)
        if row.save_error is not None:
            return NotStored("not saved", f"torch could not store it: {last_line(row.save_error)}", True)
        if self._is_written(row):
            return None
        if row.compile_error is not None:
            what = f"its compile failed: {last_line(row.compile_error)}"
            kind = "not saved" if CANNOT_WRITE.search(row.compile_error) else "failed compile"
            return NotStored(kind, what, True)
        return self._autograd_not_stored(row) if row.cache == AOTAUTOGRAD else self._graph_not_stored(row)

    def _autograd_not_stored(self, row: LookupRow) -> NotStored | None:
        if self._was_restarted(row):
            why = "torch began its compile anew, and what it did then has a key of its own"
            return NotStored("never stored", why, True)
        graphs = self.graphs_of(row)
        directions = {graph.direction for graph in graphs}
        is_half = "forward" in directions and "backward" not in directions
        is_compiled = bool(graphs) and all(graph.outcome != "unknown" for graph in graphs)
        if row.compile_ended is not None:
            is_compiled = row.compile_ended
        if (how := self._how_ended_within(row)) is not None:
            # A text log names what is written: an entry that it does not name was not written.
            if not is_compiled or is_half or self._is_text[row.run]:
                return _ended(how)
        elif not is_compiled and self._is_in_last_compile(row):
            return _CUT_SHORT
        if is_half:
            why = "the entry of a training graph is written with its backward graph, which was not compiled"
            return NotStored("never stored", why, False)
        return None

    def _graph_not_stored(self, row: LookupRow) -> NotStored | None:
        """What an FX graph shares with the AOTAutograd lookup that it was made under: the end of their process."""
        aot = None if row.aot_lookup is None else self._aot.get(row.aot_lookup)
        if aot is not None and aot.is_miss:
            found = self.why_not_stored(aot)
            if found is not None and found.kind in ("process ended", NOT_KNOWN):
                return found
        if row.compile_ended is False:
            how = self._how_ended_within(row)
            return _CUT_SHORT if how is None else _ended(how)
        return None

    def _was_restarted(self, row: LookupRow) -> bool:
        """Whether torch abandoned a compile before it looked a graph up, and restarted it: 0/0, then 0/0_1.

        torch/_dynamo/convert_frame.py: an attempt whose analysis must restart is followed by the next attempt.
        """
        if self.graphs_of(row) or row.compile_id is None:
            return False
        name, attempt = _attempt_of(row.compile_id)
        return any(later > attempt and place > row.lookup for place, later in self._attempts[row.run, name])

    def _is_in_last_compile(self, row: LookupRow) -> bool:
        return self._last[row.run].compile_id == row.compile_id

    def _how_ended_within(self, row: LookupRow) -> str | None:
        """How a process ended during the compile of a lookup; None if it went on, or nothing shows that."""
        run = self._runs.get(row.run)
        return None if run is None or not self._is_in_last_compile(row) else _abnormal_end(run)


def shows_symbol(text: str) -> bool:
    """Whether the printed value of an input has a symbolic size, in which case its entries may have guards."""
    return _SYMBOL.search(text) is not None


def _attempt_of(compile_id: str) -> tuple[str, int]:
    """The id of a compile without its attempt, and the attempt: torch/_guards.py, `TraceId.__str__`."""
    name, _, attempt = compile_id.partition("_")
    return name, int(attempt) if attempt.isdecimal() and len(attempt) < 10 else 0


def _abnormal_end(run: RunRow) -> str | None:
    """How a process ended abnormally; None if it ended normally, or nothing shows that."""
    if run.exit_status is not None and run.exit_status > 128:
        with suppress(ValueError):
            return f"signal {signal.Signals(run.exit_status - 128).name}"
    return f"exit status {run.exit_status}" if run.exit_status else None


def last_line(text: str) -> str:
    """The last line of a text: of a traceback, the error itself."""
    return text.strip().split("\n")[-1]
