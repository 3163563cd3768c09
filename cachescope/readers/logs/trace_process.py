"""Builds the process of a trace from the contents of its records, in their order.

What a record means may depend on earlier records: which compile currently has an id, which text a number in a stack
refers to, the clock. All of this state is here. The reader of the records has none of it, so its events can be kept
and handled later.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any, Final

from cachescope.errors import SourceError
from cachescope.frames.recorded_rows import LookupRow
from cachescope.json_types import JsonObject
from cachescope.readers.logs.byte_source import modified_s
from cachescope.readers.logs.log_events import Fold
from cachescope.readers.logs.log_prefix import LogClock, on_from, time_at
from cachescope.readers.logs.lookup_order import put_in_order
from cachescope.readers.logs.notes import PreflightNotes
from cachescope.readers.logs.trace_compiles import Place, TraceCompiles, first_attempt
from cachescope.readers.reading import Process, Reading
from cachescope.terms import FXGRAPH

_RANK: Final = re.compile(r"rank_(\d{1,9})(?!\d)")
# The event that ends a compile follows the artifact of its lookup.
_RECENT: Final = 64
_MOST_WRONG: Final = 5
# The events with the checksum and the clock of their record.
_OF_RECORDS: Final = frozenset(
    {"compile_began", "compile_ended", "graph", "guards", "lookup", "uncached", "kernels", "preflight"}
)
_NO_LOOKUPS: Final = "no_lookups"
_NOT_RECORDED: Final = (
    "was asked, an event says, but no record has a lookup: lost, or in a form that is not known"
)


def wrong_values(wrong: list[str], clock_us: int | None) -> str:
    """The message of a problem about the values of a record and the clock of its prefix; empty if all are right."""
    if clock_us is None:
        wrong = [*wrong, "the time of its prefix is none"]
    return "; ".join(wrong[:_MOST_WRONG])


class TraceProcess(Fold):
    """Builds the process of one trace while its records are read."""

    def __init__(self, source: str, reading: Reading) -> None:
        super().__init__(source, reading)
        rank = _RANK.search(os.path.basename(source))
        self._process = Process(source=source, kind="trace", rank=int(rank[1]) if rank else None)
        self._has_records = False
        self._clock: LogClock | None = None
        self._compiles = TraceCompiles()
        self._on_string = self._compiles.note_string
        self._on_recompiles = self._compiles.note_reasons
        self._on_graph = self._compiles.note_graph
        self._on_guards = self._compiles.note_guards
        self._lookups: list[tuple[LookupRow, int | None]] = []
        self._compiled = False
        self._aot_code_us: int | None = None
        self._has_begun = False
        # For each cache, where an event says that it was asked.
        self._asked: dict[str, int] = {}
        # The cache directory of each compile, by its id and segment.
        self._folders: dict[tuple[str, int], str] = {}
        # By compile id, lookups of torch 2.4, whose records have no outcome.
        self._undecided: dict[str, list[LookupRow]] = {}
        self._notes = PreflightNotes()
        self._seen_records: set[tuple[int, int]] = set()
        self._latest_us: int | None = None
        # The clock of the record that an event is of.
        self._now_us: int | None = None

    def handle(self, word: str, *values: Any) -> None:
        """Take one event, unless its record, with this checksum and clock, stood in the log before.

        Logs are appended to the same file again, and those who ship them deliver some records twice. A record has its
        moment and the hash of its payload: torch writes no two that are equal.
        """
        if word in _OF_RECORDS:
            *values, line, self._now_us = values  # type: ignore[assignment]
            if self._now_us is not None:
                self._latest_us = self._later(self._latest_us, self._now_us)
                if (line, self._now_us) in self._seen_records:
                    return
                self._seen_records.add((line, self._now_us))
        super().handle(word, *values)

    def finish(self) -> None:
        """Turn the clocks into times, order the lookups as they were made, and add the process to the reading."""
        if not self._has_records:
            raise SourceError(self._source, "holds no record of torch's trace log", "unknown_source")
        process = self._process
        first = process.clock_first_us
        # Of a log that was appended to itself in part, the last record is not the latest.
        process.clock_last_us = self._later(process.clock_last_us, self._latest_us)
        clock = self._clock
        if clock is None and first is not None:
            clock = LogClock.from_file_time(first, modified_s(self._source))
        process.start_time = time_at(clock, first)
        for lookup, at in self._lookups:
            lookup.end_time = lookup.logged_time = time_at(clock, at)
            if lookup.time is None and lookup.end_time is not None:
                # Of an FX graph 2.5 says how long it took, but not when it began (torch/_inductor/codecache.py, `FxGraphCache.load`).
                taken = lookup.time_taken_ns if lookup.cache == FXGRAPH else None
                lookup.time = lookup.end_time - (taken or 0)
            compiled = first_attempt(lookup.compile_id or ""), lookup.segment
            folder, lookup.class_name = self._folders.get(compiled), self._compiles.classes.get(compiled)
            lookup.default_device = self._compiles.devices.get(compiled)
            lookup.cache_dir = None if folder == process.cache_dir else folder
        self._report_unrecorded_lookups()
        process.lookups = put_in_order([lookup for lookup, _ in self._lookups])
        process.looked_up = bool(process.lookups) or not self._compiled
        self._compiles.finish()
        process.compiles = self._compiles.rows
        self._reading.processes.append(process)

    def _on_problem(self, at: int, kind: str, message: str, count: int = 1) -> None:
        self._reading.problem(self._source, f"byte {at}", kind, message, count)

    def _on_first(self, at: int, pid: int | None, clock_us: int | None) -> None:
        """The first prefix that was read."""
        if self._has_records:
            return
        self._has_records = True
        process = self._process
        process.pid = pid or None  # tlparse does not keep it
        process.clock_first_us = process.clock_last_us = clock_us
        if pid is None:
            self._on_problem(at, "bad_value", "no process has the pid of its prefix")

    def _on_last(self, clock_us: int | None) -> None:
        """The last prefix with a time; None if there is none."""
        if clock_us is not None:
            self._process.clock_last_us = clock_us

    def _later(self, *clocks: int | None) -> int | None:
        first = self._process.clock_first_us
        known = (clock_us for clock_us in clocks if clock_us is not None)
        return max(known, key=lambda clock_us: on_from(clock_us, first or 0), default=None)

    def _on_clock(self, year: int, offset_us: int, known_us: int) -> None:
        """Year and offset that turn the clocks of prefixes into times."""
        self._clock = self._clock or LogClock(year, offset_us, known_us)

    def _on_torch_version(self, version: str | None) -> None:
        self._process.torch_version = version

    def _on_told(self, name: str, value: Any) -> None:
        """A fact of the process, used if nothing before has told it."""
        if getattr(self._process, name) in (None, ()):
            setattr(self._process, name, tuple(value) if isinstance(value, list) else value)

    def _on_folder(self, compile_id: str | None, folder: str) -> None:
        """Where the code of a compile lies: in the cache directory of its process, or in one that the program uses meanwhile."""
        self._on_told("cache_dir", folder)
        name = first_attempt(compile_id or "")
        self._folders[name, self._compiles.segments[name]] = folder
        if undecided := self._undecided.get(name):
            # torch 2.4 writes no code of a graph that hits (torch/_inductor/codecache.py, `FxGraphCache._lookup_graph`).
            undecided.pop().outcome = "full_miss"

    def _on_compile_began(
        self, at: int, compile_id: str | None, stack: list[JsonObject], wrong: list[str]
    ) -> None:
        """A compile began, with the stack of its record and the faults in its values."""
        self._has_begun = True
        self._compiles.begin(compile_id or "", self._now_us, stack, wrong)
        if message := wrong_values(wrong, self._now_us):
            self._on_problem(at, "bad_value", message)

    def _on_compile_ended(
        self,
        compile_id: str | None,
        error: str | None,
        has_no_code: bool,
        place: Sequence[Any],
        is_backward: bool,
    ) -> None:
        # A failed compile does not show whether the caches were on; nor does one whose beginning is lost, and its lookups with it.
        name = first_attempt(compile_id or "")
        began = self._has_begun if compile_id is None else self._compiles.segments[name] > 0
        self._compiled |= error is None and began
        self._compiles.end(compile_id, self._now_us, error, Place(*place), is_backward)
        for lookup in self._undecided.pop(name, ()):
            if error is None and has_no_code:
                lookup.outcome = "hit"

    def _on_lookup(self, lookup: LookupRow, is_over: bool) -> None:
        """A lookup; `is_over` if torch writes its record only after it has compiled and stored what was missed."""
        of_set = lookup.detail_set
        direction = None if of_set is None else self._reading.details.direction(of_set)
        self._compiles.note(lookup, is_over=is_over, direction=direction)
        self._notes.tell_of(lookup)
        self._lookups.append((lookup, self._now_us))
        if lookup.outcome == "unknown":
            self._undecided.setdefault(first_attempt(lookup.compile_id or ""), []).append(lookup)

    def _on_uncached(self, lookup: LookupRow) -> None:
        """A lookup, or a part of one, that only the event at the end of a compile contains."""
        if lookup.outcome == "disabled":
            if self._has_aot_code_since(lookup.time):
                lookup.aot_mode = True
            self._aot_code_us = None
            self._on_lookup(lookup, True)
            return
        for known, _ in reversed(self._lookups[-_RECENT:]):
            if _is_bypass_within(known, lookup):
                known.time_taken_ns, known.is_backward = lookup.time_taken_ns, lookup.is_backward
                break

    def _on_kernels(self, found: Sequence[str]) -> None:
        """What autotuning found stored for the kernels of one compile."""
        self._process.kernel_lookups += tuple(found)

    def _on_aot_code(self, clock_us: int | None) -> None:
        """AOTInductor wrote its code, within the compile that ends next."""
        self._aot_code_us = clock_us

    def _on_asked(self, at: int, cache: str) -> None:
        """A cache was asked; not noted where the beginning of the compile may be lost, and the record of the lookup with it."""
        if self._has_begun and cache not in self._recorded():
            self._asked.setdefault(cache, at)

    def _report_unrecorded_lookups(self) -> None:
        """Report caches that were asked, where no record in the whole log says what came of it."""
        recorded = self._recorded()
        for cache, at in sorted(self._asked.items()):
            if cache not in recorded:
                self._on_problem(at, _NO_LOOKUPS, f"{cache} {_NOT_RECORDED}")

    def _recorded(self) -> set[str]:
        """The caches of which a record of a lookup was read; that a cache is off, an event alone says."""
        return {lookup.cache for lookup, _ in self._lookups if lookup.outcome != "disabled"}

    def _has_aot_code_since(self, began_ns: int | None) -> bool:
        if self._aot_code_us is None or self._clock is None or began_ns is None:
            return False
        return self._clock.ns(self._aot_code_us) >= began_ns

    def _on_preflight(self, note: JsonObject) -> None:
        """A note of a pre-flight, next to the record of the lookup that it is about."""
        self._process.is_preflight = True
        self._notes.add(note)

    def _on_log_ended(self, is_cut: bool, has_failed: bool) -> None:
        """The bytes that were read ended; the log too, unless more events follow."""
        self._process.is_cut = is_cut
        self.has_failed = has_failed


def _is_bypass_within(known: LookupRow, event: LookupRow) -> bool:
    """Whether a bypassed lookup was made in the compile that an event ends: some milliseconds after that began."""
    began, at, taken = event.time, known.time, event.time_taken_ns
    if (known.cache, known.outcome, known.time_taken_ns) != (FXGRAPH, "bypass", None):
        return False
    if began is None or at is None or taken is None:
        return False
    # The event does not name the attempt.
    is_one = first_attempt(known.compile_id or "") == first_attempt(event.compile_id or "")
    return is_one and began <= at <= began + taken
