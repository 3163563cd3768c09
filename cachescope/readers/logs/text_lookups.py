"""The lookups of the processes of a text log, from the events of their cache loggers."""

from __future__ import annotations

import re
from bisect import bisect
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from operator import attrgetter
from os.path import basename, dirname
from typing import Any, Final, NamedTuple

from cachescope.errors import SourceError
from cachescope.frames.recorded_rows import LookupRow
from cachescope.grouping import by_key
from cachescope.readers.logs.byte_source import modified_s
from cachescope.readers.logs.compiled_frames import TextCompiles
from cachescope.readers.logs.log_events import Fold
from cachescope.readers.logs.log_prefix import LogClock, on_from, time_at
from cachescope.readers.logs.lookup_order import put_in_order, run_starts
from cachescope.readers.logs.text_messages import (
    BYPASS,
    GUARDS,
    NOT_PICKLED,
    NOT_SAVED,
    OF_COMPILES,
    OUTCOME,
    POST_LOAD_GUARDS,
    STATUS,
    UNABLE,
    WRITING,
    cache_dir_of,
    ended_in,
)
from cachescope.readers.reading import Process, Reading
from cachescope.terms import AOTAUTOGRAD, FXGRAPH, MISSED

_SAME_MOMENT_US: Final = 2_000_000


class _Message(NamedTuple):
    """A message about a cache that is no hash details."""

    line: int
    compile_id: str | None
    clock_us: int | None
    text: str
    is_cut: bool
    """Whether the log ends within its last line."""


def _error_in(message: _Message, error: str | None = None) -> _Message:
    """An error that torch logged, which belongs to a lookup: told by itself, or the last line of a traceback."""
    return message._replace(text=error or message.text.rpartition("\n")[2])


class TextProcesses(Fold):
    """Builds the processes of one text log while its events are read: one for each stream of lines.

    Where a text log cannot be read further, a problem says so; what follows is read.
    """

    def __init__(self, source: str, reading: Reading) -> None:
        super().__init__(source, reading)
        self._streams: list[_TextProcess] = []
        # The exit status of processes, by their pid, as what had started them tells it.
        self._ended: dict[int, int] = {}

    def finish(self) -> None:
        """Turn clocks into times, and add the processes to the reading, in the order of their first lines."""
        if not self._streams:
            raise SourceError(self._source, "holds no line of torch's logs")
        modified = modified_s(self._source)
        streams = sorted(self._streams, key=lambda one: one.first_line)
        before = len(self._reading.processes)
        for alike in by_key(((one.name, one.process.pid), one) for one in streams).values():
            found = [one for stream in alike for one in stream.finish(modified)]
            self._reading.processes += _whole([one for one in found if one.lookups or one.compiled])
        of_pid = by_key((one.pid, one) for one in self._reading.processes[before:])
        for pid, status in self._ended.items():
            # Containers share pids.
            if len(found := of_pid[pid]) == 1:
                found[0].own_exit_status = status
        if len(self._reading.processes) == before:
            self._reading.silent.append((self._source, frozenset(one.process.pid for one in streams)))

    def _on_stream(self, number: int, name: str, pid: int | None, rank: int | None, first_line: int) -> None:
        """Lines of another process begin; `number` counts the streams."""
        assert number == len(self._streams)
        process = Process(source=self._source, kind="text", pid=pid, rank=rank)
        self._streams.append(_TextProcess(process, self._reading, name, first_line))

    def _on_clocks(self, number: int, first_us: int | None, last_us: int | None) -> None:
        """The first and the last clock of the lines of a process that were read."""
        process = self._streams[number].process
        process.clock_first_us = first_us if process.clock_first_us is None else process.clock_first_us
        process.clock_last_us = process.clock_last_us if last_us is None else last_us

    def _on_message(self, number: int, *values: Any) -> None:
        message = _Message(*values)
        if (ended := ended_in(message.text)) is None:
            self._streams[number].read(message)
        else:
            self._ended.setdefault(*ended)

    def _on_lookup(self, lookup: LookupRow, number: int, clock_us: int | None, is_2_4: bool) -> None:
        """A key with its hash details, whose outcome is still to come."""
        self._streams[number].begin(lookup, clock_us, is_2_4=is_2_4)

    def _on_problem(self, where: str, kind: str, message: str, count: int = 1) -> None:
        self._reading.problem(self._source, where, kind, message, count)


