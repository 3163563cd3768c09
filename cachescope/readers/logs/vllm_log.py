"""What vLLM's own log says of its ``torch_compile_cache``, among whatever else a server prints.

The words are those of every release since 0.6.5 (`cachescope.catalogue.messages`); the beginnings of lines those of ``vllm/logger.py`` and
``vllm/logging_utils/formatter.py``::

    (EngineCore pid=42) INFO 11-23 20:31:35 [compilation/backends.py:417] [backbone] Compiling a graph ... takes 7.83 s

At the level INFO the file is logged without its folder; earlier releases write no process. Ray writes its own name of a
process before these lines, and one line for several that say the same (``ray/_private/ray_logging/__init__.py``)::

    (EngineCore_0 pid=42) (RayWorkerWrapper pid=77, ip=10.0.0.2) INFO ... [repeated 7x across cluster]

``python-json-logger`` writes them, with the fields of ``JSON_FORMAT`` (``vllm/logging_utils/formatter.py``) and the name of the process that
``vllm/logger.py`` adds (0.33.0)::

    {"asctime": "2026-11-24 15:00:07,410", "levelname": "INFO", "name": "vllm.compilation.backends", "processName": "MainProcess",
     "process": 42, "message": "[backbone] Compiling a graph ... takes 7.83 s", "vllm_process_name": "EngineCore_DP0"}

SGLang's fork says the same of its graphs, and of no start: a line of it is quoted, and no outcome made of it.

The parts of models that processes compile or load are put together of the messages of each process. Lines of several processes are mixed in
one log. Where they have no names, only what has a path in it is known to be of one rank: the rest is taken only while one process alone can
have said it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from cachescope.catalogue.messages import files, messages
from cachescope.frames.recorded_rows import LookupRow
from cachescope.frames.vllm import StartRow
from cachescope.keys.vllm import PlaceInTree, place_in_tree
from cachescope.readers.json_record import MOST_NS_OF_A_DURATION, load_json, well_formed
from cachescope.readers.kinds import JSON_HEAD, SGLANG_HEAD, without_colours
from cachescope.readers.logs.byte_source import Pieces, modified_s, open_bytes
from cachescope.readers.logs.log_lines import Lines
from cachescope.readers.logs.log_prefix import LogClock, clock_us, on_from, time_at
from cachescope.readers.reading import Process, Reading
from cachescope.terms import VLLM

_TIME: Final = re.compile(r"\d{4}-(?P<day>\d\d-\d\d \d\d:\d\d:\d\d)(?:,\d{1,6})?")
_PREFIX: Final = re.compile(r"\[(?P<prefix>[\w.-]{1,100})\] ")
_MOST_DIGITS_OF_A_PID: Final = 9

_LEAD: Final = re.compile(
    r"(?:\((?:(?P<process>[^()]{1,100}?) )?pid=(?P<pid>\d{1,9})(?:, ip=(?P<host>[^()\s]{1,60}))?\) )?"
    r"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) "
    r"(?P<logged>\d\d-\d\d \d\d:\d\d:\d\d) \[?(?P<place>[\w./]{1,200}\.py:\d{1,6})\] (?:\[(?P<prefix>[\w.-]{1,100})\] )?"
)
_REPEATED: Final = re.compile(
    r" \[repeated (?P<times>\d{1,9})x across cluster\](?: \(Ray deduplicates logs by default\..*\))?\Z"
)
_LONGEST: Final = 8_000
_SHOWN: Final = 200
# What makes a message look like one of a cache, besides the file whose logger wrote it.
_OF_A_CACHE: Final = re.compile(r"cache|compil|artifact|graph|dynamo|\bAOT\b", re.IGNORECASE)

_MOST_STARTS: Final = 100_000
_OUTCOMES: Final = {"loaded": "hit", "compiled": "full_miss", "not_known": "unknown"}
_COMPILED: Final = frozenset({"compiled", "stored", "failed"})
_OF_A_START: Final = _COMPILED | {"begins"}
# Of the whole compiled model; some releases save it once the start has ended.
_MADE: Final = frozenset({"aot_made", "aot_not_saved"})
_FAILED: Final = "vLLM failed to compile the model"
# The columns of what messages name, and of the seconds that they tell.
_TEXTS: Final = {
    "env": "env_hash", "cfg": "config_hash", "code": "code_hash", "comp": "compiler_hash", "why": "load_error", "not_saved": "save_error",
}  # fmt: skip
_TIMES: Final = {
    "dynamo": "dynamo_time_ns", "compiled": "compile_time_ns", "ends": "total_time_ns", "graphs_loaded": "load_time_ns",
}  # fmt: skip
_Ranks = tuple[int | None, int | None]
_Process = tuple[str | None, str | None, str | None, _Ranks | None]


def read_json_line(line: bytes) -> tuple[dict[str, str | None], str] | None:
    """What stands before a message in other logs (process, pid, time, part of the model), and the message; None if it is no line of vLLM."""
    match = JSON_HEAD.search(line)
    if match is None:
        return None
    try:
        found = load_json(line[match.start() :])
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    time, pid, message = (found.get(name) for name in ("asctime", "process", "message"))
    logged = _TIME.fullmatch(time) if isinstance(time, str) else None
    is_pid = isinstance(pid, int) and not isinstance(pid, bool) and 0 < pid < 10**_MOST_DIGITS_OF_A_PID
    if logged is None or not is_pid or not isinstance(message, str):
        return None
    name = found.get("vllm_process_name") or found.get("processName")
    prefix = _PREFIX.match(message)
    lead = {
        "process": name if isinstance(name, str) else None,
        "pid": str(pid),
        "host": None,
        "logged": logged["day"],
        "prefix": None if prefix is None else prefix["prefix"],
        # It does not name the line.
        "place": f"{found.get('name')}: {message[:40]}",
    }
    return lead, message if prefix is None else message[prefix.end() :]


def read_vllm_log(path: str, reading: Reading) -> None:
    """Read the rows of ``vllm_starts`` from one log."""
    log = _VllmLog(path, reading)
    with open_bytes(path) as stream:
        pieces = Pieces(stream)
        lines = Lines(pieces)
        while (line := lines.take()) is not None:
            # Other lines are left alone without being decoded.
            if any(word in line for word in log.words):
                log.read_line(line[:_LONGEST], lines.number, lines.is_whole)
        failure = pieces.failure()
    log.finish()
    if failure is not None:
        reading.problem(path, f"line {lines.number}", *failure)


class Said(NamedTuple):
    """One message."""

    name: str  # which message it is
    line: int
    # What comes before it: ``process``, ``pid``, ``host`` (of Ray's processes), ``logged``, ``prefix``.
    lead: Mapping[str, str | None]
    values: Mapping[str, str]  # what it says
    others: int  # how many more processes said the same, and are not named

    @property
    def ranks(self) -> _Ranks | None:
        """The ranks of the folder that it names; None if it names none."""
        path = self.values.get("path") or self.values.get("package")
        place = None if path is None else _place(path)
        return None if place is None or place.rank is None else (place.rank, place.dp_rank)


class _Start:
    """What was said so far of one part of a model."""

    def __init__(self, said: Said) -> None:
        self.line = said.line
        self.lead = said.lead
        self.prefix: str | None = said.lead["prefix"]
        self.ranks: _Ranks | None = None
        self.texts: dict[str, str] = {}
        self.times: dict[str, int] = {}
        self.said: set[str] = set()
        self.began_us = self.ended_us = _clock_us(said)

    def take(self, said: Said) -> None:
        """Add what a message says."""
        self.said.add(said.name)
        self.ended_us = _clock_us(said) or self.ended_us
        self.prefix = self.prefix or said.lead["prefix"]
        self.ranks = said.ranks or self.ranks
        for group, value in said.values.items():
            if group == "seconds":
                time = self.times.get(said.name, 0) + round(float(value) * 1e9)
                self.times[said.name] = min(time, MOST_NS_OF_A_DURATION)
            else:
                self.texts[group] = well_formed(value)

    def row(self, source: str) -> StartRow:
        """The row; a part is loaded only where something says so and nothing that it compiled."""
        path, pid = self.texts.get("path"), self.lead["pid"]
        place = None if path is None else _place(path)
        is_loaded = bool(self.said & {"aot_loaded", "graphs_loaded"})
        # What was loaded whole is not saved again; its graphs may be loaded, and be saved as a whole for the first time.
        is_compiled = bool(self.said & _COMPILED) or (not is_loaded and bool(self.said & _MADE))
        outcome = "compiled" if is_compiled else "loaded" if is_loaded else "not_known"
        told: dict[str, Any] = {column: self.texts.get(name) for name, column in _TEXTS.items()}
        told |= {column: self.times.get(name) for name, column in _TIMES.items()}
        if "failed" in self.said:
            told["save_error"] = _FAILED
        return StartRow(
            lookup=-1,  # `assemble` numbers all lookups
            source=source,
            line=self.line,
            process=self.lead["process"],
            pid=None if pid is None else int(pid),
            logged=self.lead["logged"] or "",
            prefix=self.prefix or (None if place is None else place.prefix),
            path=path,
            folder=None if place is None else place.folder,
            rank=None if self.ranks is None else self.ranks[0],
            outcome=outcome,
            is_partial=is_loaded and outcome == "compiled",
            is_disabled="disabled" in self.said,
            **told,
        )

    @property
    def key(self) -> str | None:
        """What was looked up: the folder, or the folder of the whole compiled model where no other is named."""
        path = self.texts.get("path") or self.texts.get("package")
        return None if path is None else _place(path).folder

    def lookup(self, row: StartRow, clock: LogClock | None) -> LookupRow:
        """The same as one lookup of vLLM's cache."""
        taken_ns, error = row.compile_time_ns, row.load_error
        found = LookupRow(cache=VLLM, cache_key=self.key, time_taken_ns=taken_ns, load_error=error)
        found.time, found.end_time = time_at(clock, self.began_us), time_at(clock, self.ended_us)
        found.outcome = "disabled" if row.is_disabled else _OUTCOMES[row.outcome]
        row.found = found
        return found


