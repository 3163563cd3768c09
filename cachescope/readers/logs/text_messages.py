"""The messages of the cache loggers, Dynamo's of what it traces, and Inductor's of whether it asks a cache, from torch 2.4 to 2.15.

torch/_inductor/codecache.py and torch/_functorch/_aot_autograd/autograd_cache.py (from 2.10 also
aot_autograd_result.py). Messages are recognized by their words, never by their line number, which moves.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Final

from cachescope.terms import HASH

# A key that was cut does not match. The other forms are what AOTAutograd uses if it cannot compute a key (2.10 and later).
_FORM: Final = rf"(?P<key>[af]{HASH}|0\.\d+|[0-9a-f]{{32}})"
# Whoever pastes a log may put a quote, a frame or markup behind a line.
_KEY: Final = rf"{_FORM}(?!\w)"
DETAILS: Final = re.compile(rf"(?P<which>FX|Autograd) graph cache hash details for key {_FORM}:")
OUTCOME: Final = re.compile(rf"(?P<which>fx graph|AOTAutograd) cache (?P<state>hit|miss) for key {_KEY}")
BYPASS: Final = re.compile(
    r"Bypassing (?P<which>FX Graph Cache because '|autograd cache due to: )(?P<reason>.*)", re.DOTALL
)
# 2.4 to 2.7 only; later guard misses leave no line.
GUARDS: Final = re.compile(
    r"fx graph cache key (?P<key>\S+) evaluating guards (?>(?P<guards>.*) with values ).* => hit=(?P<hit>\w+)",
    re.DOTALL,
)
POST_LOAD_GUARDS: Final = re.compile(
    r"fx graph cache key (?P<key>\S+) post-load guards: (?P<guards>.*)", re.DOTALL
)
# A directory that cannot be listed is told since 2.15. The last is of an `OSError` (torch/_inductor/output_code.py, `CompiledFxGraph.after_deserialization`, 2.6 and later): the graph counts as missed.
UNABLE: Final = re.compile(
    r".*? unable to (?:load compiled graph|list cache entries)(?:: (?P<error>.*))?|(?P<artifact>Failed to load artifact: .+)",
    re.DOTALL,
)
# At WARNING, with a traceback (torch/_inductor/codecache.py, `FxGraphCachePickler.dumps`, 2.6 and later; 2.5 says the other words):
# the key of either cache. That the cache is bypassed is said at INFO.
NOT_PICKLED: Final = re.compile(r"(?:Failed to pickle cache key|Can't pickle)(?:\n.*)?\Z", re.DOTALL)
NOT_SAVED: Final = re.compile(
    r"(?P<which>fx graph|AOTAutograd)(?: cache)? unable to (?:write to cache|(?:serialize|write) compiled graph)"
    r"(?:: (?P<error>.*))?",
    re.DOTALL,
)
WRITING: Final = re.compile(
    rf"Writing AOTAutograd cache entry to (?P<path>.+/(?:entry|{HASH}))(?![\w./-])", re.DOTALL
)
# Of the logger of Dynamo, at INFO (torch/_dynamo/symbolic_convert.py, `InstructionTranslator.__init__`).
STARTS_TRACING: Final = re.compile(
    r"Step \d+: torchdynamo start tracing (?P<function>\S+) (?P<file>.+):(?P<line>\d{1,9})"
)
# With TORCH_LOGS=recompiles (torch/_dynamo/guards.py, `get_and_maybe_log_recompilation_reasons`), before the function is compiled.
RECOMPILES: Final = re.compile(r"Recompiling function (?P<function>\S+) in (?P<file>.+):(?P<line>\d{1,9})\n")
# At WARNING, so at every level (torch/_dynamo/convert_frame.py, `_compile`); before 2.6 the limit is called cache_size_limit.
LIMIT: Final = re.compile(
    r"(?P<error>torch\._dynamo hit config\.\w+ \(\d+\))\n\s*function: '(?P<function>[^'\n]*)' \((?P<file>.+):(?P<line>\d{1,9})\)"
    r"\n\s*last reason: (?P<reason>[^\n]+)"
)
# With TORCH_LOGS=graph_breaks (torch/_dynamo/symbolic_convert.py, `log_graph_break`, and convert_frame.py, `ConvertFrame.__call__`).
GRAPH_BREAK: Final = re.compile(
    r"Graph break(?: \([^)\n]*\) in user code at | in user code at |: (?:skip: )?from user code at:|: torch\.compile cannot properly resume )"
)
FAILED_GUARD: Final = re.compile(r"\n[^\S\n]*- (!?\d+(?:/\d+)+: .+)")
# torch 2.4 does not say of which compile.
FAILED_GUARD_2_4: Final = re.compile(r"\n {4}- (?!User stack trace:)(\S.*)")
# torch/_inductor/compile_fx.py, `_compile_fx_inner`, at DEBUG; 2.10 and later.
STATUS: Final = re.compile(
    r"FX cache status: use_cache=(?P<is_used>True|False), .*\baot_mode=(?P<aot_mode>True|False)\b"
)
# At WARNING and ERROR, of another process: torch/distributed/elastic/multiprocessing/api.py, of torchrun, and torch/multiprocessing/spawn.py.
_SIGNALS: Final = {"SIGHUP": 1, "SIGINT": 2, "SIGQUIT": 3, "SIGKILL": 9, "SIGTERM": 15}
_ENDED: Final = re.compile(
    rf"(?:Sending|Terminating) process (?P<stopped>\d{{1,9}}) (?:closing|via) signal (?P<signal>{'|'.join(_SIGNALS)})"
    r"|failed \(exitcode: (?P<status>-?\d{1,9})\) local_rank: \d+ \(pid: (?P<failed>\d{1,9})\)"
)
_ENTRY_WITHOUT_GRAPH: Final = re.compile(r"FXGraphCache cache miss for key ")
# At DEBUG, just before the bypass of a graph that is compiled without torch.compile.
_NO_SHAPE_ENV: Final = re.compile(r"fx graph cache no shape env\Z")
OF_COMPILES: Final = STARTS_TRACING, RECOMPILES, LIMIT, GRAPH_BREAK
_MESSAGES: Final = (
    DETAILS, OUTCOME, BYPASS, GUARDS, POST_LOAD_GUARDS, UNABLE, NOT_PICKLED, NOT_SAVED, WRITING, *OF_COMPILES, STATUS,
    _ENDED, _ENTRY_WITHOUT_GRAPH, _NO_SHAPE_ENV,
)  # fmt: skip


# How the messages begin; one may begin with anything, but contains `_ANYWHERE`. Almost no line is one of them.
_BEGINNINGS: Final = (
    b"FX graph cache ", b"Autograd graph cache ", b"fx graph cache ", b"fx graph unable to ", b"AOTAutograd cache ", b"Bypassing ",
    b"Failed to pickle cache key", b"Can't pickle", b"Writing AOTAutograd cache ", b"FXGraphCache cache ", b"FX cache status: ",
    b"Step 1: torchdynamo start tracing ", b"Recompiling function ", b"torch._dynamo hit config.", b"Graph break", b"Failed to load artifact: ",
    b"Sending process ", b"Terminating process ", b"failed (exitcode: ",
)  # fmt: skip
_ANYWHERE: Final = b" unable to l"


def begins_message(line: bytes) -> bool:
    """Whether a line begins one of these messages."""
    if line.startswith(b"[") or not may_be_known(line):
        return False
    text = line.decode("utf-8", "replace")
    return any(pattern.match(text) for pattern in _MESSAGES)


def may_be_known(message: bytes) -> bool:
    """Whether a message may be one of these; the beginning rules out most others."""
    return message.startswith(_BEGINNINGS) or _ANYWHERE in message


# Beginnings that no other text has. A program may give torch's loggers a form of its own, and torch before 2.4 had another one.
_ALONE: Final = (
    b"FX graph cache hash details for key ", b"Autograd graph cache hash details for key ", b"fx graph cache hit for key ",
    b"fx graph cache miss for key ", b"AOTAutograd cache hit for key ", b"AOTAutograd cache miss for key ", b"unable to load compiled graph",
    b"Bypassing FX Graph Cache because ", b"Bypassing autograd cache due to: ", b"torch._dynamo hit config.", b"Recompiling function ",
    b"Graph break in user code at ",
)  # fmt: skip
_LOGGERS: Final = b"torch._inductor.codecache", b"torch._functorch._aot_autograd.autograd_cache"
_LEVELS: Final = b"DEBUG", b"INFO", b"WARN", b"ERROR"


def in_another_form(line: bytes) -> str | None:
    """What a line without torch's prefix has of one of these messages, without its key; None if it has nothing of them."""
    # Each has one of these; a program writes many lines, and hardly one of them has.
    if not (b"ache" in line or b"ompil" in line or b"torch._dynamo" in line or b"Graph break" in line):
        return None
    words = (*_ALONE, *_LOGGERS) if any(level in line for level in _LEVELS) else _ALONE
    at = min((at for word in words if (at := line.find(word)) >= 0), default=None)
    if at is None:
        return None
    return line[at:].partition(b" for key ")[0].decode("utf-8", "backslashreplace").strip()