class _TextProcess:
    """Builds the lookups of one process from its messages."""

    def __init__(self, process: Process, reading: Reading, name: str, first_line: int) -> None:
        self.process = process
        self.name = name
        self.first_line = first_line
        self._reading = reading
        self._lookups: list[LookupRow] = []
        self._clocks: list[int | None] = []
        self._outcome_clocks: dict[int, int | None] = {}
        # The places of the lookups of each compile and cache; the latest of each key and compile; and that of each compile and cache that waits for an outcome.
        self._places: dict[tuple[str, str | None], list[int]] = defaultdict(list)
        self._of_key: dict[tuple[str | None, str | None], LookupRow] = {}
        self._unresolved: dict[tuple[str, str | None], LookupRow] = {}
        self._compiles = TextCompiles()
        self._guards: dict[str, str] = {}
        # What torch says of a lookup at its default level: these wait for the line of the lookup, which stands there at INFO alone.
        self._load_error: _Message | None = None
        self._pickle_errors: dict[str | None, _Message] = {}
        # 2.4 logged no outcome of an AOTAutograd lookup.
        self._is_2_4 = False

    def read(self, message: _Message) -> None:
        """Read one message."""
        text = message.text
        if match := OUTCOME.match(text):
            self._read_outcome(match, message)
        elif match := BYPASS.match(text):
            self._read_bypass(match, message)
        elif (match := GUARDS.match(text)) and match["hit"] == "False":
            self._guards[match["key"]] = match["guards"]
        elif match := POST_LOAD_GUARDS.match(text):
            self._note_guards(match, message)
        elif match := UNABLE.match(text):
            self._report_load_error()
            self._load_error = _error_in(message, match["error"] or match["artifact"])
        elif NOT_PICKLED.match(text):
            self._pickle_errors[message.compile_id] = _error_in(message)
        elif match := NOT_SAVED.match(text):
            self._note_save_error(match, message)
        elif match := WRITING.match(text):
            self._note_entry(match["path"], message)
        elif match := STATUS.match(text):
            if match["is_used"] == "False":
                self._read_disabled(match["aot_mode"] == "True", message)
        elif message.compile_id is not None:
            self._compiles.read(text, message.compile_id, message.clock_us)
        elif any(pattern.match(text) for pattern in OF_COMPILES):
            first = text.partition("\n")[0]
            problem = f"not read, as no compile id precedes it, as with TORCH_LOGS_FORMAT=short: {first}"
            self._problem(f"line {message.line}", "quoted", problem)

    def begin(self, lookup: LookupRow, clock_us: int | None, *, is_2_4: bool) -> None:
        """Take a lookup whose outcome is still to come."""
        self._is_2_4 |= is_2_4
        self._give_up(lookup.cache, lookup.compile_id)
        # These waited for an outcome, but its line was lost.
        self._guards.pop(lookup.cache_key or "", None)
        self._report_load_error()
        self._load_error = None
        if lookup.cache == AOTAUTOGRAD:
            self._compiles.count_lookup(lookup.compile_id)
        self._add(lookup, clock_us)
        self._unresolved[lookup.cache, lookup.compile_id] = lookup

    def finish(self, modified_s: float) -> list[Process]:
        """The process, its lookups in order and with times if the log has them; several if the pid was used again.

        The year comes from `modified_s`, when the log was last written, in seconds since the epoch.
        """
        waiting = {*map(id, self._unresolved.values())}
        for lookup in (lookup for lookup in self._lookups if id(lookup) in waiting):
            # The outcome of an AOTAutograd lookup may come much later: it is no problem that it is missing here.
            self._conclude(lookup, "the log ends before the outcome" if lookup.cache == FXGRAPH else None)
        self._report_load_error()
        for error in self._pickle_errors.values():
            self._report(error, "bypassed, the key could not be pickled")
        first, clock = self.process.clock_first_us, None
        if first is not None:
            clock = LogClock.from_file_time(first, modified_s)
            for lookup, began in zip(self._lookups, self._clocks, strict=True):
                lookup.time = time_at(clock, began)
                lookup.logged_time = time_at(clock, self._outcome_clocks.get(id(lookup), began))
            self.process.start_time = time_at(clock, first)
        starts = run_starts(self._lookups, self._clocks, self._reading.details)
        if len(starts) == 1:
            self.process.lookups = put_in_order(self._lookups)
            self.process.compiled = self._compiles.rows(clock)
            return [_with_directories(self.process)]
        return [self._part(start, end) for start, end in pairwise([*starts, len(self._lookups)])]

    def _part(self, start: int, end: int) -> Process:
        """One of several processes, with its part of the lookups."""
        lookups = self._lookups[start:end]
        clocks = [clock for clock in self._clocks[start:end] if clock is not None]
        last = max([*clocks, self._outcome_clocks.get(id(lookups[-1])) or 0])
        directories = (cache_dir_of(lookup.entry_path) for lookup in lookups if lookup.entry_path)
        part = replace(
            self.process,
            clock_first_us=clocks[0] if start and clocks else self.process.clock_first_us,
            clock_last_us=last if clocks and end < len(self._lookups) else self.process.clock_last_us,
            start_time=lookups[0].time if start else self.process.start_time,
            cache_dir=next(directories, None),
            lookups=put_in_order(lookups),
        )
        return _with_directories(part)

    def _add(self, lookup: LookupRow, clock_us: int | None) -> LookupRow:
        lookup.segment = self._compiles.segment_of(lookup.compile_id)
        if (compiled := self._compiles.of(lookup.compile_id)) is not None:
            lookup.function, lookup.file, lookup.line = compiled.place
            lookup.recompile_reasons = "\n".join(compiled.row.recompile_reasons) or None
        self._places[lookup.cache, lookup.compile_id].append(len(self._lookups))
        self._of_key[lookup.cache_key, lookup.compile_id] = lookup
        self._lookups.append(lookup)
        self._clocks.append(clock_us)
        return lookup

    def _add_new(self, cache: str, key: str | None, message: _Message) -> LookupRow:
        """Add a lookup without hash details."""
        row = LookupRow(cache=cache, cache_key=key, compile_id=message.compile_id)
        return self._add(row, message.clock_us)

    def _give_up(self, cache: str, compile_id: str | None) -> None:
        """Stop waiting for outcomes that must precede the compile's next lookup.

        torch makes no lookup between the key of an FX graph and its outcome; an AOTAutograd lookup contains the
        lookups of its graphs.
        """
        for one in (FXGRAPH,) if cache == FXGRAPH else (AOTAUTOGRAD, FXGRAPH):
            if (lookup := self._unresolved.pop((one, compile_id), None)) is not None:
                self._conclude(lookup, "the line of its outcome is missing")

    def _conclude(self, lookup: LookupRow, problem: str | None) -> None:
        """Mark a lookup without an outcome as a miss if that is certain; else report the problem."""
        if lookup.outcome == "unknown" and self._compiled_after(lookup):
            lookup.outcome = "full_miss"
        if lookup.outcome == "unknown" and problem is not None:
            self._problem(f"key {lookup.cache_key}", "truncated", problem)

    def _compiled_after(self, aot: LookupRow) -> bool:
        """Whether this AOTAutograd lookup certainly missed, although no line says so.

        autograd_cache.py, `AOTAutogradCache.load` (through 2.14): if the entry exists and a graph that it points to does
        not, it misses without a message. The graph is then looked up twice: with the key of the entry, which has no hash
        details, and again by the compile. One miss is not enough: in a log that lost lines, it may be of a later lookup.
        Only 2.4 says nothing of any outcome of AOTAutograd.
        """
        if aot.cache != AOTAUTOGRAD:
            return False
        missed: set[str | None] = set()
        for lookup in self._graphs_after(aot):
            if lookup.segment != aot.segment or lookup.outcome not in MISSED:
                continue
            if self._is_2_4 or lookup.cache_key in missed:
                return True
            if lookup.detail_set is None and not lookup.is_details_cut:
                missed.add(lookup.cache_key)
        return False

    def _graphs_after(self, aot: LookupRow) -> Iterator[LookupRow]:
        """The FX lookups of a compile after one of AOTAutograd."""
        graphs = self._places[FXGRAPH, aot.compile_id]
        return map(self._lookups.__getitem__, graphs[bisect(graphs, self._index_of(aot)) :])

    def _index_of(self, lookup: LookupRow) -> int:
        places = reversed(self._places[lookup.cache, lookup.compile_id])
        return next(at for at in places if self._lookups[at] is lookup)

    def _latest(self, cache: str, compile_id: str | None) -> LookupRow | None:
        """The latest lookup of a compile in a cache."""
        places = self._places.get((cache, compile_id))
        return self._lookups[places[-1]] if places else None

    def _read_outcome(self, match: re.Match[str], message: _Message) -> None:
        cache = FXGRAPH if match["which"] == "fx graph" else AOTAUTOGRAD
        key = match["key"]
        compiled = cache, message.compile_id
        lookup = self._unresolved.get(compiled)
        lookup = self._unresolved.pop(compiled) if lookup is not None and lookup.cache_key == key else None
        if lookup is not None and self._is_past(lookup, match["state"], message):
            self._conclude(lookup, "the line of its outcome is missing" if cache == FXGRAPH else None)
            lookup = None
        if lookup is None:
            # At INFO a miss is logged before the lookups that follow it, a hit after those it contains.
            if cache == AOTAUTOGRAD and match["state"] == "miss":
                self._compiles.count_lookup(message.compile_id)
            lookup = self._add_new(cache, key, message)
            if cache == AOTAUTOGRAD and match["state"] == "hit":
                self._compiles.count_lookup(message.compile_id)
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
            lookup.load_error, self._load_error = self._load_error.text, None

    def _is_past(self, lookup: LookupRow, state: str, message: _Message) -> bool:
        """Whether torch had moved on: then the outcome is that of a later process with the same pid, and lines are lost.

        torch makes no lookup between the key of an FX graph and its outcome. Between an AOTAutograd key and a hit it looks
        up only the entry's graphs, and finds all of them. Lines that several processes write at once are interleaved, but only within a moment.
        """
        at = self._index_of(lookup)
        if lookup.cache == FXGRAPH:
            is_over = at < len(self._lookups) - 1
        else:
            is_other = self._lookups[-1].compile_id != lookup.compile_id
            since = (self._lookups[one].outcome for one in range(at + 1, len(self._lookups)))
            is_over = state == "hit" and (is_other or any(one in MISSED for one in since))
        began = self._clocks[at]
        if not is_over or began is None or message.clock_us is None:
            return False
        return abs(message.clock_us - began) > _SAME_MOMENT_US

    def _read_bypass(self, match: re.Match[str], message: _Message) -> None:
        if message.is_cut:
            self._problem(f"line {message.line}", "truncated", "the log ends within torch's reason")
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
        if "pickl" in reason and (waiting := self._pickle_errors.pop(message.compile_id, None)) is not None:
            reason = reason if reason in waiting.text else f"{reason}: {waiting.text}"
        lookup = self._add_new(cache, None, message)
        lookup.outcome = lookup.cache_state = "bypass"
        lookup.bypass_reason = reason

    def _read_disabled(self, is_aot_mode: bool, message: _Message) -> None:
        """A compile that asks no cache; only this line says so, where Inductor's logger is at DEBUG."""
        lookup = self._add_new(FXGRAPH, None, message)
        lookup.outcome = lookup.cache_state = "disabled"
        lookup.aot_mode = is_aot_mode or None

    def _missed_in_this_compile(self, cache: str, compile_id: str | None) -> LookupRow | None:
        """The miss whose result torch cannot store: then the bypass is not a second lookup. None if there is no such miss."""
        lookup = self._latest(cache, compile_id)
        if cache != AOTAUTOGRAD or lookup is None:
            return None
        self._conclude(lookup, None)
        if lookup.outcome not in (*MISSED, "unknown") or lookup.entry_path or lookup.save_bypass is not None:
            return None
        # A training graph is stored after its backward graph: until then, it is another one that is bypassed.
        sets = (one.detail_set for one in self._graphs_after(lookup))
        directions = {self._reading.details.direction(one) for one in sets if one is not None}
        return None if "forward" in directions and "backward" not in directions else lookup

    def _note_guards(self, match: re.Match[str], message: _Message) -> None:
        if (lookup := self._of_key.get((match["key"], message.compile_id))) is not None:
            lookup.guards_expr = match["guards"]

    def _note_save_error(self, match: re.Match[str], message: _Message) -> None:
        """Note why a result could not be stored; the error of an FX graph is the last line of its traceback."""
        cache = AOTAUTOGRAD if match["which"] == "AOTAutograd" else FXGRAPH
        waiting = _error_in(message, match["error"])
        if (lookup := self._latest(cache, message.compile_id)) is not None:
            lookup.save_error = waiting.text
        else:
            self._report(waiting, "what was compiled could not be stored")

    def _report_load_error(self) -> None:
        """Tell of an entry that could not be loaded if no lookup says that it was its own."""
        if self._load_error is not None:
            self._report(self._load_error, "an entry could not be loaded")

    def _report(self, waiting: _Message, what: str) -> None:
        compile_id = waiting.compile_id
        where = "" if compile_id is None else f"compile {compile_id}: "
        message = f"{where}{what}: {waiting.text} (no line says in which cache and for which key)"
        self._problem(f"line {waiting.line}", "no_lookups", message)

    def _problem(self, where: str, kind: str, message: str) -> None:
        self._reading.problem(self.process.source, where, kind, message)

    def _note_entry(self, path: str, message: _Message) -> None:
        """Note the entry that a compile wrote after it had missed the key by which the folder of the entry is named."""
        if self.process.cache_dir is None:
            self.process.cache_dir = cache_dir_of(path)
        if (lookup := self._of_key.get((basename(dirname(path)), message.compile_id))) is not None:
            lookup.entry_path = path
            lookup.outcome = "full_miss" if lookup.outcome == "unknown" else lookup.outcome