class _VllmLog:
    """What the lines of one log say: the parts of models that processes are compiling or loading, by process."""

    def __init__(self, path: str, reading: Reading) -> None:
        self._path = path
        self._reading = reading
        names = sorted({file.rpartition("/")[2] for file in files("vllm")})
        self.words = (b"ompil", b" graph", *(f"{name}:".encode() for name in names))
        self._files = re.compile(rf"(?:^|/)(?:{'|'.join(map(re.escape, names))}):|^vllm\.compilation\.")
        # A message of several lines repeats its head: where one is known, the rest of it is.
        self._read: set[str] = set()
        self._open: dict[_Process, _Start] = {}
        # Those of each process in the order of its log, and all in the order in which they were closed.
        self._closed: dict[_Process, list[list[_Start]]] = {}
        self._in_order: list[_Start] = []
        # The parts that each process has closed since it last began.
        self._prefixes: dict[_Process, set[str | None]] = defaultdict(set)
        self._count = 0
        self._are_left_out = False
        self._not_named = 0

    def read_line(self, line: bytes, number: int, is_whole: bool) -> None:
        """Take what a line says, if it is one of vLLM's that says something of its cache."""
        if (in_json := read_json_line(line)) is not None:
            self._take(*in_json, number, is_whole)
            return
        text = without_colours(line).decode("utf-8", "backslashreplace").rstrip()
        if (head := SGLANG_HEAD.search(line)) is not None:
            message = line[head.end() :].decode("utf-8", "backslashreplace").rstrip()
            if any(known.pattern.fullmatch(message) for known in messages("sglang")):
                self._quote(number, message[:_SHOWN], "SGLang")
            return
        lead = _LEAD.search(text)
        # Two beginnings: the lines of two processes ran together, or one quotes another. Which says what is not known.
        if lead is None or _LEAD.search(text, lead.end()) is not None:
            return
        self._take(lead.groupdict(), text[lead.end() :], number, is_whole)

    def _take(self, lead: dict[str, str | None], message: str, number: int, is_whole: bool) -> None:
        """Take a message, if it says something of vLLM's cache."""
        repeated = _REPEATED.search(message)
        if repeated is not None:
            message = message[: repeated.start()]
        place = lead["place"] or ""
        # As a traceback ends.
        text = message.removeprefix("RuntimeError: ").rstrip()
        for known in messages("vllm"):
            if (match := known.pattern.fullmatch(text)) is None or not (is_whole or not known.is_open_ended):
                continue
            self._read.add(place)
            if known.means == "told":
                self._quote(number, text[:_SHOWN])
            elif known.means:
                others = 0 if repeated is None else int(repeated["times"])
                self._add(Said(known.means, number, lead, match.groupdict(), others))
            return
        if is_whole and place not in self._read and self._files.search(place) and _OF_A_CACHE.search(text):
            self._read.add(place)
            self._quote(number, f"not understood: {text[:_SHOWN]}")

    def _add(self, said: Said) -> None:
        """Add a message to the part that its process is at."""
        self._not_named += said.others
        process = self._process(said)
        if process is None:
            return
        start = self._open.get(process)
        if start is None and said.name in _MADE and process in self._closed:
            self._closed[process][-1][-1].take(said)
            return
        if start is None and said.name == "failed":
            self._quote(said.line, _FAILED)
            return
        # All of it may be of a whole compiled model that was tried, whose graphs were loaded before it was refused.
        is_attempt = start is not None and "graphs_loaded" in start.said and not start.said & _OF_A_START
        if is_attempt and said.name == "aot_failed":
            del self._open[process]
            start, self._count = None, self._count - 1
        if start is None or _begins_another(start, said):
            self._close(process)
            if self._count == _MOST_STARTS:
                self._are_left_out = True
                return
            self._count += 1
            start = self._open[process] = _Start(said)
        start.take(said)
        if said.name == "ends":
            self._close(process)

    def _quote(self, line: int, text: str, of: str = "vLLM") -> None:
        """Tell of a line about a cache that no row holds."""
        message = f"{of}'s log says of its cache: {well_formed(text)}"
        self._reading.problem(self._path, f"line {line}", "quoted", message)

    def _process(self, said: Said) -> _Process | None:
        """Which process said it; None where several without a name may have."""
        name, pid, host = (said.lead[group] for group in ("process", "pid", "host"))
        if pid is not None:
            return name, pid, host, None
        unnamed = [process for process in self._open if process[1] is None]
        if said.ranks is not None:
            # The first that was said of a process may have had no path.
            of_rank = [process for process in unnamed if self._open[process].ranks in (said.ranks, None)]
            return of_rank[0] if of_rank else (None, None, None, said.ranks)
        if len(unnamed) > 1:
            return None
        return unnamed[0] if unnamed else (None, None, None, None)

    def _close(self, process: _Process) -> None:
        if (start := self._open.pop(process, None)) is None:
            return
        self._in_order.append(start)
        parts, prefix = self._closed.setdefault(process, [[]]), start.row(self._path).prefix
        # A container that starts again has the same pid.
        if prefix in self._prefixes[process]:
            parts.append([])
            self._prefixes[process].clear()
        self._prefixes[process].add(prefix)
        parts[-1].append(start)

    def finish(self) -> None:
        """Close what the log left open."""
        for process in list(self._open):
            self._close(process)
        modified = modified_s(self._path) if self._closed else 0.0
        row_of = {id(start): start.row(self._path) for start in self._in_order}
        self._reading.vllm_starts += row_of.values()
        for (_, pid, _, _), found in self._closed.items():
            of_each = [[(start, row_of[id(start)]) for start in starts] for starts in found]
            self._reading.processes += [_process(self._path, pid, starts, modified) for starts in of_each]
        if self._are_left_out:
            message = f"says of more than {_MOST_STARTS:,} parts that they were compiled or loaded: the rest is left out"
            self._reading.problem(self._path, "", "limit", message)
        if self._not_named:
            message = f"Ray left out {self._not_named} lines that other processes wrote: what these compiled is not all known"
            self._reading.problem(self._path, "", "not_logged", message)