def ended_in(text: str) -> tuple[int, int] | None:
    """The pid and the exit status of the process that a message says was ended, or had failed."""
    match = _ENDED.match(text)
    if match is None:
        return None
    if name := match["signal"]:
        return int(match["stopped"]), 128 + _SIGNALS[name]
    status = int(match["status"])
    return int(match["failed"]), status if status >= 0 else 128 - status


_MOST_BYTES_OF_A_MESSAGE: Final = 32 << 20
"""The hash details of one lookup take 70 to 128 kB."""

Head = tuple[str, str | None, str, int | None]
"""Place, compile id, level and clock: what all lines of a message share, within one process."""
Stream = tuple[bytes, int | None, int | None]
"""What distinguishes the processes of one log: the text before torch's prefix, the pid, and the rank."""


@dataclass(slots=True)
class Message:
    """One message: the lines that one call of a logger wrote."""

    line: int
    level: str
    place: str
    lines: list[bytes]
    stream: Stream = (b"", None, None)
    clock_us: int | None = None
    compile_id: str | None = None
    is_cut: bool = False
    """Whether the log ends within its last line."""
    wrong: str | None = None
    """What is wrong with its prefix."""
    is_too_long: bool = False
    """Whether lines were dropped because the message exceeds 32 MiB."""
    size: int = 0
    """Bytes of the lines after the first."""

    def go_on(self, lines: list[bytes]) -> None:
        """Add lines that follow, up to the size limit."""
        if self.size > _MOST_BYTES_OF_A_MESSAGE:
            self.is_too_long |= bool(lines)
            return
        self.lines += lines
        self.size += sum(map(len, lines))

    @property
    def head(self) -> Head:
        """What all its lines share."""
        return self.place, self.compile_id, self.level, self.clock_us

    @property
    def said(self) -> int | None:
        """A number by which a message of a cache that stands in the log twice is known; None where it has no time.

        Logs are appended to the same file again, and those who ship them deliver some lines twice. No process says the
        same of a cache twice within a microsecond.
        """
        return None if self.clock_us is None else hash((self.head, self.lines[0]))


def cache_dir_of(entry_path: str) -> str:
    """The cache directory of ``<cache directory>/aotautograd/<key>/<entry>``."""
    return os.path.dirname(os.path.dirname(os.path.dirname(entry_path)))
