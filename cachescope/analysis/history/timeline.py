"""When compiles ended and what they stored, as far as the lookups and the ends of their processes show."""

from __future__ import annotations

import re
import signal
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from cachescope.analysis.history.lookups import MISSING, Flags, Lookups
from cachescope.analysis.history.places_by_group import NONE, Grouped, Numbers
from cachescope.analysis.history.rows import RunRow
from cachescope.verdict_kinds import NOT_KNOWN

# A text log does not record when a compile ended; a race is over by then.
_UNKNOWN_COMPILE_NS: Final = 2_000_000_000
# A symbolic size, as in torch.Size([s77, 8]) or ('s77',): torch/_inductor/codecache.py, `_reduce_symint`.
_SYMBOL: Final = re.compile(r"(?:\bSize\(\[[^][]*\b|\(')[su]\d+\b")
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
    is_of_process : bool
        Whether its process ended, or its log: what was compiled below it was not stored either.
    """

    kind: str
    why: str
    is_recorded: bool
    is_of_process: bool = False


CUT_SHORT: Final = NotStored(
    NOT_KNOWN,
    "its log ends within that compile: the process ended there, or the rest is missing",
    False,
    True,
)


def _ended(how: str) -> NotStored:
    return NotStored("process ended", f"its process ended before that: {how}", True, True)


class Timeline:
    """What was compiled and stored, and when. Lookups are named by their place in time order.

    Parameters
    ----------
    lookups : Lookups
    runs : sequence of RunRow
        How the processes ended.
    """

    def __init__(self, lookups: Lookups, runs: Sequence[RunRow]) -> None:
        self._lookups = lookups
        self._graphs = Grouped(lookups.aot)
        self._how_ended = {run.run: how for run in runs if (how := _abnormal_end(run)) is not None}
        run = lookups.run_number
        last = np.zeros(int(run.max(initial=NONE)) + 1, dtype=np.int64)
        of_torch = np.flatnonzero(~lookups.is_of_vllm)
        np.maximum.at(last, run[of_torch], of_torch)
        compiles = lookups.compile_id.codes
        self._is_in_last_compile: Flags = compiles == compiles[last[run]]
        has_text_log = np.zeros(len(last), dtype=bool)
        has_text_log[run[lookups.entry_path.is_known]] = True
        self._has_text_log: Flags = has_text_log[run]
        has_time_taken = lookups.is_fx & (lookups.time_taken_ns != MISSING)
        self._is_written: Flags = lookups.entry_path.is_known | has_time_taken

    def graphs_of(self, aot: int) -> Numbers:
        """The FX lookups made under an AOTAutograd lookup."""
        return self._graphs.of(aot)

    @cached_property
    def end(self) -> Numbers:
        """When the compile after each lookup ended; `MISSING` if no log has times."""
        lookups = self._lookups
        latest = lookups.end_time.copy()
        graphs = np.flatnonzero(lookups.aot != NONE)
        np.maximum.at(latest, lookups.aot[graphs], self._ended(latest)[graphs])
        return self._ended(latest)

    @cached_property
    def last_seen(self) -> Numbers:
        """Until when the compile after each lookup is recorded to have gone on; `MISSING` where nothing shows it."""
        lookups = self._lookups
        time, taken = lookups.time, lookups.time_taken_ns
        by_duration = np.where((time == MISSING) | (taken == MISSING), MISSING, time + taken)
        latest = np.maximum(lookups.end_time, by_duration)
        graphs = np.flatnonzero(lookups.aot != NONE)
        np.maximum.at(latest, lookups.aot[graphs], latest[graphs])
        return latest

    def _ended(self, latest: Numbers) -> Numbers:
        """When each compile ended, from the latest time that is known of it, the graphs aside."""
        time, taken = self._lookups.time, self._lookups.time_taken_ns
        end = np.where(latest > time, latest, time + _UNKNOWN_COMPILE_NS)
        end = np.where(taken == MISSING, end, time + taken)
        return np.where(time == MISSING, MISSING, end)

    def has_ended(self, at: int) -> bool:
        """Whether the compile after a miss is known to have ended, which is when torch stores its result.

        A trace has the record of an FX miss only then (torch/_inductor/compile_fx.py, `_compile_fx_inner`). An
        AOTAutograd entry is written after the last of its graphs; only a text log records that.
        """
        lookups = self._lookups
        ended = lookups.compile_ended[at]
        if ended != NONE:
            return bool(ended) and lookups.compile_error[at] is None
        graphs = self.graphs_of(at)
        return bool(
            self._is_written[at]
            or (len(graphs) and (lookups.is_hit[graphs] | self._is_written[graphs]).all())
        )

    def is_stored(self, at: int) -> bool:
        """Whether the result of a miss is known to have been stored.

        If torch cannot write it, it goes on, and only a text log records the failure. A compile that ended without an error is
        not enough: torch records none for Ctrl-C (torch/_dynamo/convert_frame.py, `_compile`: `except Exception`).
        """
        return bool(self._has_text_log[at] and self._is_written[at]) and at not in self.not_stored

    @cached_property
    def stores(self) -> Flags:
        """Which lookups stored a result, if they missed, as far as is known."""
        found = np.ones(len(self._lookups), dtype=bool)
        found[list(self.not_stored)] = False
        return found

    @cached_property
    def not_stored(self) -> Mapping[int, NotStored]:
        """Why nothing was stored after a lookup, for those of which that is known."""
        found = {}
        for at in np.flatnonzero(self._may_not_be_stored).tolist():
            if (why := self._why_not_stored(at)) is not None:
                found[at] = why
        return found

    @property
    def _may_not_be_stored(self) -> Flags:
        """The few lookups that need to be looked into: `_why_not_stored` has an answer for these alone."""
        lookups = self._lookups
        failed = lookups.save_bypass.is_known | lookups.save_error.is_known | lookups.compile_error.is_known
        is_of_ended = np.isin(lookups.run, list(self._how_ended))
        is_last = self._is_in_last_compile & (is_of_ended | ~self._is_compiled)
        is_open = lookups.is_aot & (is_last | self._is_half | self._may_be_restarted)
        of_open = np.append(is_open, False)[lookups.aot]
        found: Flags = failed | (~self._is_written & (is_open | of_open | (lookups.compile_ended == 0)))
        return found

    @cached_property
    def _is_compiled(self) -> Flags:
        """Which AOTAutograd lookups have graphs all of which were compiled, or a compile that is known to have ended."""
        lookups = self._lookups
        is_graph = lookups.aot != NONE
        found = np.zeros(len(lookups), dtype=bool)
        found[lookups.aot[is_graph]] = True
        found[lookups.aot[is_graph & lookups.outcome.are("unknown")]] = False
        return np.where(lookups.compile_ended == NONE, found, lookups.compile_ended == 1)

    @cached_property
    def _is_half(self) -> Flags:
        """Which AOTAutograd lookups have a forward graph and no backward graph."""
        lookups = self._lookups
        found = np.zeros(len(lookups), dtype=bool)
        is_graph = lookups.aot != NONE
        found[lookups.aot[is_graph & lookups.direction.are("forward")]] = True
        found[lookups.aot[is_graph & lookups.direction.are("backward")]] = False
        return found

    @property
    def _may_be_restarted(self) -> Flags:
        runs = [run for run, _ in self._attempts]
        return np.isin(self._lookups.run, runs)

    @cached_property
    def _attempts(self) -> Mapping[tuple[int, str], list[tuple[int, int]]]:
        """The later attempts of AOTAutograd compiles, by run and compile id: the id of the lookup, and which attempt."""
        lookups = self._lookups
        later = [code for code, text in enumerate(lookups.compile_id.distinct) if _attempt_of(text)[1]]
        found: dict[tuple[int, str], list[tuple[int, int]]] = defaultdict(list)
        for at in np.flatnonzero(lookups.is_aot & np.isin(lookups.compile_id.codes, later)).tolist():
            name, attempt = _attempt_of(lookups.compile_id[at] or "")
            found[int(lookups.run[at]), name].append((int(lookups.lookup[at]), attempt))
        return found

    def _why_not_stored(self, at: int) -> NotStored | None:
        lookups = self._lookups
        if (reason := lookups.save_bypass[at]) is not None:
            return NotStored("never stored", f"torch would not store it: {reason}", True)
        if (error := lookups.save_error[at]) is not None:
            return NotStored("not saved", f"torch could not store it: {last_line(error)}", True)
        if self._is_written[at]:
            return None
        if (error := lookups.compile_error[at]) is not None:
            what = f"its compile failed: {last_line(error)}"
            return NotStored("not saved" if CANNOT_WRITE.search(error) else "failed compile", what, True)
        return self._autograd_not_stored(at) if lookups.is_aot[at] else self._graph_not_stored(at)

    def _autograd_not_stored(self, at: int) -> NotStored | None:
        if self._was_restarted(at):
            why = "torch restarted its compile, and the new attempt has its own key"
            return NotStored("never stored", why, True)
        is_compiled, is_half = bool(self._is_compiled[at]), bool(self._is_half[at])
        if (how := self._how_ended_within(at)) is not None:
            # A text log names what is written: an entry that it does not name was not written.
            if not is_compiled or is_half or self._has_text_log[at]:
                return _ended(how)
        elif not is_compiled and self._is_in_last_compile[at]:
            return CUT_SHORT
        if is_half:
            why = "the entry of a training graph is written with its backward graph, which was not compiled"
            return NotStored("never stored", why, False)
        return None

    def _graph_not_stored(self, at: int) -> NotStored | None:
        """What an FX graph shares with the AOTAutograd lookup that it was made under: the end of their process."""
        lookups = self._lookups
        aot = int(lookups.aot[at])
        if aot != NONE and lookups.is_miss[aot]:
            found = self._why_not_stored(aot)
            if found is not None and found.is_of_process:
                return found
        if lookups.compile_ended[at] == 0:
            how = self._how_ended_within(at)
            return CUT_SHORT if how is None else _ended(how)
        return None

    def _was_restarted(self, at: int) -> bool:
        """Whether torch abandoned a compile before it looked a graph up, and restarted it: 0/0, then 0/0_1.

        torch/_dynamo/convert_frame.py: an attempt whose analysis must restart is followed by the next attempt.
        """
        compile_id = self._lookups.compile_id[at]
        if compile_id is None or len(self.graphs_of(at)):
            return False
        name, attempt = _attempt_of(compile_id)
        lookup, run = int(self._lookups.lookup[at]), int(self._lookups.run[at])
        return any(later > attempt and other > lookup for other, later in self._attempts.get((run, name), ()))

    def _how_ended_within(self, at: int) -> str | None:
        """How a process ended during the compile of a lookup; None if it went on, or nothing shows that."""
        return self._how_ended.get(int(self._lookups.run[at])) if self._is_in_last_compile[at] else None


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