def _begins_another(start: _Start, said: Said) -> bool:
    """Whether a process that says this is at another part than before: it crashed, and was started again.

    A whole compiled model is tried first, then Dynamo begins, then the folder is named.
    """
    if said.name == "aot_failed":
        return bool(start.said)
    if said.name == "begins":
        return bool(start.said - {"aot_failed"})
    return said.name == "directory" and said.name in start.said


def _process(source: str, pid: str | None, starts: list[tuple[_Start, StartRow]], modified: float) -> Process:
    """A process of vLLM with its lookups; the year is that of the file, as it is for torch's text logs."""
    clocks = [clock for start, _ in starts for clock in (start.began_us, start.ended_us) if clock is not None]
    first, last = (
        least(clocks, key=lambda clock: on_from(clock, clocks[0]), default=None) for least in (min, max)
    )
    clock = LogClock.from_file_time(clocks[0], modified) if clocks else None
    found = Process(source=source, kind=VLLM, pid=None if pid is None else int(pid))
    found.rank = next((row.rank for _, row in starts if row.rank is not None), None)
    found.clock_first_us, found.clock_last_us, found.start_time = first, last, time_at(clock, first)
    found.lookups = [start.lookup(row, clock) for start, row in starts]
    return found


def _clock_us(said: Said) -> int | None:
    """When it was said, on the clock of torch's logs: without a year."""
    day, _, time = (said.lead["logged"] or "").partition(" ")
    month, _, day = day.partition("-")
    try:
        return clock_us(month.encode(), day.encode(), f"{time}.000000".encode())
    except ValueError:  # words for numbers
        return None


def _place(path: str) -> PlaceInTree:
    # On Windows the parts of a path are separated by a backslash.
    return place_in_tree(f"{path if '/' in path else path.replace(chr(92), '/')}/")
