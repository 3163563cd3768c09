"""Text logs of the cache loggers (``TORCH_LOGS``): the lookups of one or several processes in one file.

torch/_logging/_internal.py, `TorchLogsFormatter`: every physical line of a message repeats the prefix, so a
line that begins no known message continues the one before it from the same place. With
``TORCH_LOGS_FORMAT=short`` only the first line of a message has a prefix, and no time and no pid.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from cachescope.errors import SourceError
from cachescope.readers.byte_source import Pieces, modified_s, open_bytes
from cachescope.readers.component_lines import ComponentLines, begins_component
from cachescope.readers.log_lines import Lines
from cachescope.readers.log_prefix import PREFIX, LogClock, clock_us
from cachescope.readers.reading import Reading
from cachescope.readers.text_messages import Message, MessageReader, begins_message

# What launchers put before a line: colours, `[rank0]:`, torchrun's `[default0]:`, container runtimes' stamps.
_LEAD: Final = re.compile(
    rb"(?:\x1b\[[0-9;]*m|\[[A-Za-z_-]*\d*\]:? ?|\d{4}-\d\d-\d\dT\S+ std(?:out|err) [FP] )*"
)
# Colours end behind the text: such a line is more than prefix and text.
_COLOUR: Final = b"\x1b"
# A progress bar leaves its line open, and the record follows it.
_LATE: Final = re.compile(rb"[VIWEC]\d{4} \d\d:\d\d:\d\d\.\d{6} \d+ torch/")
_RANK: Final = re.compile(rb"\[rank(\d+)\]:")
_SHORT: Final = re.compile(rb"(?P<level>DEBUG|INFO|WARNING|ERROR):(?P<place>torch[\w.]*):")

# (pid, rank): the same pid in two containers writes under two ranks.
_Stream = tuple[int | None, int | None]


def looks_like_text_log(head: bytes) -> bool:
    """Whether a line of the first bytes of a file begins with torch's log prefix."""
    return any(_prefix_of(line) or _SHORT.match(line) for line in head.split(b"\n"))


def read_text_log(path: str, reading: Reading, source: str | None = None) -> None:
    """Read one text log (plain, gzip or zstandard) into `reading`.

    Adds one `Process` for each pid that wrote about a cache. Lines that are not torch's are passed over: a
    log is often mixed with what the program prints.

    Raises
    ------
    SourceError
        If the file is not there, cannot be read at all, or holds no line of torch's logs.
    """
    source = source or path
    streams: dict[_Stream, MessageReader] = {}
    components = ComponentLines(reading.details, reading.known_lines)
    with open_bytes(path) as stream:
        pieces = Pieces(stream)
        for message in _messages(Lines(pieces), components):
            key = (message.pid, message.rank)
            reader = streams.get(key)
            if reader is None:
                reader = streams[key] = MessageReader(source, reading, components, *key)
            reader.read(message)
        if failure := pieces.failure():
            reading.problem(source, "end", *failure)
    if not streams:
        raise SourceError(source, "holds no line of torch's logs")
    modified = modified_s(path)
    for reader in streams.values():
        first = reader.process.clock_first_us
        clock = None if first is None else LogClock.from_file_time(first, modified)
        process = reader.finish(clock)
        if process.lookups:
            reading.processes.append(process)


def _prefix_of(line: bytes) -> re.Match[bytes] | None:
    if match := PREFIX.match(line):
        return match
    lead = _LEAD.match(line)
    if lead and lead.end() and (match := PREFIX.match(line, lead.end())):
        return match
    late = _LATE.search(line)
    return PREFIX.match(line, late.start()) if late else None


def _messages(lines: Lines, components: ComponentLines) -> Iterator[Message]:
    """Join physical lines into messages, each process apart from the others."""
    open_messages: dict[_Stream, Message] = {}
    short: Message | None = None
    while (line := lines.take()) is not None:
        if b"] " not in line and b":" not in line and short is None:
            continue
        number = lines.number
        prefix = _prefix_of(line)
        if prefix is None:
            if match := _SHORT.match(line):
                if short is not None:
                    yield short
                text = line[match.end() :]
                short = Message(number, match["level"].decode()[:1], match["place"].decode(), [text])
            elif short is not None:
                short.lines.append(line)
            continue
        message = _message(number, line, prefix)
        if message is None:
            continue
        stream = (message.pid, message.rank)
        before = open_messages.get(stream)
        if before is not None and before.continues_in(message) and not begins_message(message.lines[0]):
            before.lines += message.lines
        else:
            if before is not None:
                yield before
            before = open_messages[stream] = message
        # The other lines of a message nearly always follow at once, each behind the same bytes.
        if _COLOUR not in line[: prefix.start()] and prefix[0].endswith(b" "):
            before.lines += lines.take_continued(line[: prefix.end()], components.known, _continues)
    if short is not None:
        yield short
    yield from open_messages.values()


def _continues(text: bytes) -> bool:
    """Whether a text behind a known prefix goes on with the message, and is not taken for more of the prefix."""
    return begins_component(text) if text.startswith(b"[") else not begins_message(text)


def _message(number: int, line: bytes, prefix: re.Match[bytes]) -> Message | None:
    lead = line[: prefix.start()]
    rank = _RANK.search(lead)
    text = line[prefix.end() :]
    if b"\x1b" in lead and text.endswith(b"\x1b[0m"):
        text = text[:-4]
    compile_id = prefix["compile_id"]
    try:
        clock = clock_us(prefix["month"], prefix["day"], prefix["time"])
    except ValueError:
        return None
    return Message(
        number,
        prefix["level"].decode(),
        prefix["place"].decode("utf-8", "replace"),
        [text],
        pid=int(prefix["pid"]),
        rank=int(rank[1]) if rank else None,
        clock_us=clock,
        compile_id=compile_id.decode() if compile_id and compile_id != b"-" else None,
    )
