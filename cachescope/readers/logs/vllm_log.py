"""What vLLM's own log says of its ``torch_compile_cache``, among whatever else a server prints.

The words are those of 0.13.0 and 0.33.0: ``vllm/compilation/backends.py``, ``decorators.py`` and ``monitor.py``; the beginnings
of lines those of ``vllm/logger.py`` and ``vllm/logging_utils/formatter.py``::

    (EngineCore pid=42) INFO 11-23 20:31:35 [compilation/backends.py:417] [backbone] Compiling a graph ... takes 7.83 s

At the level INFO the file stands there without its folder; earlier releases write no process.
"""

from __future__ import annotations

import re
from typing import Final

from cachescope.frames.vllm import StartRow
from cachescope.keys.vllm import place_in_tree
from cachescope.readers.checked_file import well_formed
from cachescope.readers.logs.byte_source import Pieces, open_bytes
from cachescope.readers.logs.log_lines import Lines
from cachescope.readers.reading import Reading

_COLOURS: Final = re.compile(rb"\x1b\[[\d;]{0,20}m")
_LEAD: Final = re.compile(
    r"(?:\((?P<process>[^()]{1,100}?) pid=(?P<pid>\d{1,9})\) )?(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) "
    r"(?P<logged>\d\d-\d\d \d\d:\d\d:\d\d) \[[\w./]{1,200}\.py:\d{1,6}\] (?:\[(?P<prefix>[\w.-]{1,100})\] )?"
)
_HEAD: Final = re.compile(
    rb"(?:DEBUG|INFO|WARNING|ERROR) \d\d-\d\d \d\d:\d\d:\d\d \[[\w./]{1,200}\.py:\d{1,6}\] "
)
# Other lines are left alone without being decoded.
_WORDS: Final = (b"ompil", b"Dynamo bytecode")
_LONGEST: Final = 8_000
_MOST_STARTS: Final = 100_000
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
        "compiled": rf"Compiling a graph for (?:compile range .{{1,200}}|dynamic shape|shape .{{1,60}}) takes {_SECONDS}",
        "graphs_loaded": r"Directly load the compiled graph\(s\) for .{1,200} from the cache, took .{1,40} s",
        "aot_loaded": r"Directly load AOT compilation from path (?P<path>.+)",
        "aot_failed": r"(?:Compiling model again|Cannot load aot compilation) .*?(?:reason|error): (?P<why>.*)",
        "ends": rf"torch\.compile (?:takes|took|and initial profiling/warmup run together took) {_SECONDS} in total",
    }.items()
}


def looks_like_vllm_log(head: bytes) -> bool:
    """Whether a line of the first bytes of a file begins as those of vLLM do."""
    return _HEAD.search(_COLOURS.sub(b"", head)) is not None


def read_vllm_log(path: str, reading: Reading) -> None:
    """Read the rows of ``vllm_starts`` from one log.

    Raises
    ------
    SourceError
        If the file does not exist or cannot be read at all.
    """
    log = _VllmLog(path, reading)
    with open_bytes(path) as stream:
        pieces = Pieces(stream)
        lines = Lines(pieces)
        while (line := lines.take()) is not None:
            if any(word in line for word in _WORDS):
                log.read(line[:_LONGEST], lines.number)
        failure = pieces.failure()
    log.finish()
    if failure is not None:
        reading.problem(path, f"line {lines.number}", *failure)


class _Start:
    """What was said so far of one part of a model."""

    def __init__(self, line: int, lead: re.Match[str]) -> None:
        self.line = line
        self.process, self.pid = lead["process"], lead["pid"]
        self.logged = lead["logged"]
        self.prefix: str | None = lead["prefix"]
        self.texts: dict[str, str] = {}
        self.times: dict[str, int] = {}
        self.said: set[str] = set()

    def row(self, source: str) -> StartRow:
        """The row; a part is loaded only where something says so and nothing that it compiled."""
        path = self.texts.get("path")
        place = None if path is None else place_in_tree(f"{path}/")
        is_loaded = bool(self.said & {"aot_loaded", "graphs_loaded"})
        outcome = "compiled" if "compiled" in self.said else "loaded" if is_loaded else "not_known"
        return StartRow(
            source=source,
            line=self.line,
            process=self.process,
            pid=None if self.pid is None else int(self.pid),
            logged=self.logged,
            prefix=self.prefix or (None if place is None else place.prefix),
            path=path,
            folder=None if place is None else place.folder,
            rank=None if place is None else place.rank,
            env_hash=self.texts.get("env"),
            config_hash=self.texts.get("cfg"),
            code_hash=self.texts.get("code"),
            compiler_hash=self.texts.get("comp"),
            outcome=outcome,
            is_disabled="disabled" in self.said,
            load_error=self.texts.get("why"),
            dynamo_time_ns=self.times.get("dynamo"),
            compile_time_ns=self.times.get("compiled"),
            total_time_ns=self.times.get("ends"),
        )


class _VllmLog:
    """The parts of models that processes are compiling or loading, by process."""

    def __init__(self, path: str, reading: Reading) -> None:
        self._path = path
        self._reading = reading
        self._open: dict[tuple[str | None, str | None], _Start] = {}
        self._count = 0

    def read(self, line: bytes, number: int) -> None:
        """Read a line, if it is one of vLLM's that says something of its cache."""
        text = _COLOURS.sub(b"", line).decode("utf-8", "backslashreplace").rstrip("\r")
        lead = _LEAD.search(text)
        if lead is None:
            return
        message = text[lead.end() :]
        for name, pattern in _MESSAGES.items():
            if (match := pattern.fullmatch(message)) is not None:
                self._take(name, match, lead, number)
                return

    def _take(self, name: str, match: re.Match[str], lead: re.Match[str], number: int) -> None:
        process = lead["process"], lead["pid"]
        start = self._open.get(process)
        if start is None or (name in ("begins", "directory") and name in start.said):
            self._close(process)
            if self._count == _MOST_STARTS:
                return
            self._count += 1
            start = self._open[process] = _Start(number, lead)
        start.said.add(name)
        start.prefix = start.prefix or lead["prefix"]
        for group, value in match.groupdict().items():
            if group == "seconds":
                start.times[name] = start.times.get(name, 0) + round(float(value) * 1e9)
            elif group != "path" or name != "aot_loaded":
                start.texts[group] = well_formed(value)
        if name == "ends":
            self._close(process)

    def _close(self, process: tuple[str | None, str | None]) -> None:
        if (start := self._open.pop(process, None)) is not None:
            self._reading.vllm_starts.append(start.row(self._path))

    def finish(self) -> None:
        """Close what the log left open."""
        for process in list(self._open):
            self._close(process)
        if self._count == _MOST_STARTS:
            message = f"says of more than {_MOST_STARTS:,} parts that they were compiled or loaded: the rest is left out"
            self._reading.problem(self._path, "", "limit", message)