def _whole(processes: list[Process]) -> list[Process]:
    """The processes of one name and pid. Torch writes the rank only while there is a process group: what has none is of the one rank, too."""
    id_of = attrgetter("compile_id")
    ids = [{*map(id_of, one.lookups), *map(id_of, one.compiled)} for one in processes]
    if len(ids) != 2 or ids[0] & ids[1] or {one.rank is None for one in processes} != {True, False}:
        # Containers share pids: their compile ids begin alike.
        return processes
    first, other = processes
    rows = sorted((*first.lookups, *other.lookups), key=lambda row: row.time or 0)
    ends = [at for one in processes if (at := one.clock_last_us) is not None]
    last = max(ends, key=lambda at: on_from(at, first.clock_first_us or at), default=None)
    whole = replace(first, cache_dir=first.cache_dir or other.cache_dir, clock_last_us=last, lookups=rows)
    whole.rank = other.rank if first.rank is None else first.rank
    whole.compiled = [*first.compiled, *other.compiled]
    return [_with_directories(whole)]


def _with_directories(process: Process) -> Process:
    """The process, its lookups with the directory of their entry where that is another one."""
    for lookup in process.lookups:
        folder = cache_dir_of(lookup.entry_path) if lookup.entry_path else None
        lookup.cache_dir = None if folder == process.cache_dir else folder
    return process
