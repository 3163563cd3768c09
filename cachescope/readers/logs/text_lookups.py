"""The lookups of one process, from the messages of its cache loggers."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import Final

from cachescope.components import join_components
from cachescope.frames.recorded_rows import LookupRow
from cachescope.readers.logs.component_lists import ComponentLines
from cachescope.readers.logs.log_ends import Head, StreamEnd
from cachescope.readers.logs.log_prefix import LogClock
from cachescope.readers.logs.lookup_order import put_in_order
from cachescope.readers.logs.restarts import run_starts
from cachescope.readers.logs.text_messages import (
    BYPASS,
    DETAILS,
    GUARDS,
    NOT_PICKLED,
    NOT_SAVED,
    OUTCOME,
    POST_LOAD_GUARDS,
    STARTS_TRACING,
    STATUS,
    UNABLE,
    WRITING,
    Message,
    Stream,
    cache_dir_of,
    may_be_known,
)
from cachescope.readers.reading import Process, Reading
from cachescope.terms import AOTAUTOGRAD, FXGRAPH, MISSED

_SAME_MOMENT_US: Final = 2_000_000


class _Waiting:
    """An error that torch logged, which belongs to a lookup: told by itself, or the last line of a traceback."""

    def __init__(self, message: Message, error: str | None = None) -> None:
        self.message = message
        self.error = error or message.lines[-1].decode("utf-8", "replace")


class MessageReader:
    """Builds the lookups of one process from its messages.

    Attributes
    ----------
    process : Process
        The process, as far as it is known.
    first_line : int
        The number of its first line.
    """

    def __init__(
        self,
        source: str,
        reading: Reading,
        components: ComponentLines,
        stream: Stream,
        first_line: int,
    ) -> None:
        self._name, pid, rank = stream
        self.process = Process(source, "text", pid, rank)
        self.first_line = first_line
        self._reading = reading
        self._lookups: list[LookupRow] = []
        self._clocks: list[int | None] = []
        self._outcome_clocks: dict[int, int | None] = {}
        self._unresolved: list[LookupRow] = []
        self._segments: Counter[str | None] = Counter()
        self._places: dict[str | None, tuple[str, str, int]] = {}
        """The function, file and first line of the code of each compile id, where Dynamo's logger is on."""
        self._guards: dict[str, str] = {}
        # What torch says of a lookup at its default level: these wait for the line of the lookup, which stands there at INFO alone.
        self._load_error: _Waiting | None = None
        self._pickle_errors: dict[str | None, _Waiting] = {}
        self._is_behind_details = False
        self._is_2_4 = False
        self._is_one = True
        self._said: set[int] = set()
        self._components = components

    def read(self, message: Message) -> None:
        """Read one message; a message that is not about a cache only updates the clock."""
        process = self.process
        if message.clock_us is not None:
            if process.clock_first_us is None:
                process.clock_first_us = message.clock_us
            process.clock_last_us = message.clock_us
        self._is_behind_details = False
        whole = b"\n".join(message.lines)
        if not may_be_known(whole) or message.said in self._said:
            return
        if message.said is not None:
            self._said.add(message.said)
        if message.is_too_long:
            where, wrong = f"line {message.line}", "the message is too long: its end was not read"
            self._reading.problem(process.source, where, "limit", wrong)
        if match := DETAILS.match(message.lines[0].decode("utf-8", "replace")):
            self._read_details(match, message)
            return
        text = whole.decode("utf-8", "replace")
        if match := OUTCOME.match(text):
            self._read_outcome(match, message)
        elif match := BYPASS.match(text):
            self._read_bypass(match, message)
        elif (match := GUARDS.match(text)) and match["hit"] == "False":
            self._guards[match["key"]] = match["guards"]
        elif match := POST_LOAD_GUARDS.match(text):
            self._note_guards(match)
        elif match := UNABLE.match(text):
            self._report_load_error()
            self._load_error = _Waiting(message, match["error"])
        elif NOT_PICKLED.match(text):
            self._pickle_errors[message.compile_id] = _Waiting(message)
        elif match := NOT_SAVED.match(text):
            self._note_save_error(match, message)
        elif match := WRITING.match(text):
            self._note_entry(match["path"], message)
        elif match := STARTS_TRACING.fullmatch(text):
            self._places[message.compile_id] = match["function"], match["file"], int(match["line"])
        elif (match := STATUS.match(text)) and match["is_used"] == "False":
            self._read_disabled(match["aot_mode"] == "True", message)

    def resume(self, end: StreamEnd, process: Process | None) -> None:
        """Restore the state at the end of an earlier reading."""
        if process is not None:
            self.process = process
        else:
            self.process.clock_first_us, self.process.clock_last_us = end.clock_first_us, end.clock_last_us
            self.process.cache_dir = end.cache_dir
        self._lookups = [self.process.lookups[place] for place in end.order]
        for lookup in self._lookups:
            lookup.time = lookup.logged_time = None
        self._clocks = list(end.clocks_us)
        self._outcome_clocks = {id(self._lookups[at]): clock for at, clock in end.outcome_clocks_us}
        self._unresolved = [self._lookups[at] for at in end.unresolved]
        self._segments.update(dict(end.segments))
        self._places = {compile_id: (function, file, line) for compile_id, function, file, line in end.places}
        self._guards = dict(end.guards)
        self._is_2_4 = end.is_2_4

    def end(self, process: int | None, last: Head) -> StreamEnd | None:
        """The state for `resume`, after `finish`; None if a lookup waits for its outcome, or for several processes.

        Also None right after hash details: if they continue, or if another process's details come before the next
        message, reading from the start would number the details in another order.
        """
        waits = self._is_behind_details or any(lookup.cache == FXGRAPH for lookup in self._unresolved)
        waits |= self._load_error is not None or bool(self._pickle_errors)
        if waits or not self._is_one:
            return None
        places = {id(lookup): place for place, lookup in enumerate(self.process.lookups)}
        numbers = {id(lookup): number for number, lookup in enumerate(self._lookups)}
        return StreamEnd(
            name=self._name.decode("latin-1"),
            pid=self.process.pid,
            rank=self.process.rank,
            first_line=self.first_line,
            process=process,
            clock_first_us=self.process.clock_first_us,
            clock_last_us=self.process.clock_last_us,
            cache_dir=self.process.cache_dir,
            order=[places[id(lookup)] for lookup in self._lookups],
            clocks_us=self._clocks,
            outcome_clocks_us=[(numbers[at], clock) for at, clock in self._outcome_clocks.items()],
            unresolved=[numbers[id(lookup)] for lookup in self._unresolved],
            segments=list(self._segments.items()),
            places=[(compile_id, *place) for compile_id, place in self._places.items()],
            guards=self._guards,
            is_2_4=self._is_2_4,
            last_message=last,
        )

    def finish(self, modified_s: float) -> list[Process]:
        """The process, its lookups in order and with times if the log has them; several if the pid was used again.

        The year comes from `modified_s`, when the log was last written, in seconds since the epoch.
        """
        for lookup in self._unresolved:
            # The outcome of an AOTAutograd lookup may come much later: it is no problem that it is missing here.
            self._conclude(lookup, "the log ends before the outcome" if lookup.cache == FXGRAPH else None)
        self._report_load_error()
        for waiting in self._pickle_errors.values():
            self._report(waiting, "bypassed, the key could not be pickled")
        first = self.process.clock_first_us
        if first is not None:
            clock = LogClock.from_file_time(first, modified_s)
            for lookup, began in zip(self._lookups, self._clocks, strict=True):
                lookup.time = None if clock is None or began is None else clock.ns(began)
                logged = self._outcome_clocks.get(id(lookup), began)
                lookup.logged_time = None if clock is None or logged is None else clock.ns(logged)
            self.process.start_time_ns = None if clock is None else clock.ns(first)
        starts = run_starts(self._lookups, self._clocks, self._reading.details)
        self._is_one = len(starts) == 1
        if self._is_one:
            self.process.lookups = put_in_order(self._lookups)
            return [self.process]
        return [self._part(start, end) for start, end in pairwise([*starts, len(self._lookups)])]

    def _part(self, start: int, end: int) -> Process:
        """One of several processes, with its part of the lookups."""
        lookups = self._lookups[start:end]
        clocks = [clock for clock in self._clocks[start:end] if clock is not None]
        last = max([*clocks, self._outcome_clocks.get(id(lookups[-1])) or 0])
        directories = (cache_dir_of(lookup.entry_path) for lookup in lookups if lookup.entry_path)
        return replace(
            self.process,
            clock_first_us=clocks[0] if start and clocks else self.process.clock_first_us,
            clock_last_us=last if clocks and end < len(self._lookups) else self.process.clock_last_us,
            start_time_ns=lookups[0].time if start else self.process.start_time_ns,
            cache_dir=next(directories, None),
            lookups=put_in_order(lookups),
        )

    def _add(self, cache: str, key: str | None, message: Message) -> LookupRow:
        lookup = LookupRow(
            cache=cache,
            time=None,
            cache_key=key,
            compile_id=message.compile_id,
            segment=self._segments[message.compile_id],
        )
        if message.compile_id is not None and message.compile_id in self._places:
            lookup.function, lookup.file, lookup.line = self._places[message.compile_id]
        self._lookups.append(lookup)
        self._clocks.append(message.clock_us)
        return lookup

    def _read_details(self, match: re.Match[str], message: Message) -> None:
        # 2.4 logged the details of AOTAutograd keys with the words of FX keys, and no outcome of an AOTAutograd lookup.
        self._is_2_4 = (match["which"] == "FX" and match["key"].startswith("a")) or self._is_2_4
        cache = AOTAUTOGRAD if match["which"] == "Autograd" or match["key"].startswith("a") else FXGRAPH
        self._give_up(cache, message.compile_id)
        # These waited for an outcome, but its line was lost.
        self._guards.pop(match["key"], None)
        self._report_load_error()
        self._load_error = None
        if cache == AOTAUTOGRAD:
            self._segments[message.compile_id] += 1
        lookup = self._add(cache, match["key"], message)
        lookup.outcome = "unknown"
        self._is_behind_details = True
        lines = message.lines[1:]
        lookup.is_details_cut = not lines or message.is_too_long
        if not lookup.is_details_cut:
            lookup.detail_set = self._details(lines, message.line)
        self._unresolved.append(lookup)

    def _details(self, lines: list[bytes], number: int) -> int | None:
        details = self._components.read(lines)
        if details is None:
            texts = join_components(line.decode("utf-8", "replace") for line in lines)
            details = self._reading.add_details(texts, self.process.source, f"line {number}")
        return details

    def _give_up(self, cache: str, compile_id: str | None) -> None:
        """Stop waiting for outcomes that must precede the compile's next lookup.

        torch makes no lookup between the key of an FX graph and its outcome; an AOTAutograd lookup contains the
        lookups of its graphs.
        """
        over = (FXGRAPH,) if cache == FXGRAPH else (FXGRAPH, AOTAUTOGRAD)
        waiting: list[LookupRow] = []
        for lookup in self._unresolved:
            if lookup.compile_id == compile_id and lookup.cache in over:
                self._conclude(lookup, "the line of its outcome is missing")
            else:
                waiting.append(lookup)
        self._unresolved = waiting

    def _conclude(self, lookup: LookupRow, problem: str | None) -> None:
        """Mark a lookup without an outcome as a miss if that is certain; else report the problem."""
        if lookup.outcome == "unknown" and self._compiled_after(lookup):
            lookup.outcome = "full_miss"
        if lookup.outcome == "unknown" and problem is not None:
            where = f"key {lookup.cache_key}"
            self._reading.problem(self.process.source, where, "truncated", problem)

    def _compiled_after(self, aot: LookupRow) -> bool:
        """Whether this AOTAutograd lookup certainly missed, although no line says so.

        autograd_cache.py, `AOTAutogradCache.load` (through 2.14): if the entry exists and a graph that it points to does
        not, it misses without a message. The graph is then looked up twice: with the key of the entry, which has no hash
        details, and again by the compile. One miss is not enough: in a log that lost lines, it may be of a later lookup.
        Only 2.4 says nothing of any outcome of AOTAutograd.
        """
        if aot.cache != AOTAUTOGRAD:
            return False
        at = next(at for at in range(len(self._lookups) - 1, -1, -1) if self._lookups[at] is aot)
        missed: set[str | None] = set()
        for lookup in self._lookups[at + 1 :]:
            is_inside = (lookup.compile_id, lookup.segment) == (aot.compile_id, aot.segment)
            if not (is_inside and lookup.cache == FXGRAPH and lookup.outcome in MISSED):
                continue
            if self._is_2_4 or lookup.cache_key in missed:
                return True
            if lookup.detail_set is None and not lookup.is_details_cut:
                missed.add(lookup.cache_key)
        return False

    def _take_unresolved(self, cache: str, key: str, compile_id: str | None) -> LookupRow | None:
        for at in range(len(self._unresolved) - 1, -1, -1):
            lookup = self._unresolved[at]
            if (lookup.cache, lookup.cache_key, lookup.compile_id) == (cache, key, compile_id):
                return self._unresolved.pop(at)
        return None

    def _read_outcome(self, match: re.Match[str], message: Message) -> None:
        cache = FXGRAPH if match["which"] == "fx graph" else AOTAUTOGRAD
        key = match["key"]
        lookup = self._take_unresolved(cache, key, message.compile_id)
        if lookup is not None and self._is_past(lookup, match["state"], message):
            self._conclude(lookup, "the line of its outcome is missing" if cache == FXGRAPH else None)
            lookup = None
        if lookup is None:
            # At INFO a miss is logged before the lookups that follow it, a hit after those it contains.
            if cache == AOTAUTOGRAD and match["state"] == "miss":
                self._segments[message.compile_id] += 1
            lookup = self._add(cache, key, message)
            if cache == AOTAUTOGRAD and match["state"] == "hit":
                self._segments[message.compile_id] += 1
        lookup.cache_state = match["state"]
        self._outcome_clocks[id(lookup)] = message.clock_us
        guards = self._guards.pop(key, None)
        if lookup.cache_state == "hit":
            lookup.outcome = "hit"
        elif guards is not None:
            lookup.outcome, lookup.guards_expr = "guard_miss", guards
        else:
            lookup.outcome = "full_miss"
        # Both caches log damaged entries in the same words; the next outcome shows which cache it was.
        if self._load_error is not None:
            lookup.load_error, self._load_error = self._load_error.error, None

    def _is_past(self, lookup: LookupRow, state: str, message: Message) -> bool:
        """Whether torch had moved on to other compiles: then the outcome is that of a later process with the same pid.

        torch makes no lookup between the key of an FX graph and its outcome. Between an AOTAutograd key and a hit it looks
        up only the entry's graphs. Lines that several processes write at once are interleaved, but only within a moment.
        """
        is_of_graphs = lookup.cache == FXGRAPH or state == "hit"
        if not is_of_graphs or self._lookups[-1].compile_id == lookup.compile_id:
            return False
        at = next(at for at in range(len(self._lookups) - 1, -1, -1) if self._lookups[at] is lookup)
        began = self._clocks[at]
        if began is None or message.clock_us is None:
            return False
        return abs(message.clock_us - began) > _SAME_MOMENT_US

    def _read_bypass(self, match: re.Match[str], message: Message) -> None:
        if message.is_cut:
            where = f"line {message.line}"
            self._reading.problem(
                self.process.source, where, "truncated", "the log ends within torch's reason"
            )
            return
        is_fx = match["which"].startswith("FX")
        cache = FXGRAPH if is_fx else AOTAUTOGRAD
        reason = match["reason"].removesuffix("'") if is_fx else match["reason"]
        missed = self._missed_in_this_compile(cache, message.compile_id)
        if missed is not None:
            # If the outcome is unknown, either the lookup or the saving was bypassed.
            if missed.outcome != "unknown":
                missed.save_bypass = reason
            return
        if "pickl" in reason:  # the error is that of this bypass
            self._pickle_errors.pop(message.compile_id, None)
        lookup = self._add(cache, None, message)
        lookup.outcome = lookup.cache_state = "bypass"
        lookup.bypass_reason = reason

    def _read_disabled(self, is_aot_mode: bool, message: Message) -> None:
        """A compile that asks no cache; only this line says so, where Inductor's logger is at DEBUG."""
        lookup = self._add(FXGRAPH, None, message)
        lookup.outcome = lookup.cache_state = "disabled"
        lookup.aot_mode = is_aot_mode or None

    def _missed_in_this_compile(self, cache: str, compile_id: str | None) -> LookupRow | None:
        """The miss whose result torch cannot store: then the bypass is not a second lookup. None if there is no such miss."""
        for lookup in reversed(self._lookups):
            if lookup.cache == cache and lookup.compile_id == compile_id:
                if lookup.outcome == "unknown" and self._compiled_after(lookup):
                    lookup.outcome = "full_miss"
                stored = lookup.entry_path is not None or lookup.save_bypass is not None
                may_have_missed = lookup.outcome in (*MISSED, "unknown")
                return lookup if cache == AOTAUTOGRAD and may_have_missed and not stored else None
        return None

    def _note_guards(self, match: re.Match[str]) -> None:
        for lookup in reversed(self._lookups):
            if lookup.cache_key == match["key"]:
                lookup.guards_expr = match["guards"]
                return

    def _note_save_error(self, match: re.Match[str], message: Message) -> None:
        """Note why a result could not be stored; the error of an FX graph is the last line of its traceback."""
        cache = AOTAUTOGRAD if match["which"] == "AOTAutograd" else FXGRAPH
        for lookup in reversed(self._lookups):
            if (lookup.cache, lookup.compile_id) == (cache, message.compile_id):
                lookup.save_error = _Waiting(message, match["error"]).error
                return
        self._report(_Waiting(message, match["error"]), "what was compiled could not be stored")

    def _report_load_error(self) -> None:
        """Tell of an entry that could not be loaded if no lookup says that it was its own."""
        if self._load_error is not None:
            self._report(self._load_error, "an entry could not be loaded")

    def _report(self, waiting: _Waiting, what: str) -> None:
        compile_id = waiting.message.compile_id
        where = "" if compile_id is None else f"compile {compile_id}: "
        message = f"{where}{what}: {waiting.error} (no line says in which cache and for which key)"
        self._reading.problem(self.process.source, f"line {waiting.message.line}", "no_lookups", message)

    def _note_entry(self, path: str, message: Message) -> None:
        if self.process.cache_dir is None:
            self.process.cache_dir = cache_dir_of(path)
        for lookup, _ in zip(reversed(self._lookups), range(64), strict=False):
            if lookup.cache == AOTAUTOGRAD and lookup.compile_id == message.compile_id:
                lookup.entry_path = path
                # The entry is the result of the compile after the miss.
                if lookup.outcome == "unknown" and lookup.cache_key in path.split("/"):
                    lookup.outcome = "full_miss"
                return
