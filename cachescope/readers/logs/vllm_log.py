"""What vLLM's own log says of its ``torch_compile_cache``, among whatever else a server prints.

The words are those of 0.13.0 and 0.33.0: ``vllm/compilation/backends.py``, ``decorators.py`` and ``monitor.py``; the beginnings
of lines those of ``vllm/logger.py`` and ``vllm/logging_utils/formatter.py``::

    (EngineCore pid=42) INFO 11-23 20:31:35 [compilation/backends.py:417] [backbone] Compiling a graph ... takes 7.83 s

At the level INFO the file is logged without its folder; earlier releases write no process. Ray writes its own name of a
process before these lines, and one line for several that say the same (``ray/_private/ray_logging/__init__.py``)::

    (EngineCore_0 pid=42) (RayWorkerWrapper pid=77, ip=10.0.0.2) INFO ... [repeated 7x across cluster]

``python-json-logger`` writes them, with the fields of ``JSON_FORMAT`` (``vllm/logging_utils/formatter.py``) and the name of the process that
``vllm/logger.py`` adds (0.33.0)::

    {"asctime": "2026-11-24 15:00:07,410", "levelname": "INFO", "name": "vllm.compilation.backends", "processName": "MainProcess",
     "process": 42, "message": "[backbone] Compiling a graph ... takes 7.83 s", "vllm_process_name": "EngineCore_DP0"}
"""

from __future__ import annotations

import re
from typing import Final

from cachescope.readers.json_record import load_json
from cachescope.readers.kinds import COLOURS, JSON_HEAD
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
    r"(?P<logged>\d\d-\d\d \d\d:\d\d:\d\d) \[?[\w./]{1,200}\.py:\d{1,6}\] (?:\[(?P<prefix>[\w.-]{1,100})\] )?"
)
_REPEATED: Final = re.compile(
    r" \[repeated (?P<times>\d{1,9})x across cluster\](?: \(Ray deduplicates logs by default\..*\))?\Z"
)
# Other lines are left alone without being decoded.
_WORDS: Final = (b"ompil", b"Dynamo bytecode")
_LONGEST: Final = 8_000
_SECONDS: Final = r"(?P<seconds>\d{1,9}\.\d{1,9}) s"

_MESSAGES: Final = {
    name: re.compile(pattern, re.DOTALL)
    for name, pattern in {
        "begins": r"Starting torch\.compile",
        "directory": r"Using cache directory: (?P<path>.+) for vLLM's torch\.compile",
        "disabled": r"vLLM's torch\.compile cache is disabled\.",
        "factors": r"torch\.compile cache factors: env=(?P<env>\w{1,128}) cfg=(?P<cfg>\w{1,128}) "
        r"comp=(?P<comp>\w{1,128}) code=(?P<code>\w{1,128}) dir=(?P<path>.+)",
        "dynamo": rf"Dynamo bytecode transform time: {_SECONDS}",
        "compiled": rf"Compiling a graph for (?:compile range .{{1,200}}|(?:dynamic|general) shape|shape .{{1,60}}) takes {_SECONDS}",
        "graphs_loaded": r"Directly load the compiled graph(?:\(s\))? for .{1,200} from the cache(?:, took .{1,40} s)?",
        "aot_loaded": r"Directly load AOT compilation from path (?P<package>.+)",
        "aot_failed": r"(?:Compiling model again due to a load failure from|Cannot load aot compilation from path) "
        r"(?P<package>.+?), (?:reason|error): (?P<why>.*)",
        # The first words since 0.13 at the latest, the others before.
        "aot_not_saved": r"(?:unable to save AOT compiled function to|Cannot save aot compilation to path) "
        r"(?P<package>.+?)(?:, error)?: (?P<not_saved>.*)",
        "ends": rf"torch\.compile (?:takes|took|and initial profiling/warmup run together took) {_SECONDS} in total",
    }.items()
}

# Nothing after the last word shows that the line is complete.
_OPEN_ENDED: Final = frozenset({"factors", "aot_loaded", "aot_failed", "aot_not_saved"})


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
    }
    return lead, message if prefix is None else message[prefix.end() :]


def read_vllm_log(path: str, reading: Reading) -> None:
    """Read the rows of ``vllm_starts`` from one log."""
    starts = Starts(path, reading)
    with open_bytes(path) as stream:
        pieces = Pieces(stream)
        lines = Lines(pieces)
        while (line := lines.take()) is not None:
            if any(word in line for word in _WORDS):
                _read_line(line[:_LONGEST], lines.number, lines.is_whole, starts)
        failure = pieces.failure()
    starts.finish()
    if failure is not None:
        reading.problem(path, f"line {lines.number}", *failure)


def _read_line(line: bytes, number: int, is_whole: bool, starts: Starts) -> None:
    """Take what a line says, if it is one of vLLM's that says something of its cache."""
    if (in_json := read_json_line(line)) is not None:
        _take(*in_json, number, is_whole, starts)
        return
    text = COLOURS.sub(b"", line).decode("utf-8", "backslashreplace").rstrip("\r")
    lead = _LEAD.search(text)
    # Two beginnings: the lines of two processes ran together, or one quotes another. Which says what is not known.
    if lead is None or _LEAD.search(text, lead.end()) is not None:
        return
    _take(lead.groupdict(), text[lead.end() :], number, is_whole, starts)


def _take(lead: dict[str, str | None], message: str, number: int, is_whole: bool, starts: Starts) -> None:
    """Take a message, if it says something of vLLM's cache."""
    repeated = _REPEATED.search(message)
    if repeated is not None:
        message = message[: repeated.start()]
    for name, pattern in _MESSAGES.items():
        if (match := pattern.fullmatch(message)) is not None:
            if is_whole or name not in _OPEN_ENDED:
                others = 0 if repeated is None else int(repeated["times"])
                starts.take(Said(name, number, lead, match.groupdict(), others))
            return
