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
"""

from __future__ import annotations

import re
from typing import Final

from cachescope.catalogue.messages import files, messages
from cachescope.readers.json_record import load_json
from cachescope.readers.kinds import JSON_HEAD, SGLANG_HEAD, without_colours
from cachescope.readers.logs.byte_source import Pieces, open_bytes
from cachescope.readers.logs.log_lines import Lines
from cachescope.readers.logs.vllm_starts import Said, Starts
from cachescope.readers.reading import Reading

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
    log.starts.finish()
    if failure is not None:
        reading.problem(path, f"line {lines.number}", *failure)


class _VllmLog:
    """What the lines of one log say."""

    def __init__(self, path: str, reading: Reading) -> None:
        self.starts = Starts(path, reading)
        names = sorted({file.rpartition("/")[2] for file in files("vllm")})
        self.words = (b"ompil", b" graph", *(f"{name}:".encode() for name in names))
        self._files = re.compile(rf"(?:^|/)(?:{'|'.join(map(re.escape, names))}):|^vllm\.compilation\.")
        # A message of several lines repeats its head: where one is known, the rest of it is.
        self._read: set[str] = set()

    def read_line(self, line: bytes, number: int, is_whole: bool) -> None:
        """Take what a line says, if it is one of vLLM's that says something of its cache."""
        if (in_json := read_json_line(line)) is not None:
            self._take(*in_json, number, is_whole)
            return
        text = without_colours(line).decode("utf-8", "backslashreplace").rstrip()
        if (head := SGLANG_HEAD.search(line)) is not None:
            message = line[head.end() :].decode("utf-8", "backslashreplace").rstrip()
            if any(known.pattern.fullmatch(message) for known in messages("sglang")):
                self.starts.quote(number, message[:_SHOWN], "SGLang")
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
                self.starts.quote(number, text[:_SHOWN])
            elif known.means:
                others = 0 if repeated is None else int(repeated["times"])
                self.starts.take(Said(known.means, number, lead, match.groupdict(), others))
            return
        if is_whole and place not in self._read and self._files.search(place) and _OF_A_CACHE.search(text):
            self._read.add(place)
            self.starts.quote(number, f"not understood: {text[:_SHOWN]}")
