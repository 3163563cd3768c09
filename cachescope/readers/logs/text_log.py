"""Text logs of the cache loggers (``TORCH_LOGS``): the lookups of one or more processes in one file.

torch/_logging/_internal.py, `TorchLogsFormatter`: every physical line of a message repeats the prefix. A line that
begins no known message therefore continues the message before it from the same place. With
``TORCH_LOGS_FORMAT=short`` only the first line of a message has a prefix, without time and pid.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import IO, Final

from cachescope.errors import SourceError
from cachescope.readers.logs.byte_source import Pieces, modified_s, open_bytes
from cachescope.readers.logs.component_lists import ComponentLines, begins_component
from cachescope.readers.logs.log_ends import Head, StreamEnd, TextEnd
from cachescope.readers.logs.log_lines import Lines
from cachescope.readers.logs.log_prefix import LauncherPrefixes, clock_us, pid_of, tells_no_rank, without_tail
from cachescope.readers.logs.text_lookups import MessageReader
from cachescope.readers.logs.text_messages import Message, Stream, begins_message
from cachescope.readers.reading import Process, Reading

_HEAD_BYTES: Final = 1 << 16
_ESCAPE: Final = b"\x1b"


def read_text_log(path: str, reading: Reading, source: str | None = None) -> None:
    """Read one text log (plain, packed or compressed) into `reading`.

    Adds one `Process` for each stream of lines (see `LauncherPrefixes`) and pid with cache messages. Lines that are not torch's
    are skipped: a log often contains output of the program, too.
    """
    source = source or path
    log = _TextLog(source, path, reading)
    with open_bytes(path) as stream:
        log.read(stream)
    if not log.streams:
        raise SourceError(source, "holds no line of torch's logs")
    log.finish()


def read_on_text_log(path: str, reading: Reading) -> bool:
    """Continue reading the one text log in `reading`, whose file has grown since it was read."""
    if not reading.processes or reading.processes[0].end_state is None:
        return False
    end = TextEnd.from_json(reading.processes[0].end_state)
    log = _TextLog(reading.processes[0].source, path, reading)
    log.resume(end)
    with open_bytes(path) as stream:
        stream.seek(end.end)
        try:
            log.read(stream)
        except _GoesOnError:
            return False
    log.finish()
    return True


class _GoesOnError(Exception):
    """What seemed complete at the end of the log continues, or is said again."""


class _TextLog:
    """The state of reading one text log."""

    def __init__(self, source: str, path: str, reading: Reading) -> None:
        self.streams: dict[Stream, MessageReader] = {}
        self._source = source
        self._path = path
        self._reading = reading
        self._components = ComponentLines(reading.details, reading.known_lines)
        self._last: dict[Stream, Head] = {}
        self._ended_us: dict[Stream, int | None] = {}
        self._wrong: set[tuple[Stream, str]] = set()
        self._leads: LauncherPrefixes | None = None
        self._end = self._lines = 0
        self._can_go_on = False

    def resume(self, end: TextEnd) -> None:
        """Restore the state at the end of an earlier reading; the reading has no processes until `finish`."""
        processes, self._reading.processes = self._reading.processes, []
        self._end, self._lines = end.end, end.lines
        self._leads = LauncherPrefixes(is_named=end.is_named)
        for state in end.streams:
            process = None if state.process is None else processes[state.process]
            stream = (state.name.encode("latin-1"), state.pid, state.rank)
            self._reader(stream, state.first_line).resume(state, process)
            self._last[stream] = state.last_message
            self._ended_us[stream] = state.clock_last_us

    def read(self, stream: IO[bytes]) -> None:
        """Read the lines of a stream to its end; a failure before the end becomes a problem."""
        pieces = Pieces(stream)
        lines = Lines(pieces, self._lines)
        self._leads = self._leads or LauncherPrefixes(lines.head(_HEAD_BYTES))
        for message in _messages(lines, self._leads, self._components, self._last):
            if message.wrong is not None:
                self._report_wrong(message.stream, message.line, message.wrong)
            ended_us = self._ended_us.get(message.stream)
            if ended_us is not None and message.clock_us is not None and message.clock_us < ended_us:
                raise _GoesOnError
            self._reader(message.stream, message.line).read(message)
            self._last[message.stream] = message.head
        self._end += lines.bytes
        self._lines = lines.number
        failure = pieces.failure()
        self._can_go_on = failure is None and pieces.is_plain and lines.is_whole
        for number in lines.too_long:
            self._reading.problem(
                self._source, f"line {number}", "limit", "the line is too long: its end was not read"
            )
        if failure:
            self._reading.problem(self._source, "end", *failure)

    def _report_wrong(self, stream: Stream, line: int, wrong: str) -> None:
        """Report a wrong prefix once per stream: often all of its lines have the same fault."""
        if (stream, wrong) not in self._wrong:
            self._wrong.add((stream, wrong))
            self._reading.problem(self._source, f"line {line}", "bad_value", wrong)

    def finish(self) -> None:
        """Turn clocks into times, and add the processes to the reading."""
        modified = modified_s(self._path)
        found: list[Process] = []
        ends: list[StreamEnd | None] = []
        # In the order of their first lines, not of the ends of their first messages.
        for stream, reader in sorted(self.streams.items(), key=lambda one: one[1].first_line):
            processes = reader.finish(modified)
            for process in processes:
                process.end_state = None
            found += [process for process in processes if process.lookups]
            ends.append(reader.end(len(found) - 1 if processes[0].lookups else None, self._last[stream]))
        self._reading.processes += found
        states = [end for end in ends if end is not None]
        # A message of TORCH_LOGS_FORMAT=short, which has no pid, may always continue.
        has_all = (
            self._can_go_on
            and len(states) == len(ends)
            and all(pid is not None for _, pid, _ in self.streams)
        )
        if found and has_all and self._leads is not None:
            found[0].end_state = TextEnd(self._end, self._lines, self._leads.is_named, states).as_json()

    def _reader(self, stream: Stream, first_line: int) -> MessageReader:
        reader = self.streams.get(stream)
        if reader is None:
            reader = MessageReader(self._source, self._reading, self._components, stream, first_line)
            self.streams[stream] = reader
        return reader


def _messages(
    lines: Lines, leads: LauncherPrefixes, components: ComponentLines, last: Mapping[Stream, Head]
) -> Iterator[Message]:
    """Join physical lines into messages, separately for each process; `last` holds the heads of the messages before."""
    open_messages: dict[Stream, Message] = {}
    latest: Message | None = None
    shorts = _ShortMessages(leads)
    while True:
        if not shorts:
            # Every prefix of torch contains a colon: in its time, or before the logger's name.
            lines.pass_over(b":")
        line = lines.take()
        if line is None:
            break
        number = lines.number
        prefix = leads.prefix_of(line)
        if prefix is None:
            if (ended := shorts.take(line, number)) is not None:
                yield ended
            continue
        message = _message(number, line, prefix, leads)
        stream = message.stream
        before = open_messages.get(stream)
        goes_on = message.head == (last.get(stream) if before is None else before.head)
        if goes_on and not begins_message(message.lines[0]):
            if before is None:
                raise _GoesOnError
            before.go_on(message.lines)
        elif goes_on and before is not None and message.lines == before.lines[:1]:
            pass  # the line was delivered twice
        else:
            if before is not None:
                yield before
            before = open_messages[stream] = message
        latest = before
        # The other lines of a message nearly always follow at once, each after the same bytes.
        if _ESCAPE not in line and prefix[0].endswith(b" "):
            before.go_on(lines.take_continued(line[: prefix.end()], components.known, _continues))
    if latest is not None:
        latest.is_cut = not lines.is_whole
    yield from shorts
    yield from open_messages.values()


class _ShortMessages(dict[bytes, Message]):
    """Messages of TORCH_LOGS_FORMAT=short that may continue, by the name of their stream.

    Only the first line of a message has torch's prefix. A launcher's text precedes every line.
    """

    def __init__(self, leads: LauncherPrefixes) -> None:
        super().__init__()
        self._leads = leads
        self._widths: dict[bytes, int] = {}

    def __iter__(self) -> Iterator[Message]:  # type: ignore[override]
        return iter(self.values())

    def take(self, line: bytes, number: int) -> Message | None:
        """Add a line; return the message that it ends, if any."""
        match = self._leads.short_of(line)
        if match is None:
            for name, message in self.items():
                width = self._widths[name]
                if self._leads.name(line[:width])[0] == name:
                    message.go_on([without_tail(line[width:])])
                    break
            return None
        name, rank = self._leads.name(line[: match.start()])
        ended = self.get(name)
        text = without_tail(line[match.end() :])
        self[name] = Message(
            number, match["level"].decode()[:1], match["place"].decode(), [text], stream=(name, None, rank)
        )
        self._widths[name] = match.start()
        return ended


def _continues(text: bytes) -> bool:
    """Whether a text after a known prefix continues the message rather than the prefix."""
    return begins_component(text) if text.startswith(b"[") else not begins_message(text)


def _message(number: int, line: bytes, prefix: re.Match[bytes], leads: LauncherPrefixes) -> Message:
    lead = line[: prefix.start()]
    name, rank = leads.name(lead)
    compile_id = prefix["compile_id"]
    clock, wrong = None, "no process has the rank before its prefix" if tells_no_rank(lead) else None
    try:
        clock = clock_us(prefix["month"], prefix["day"], prefix["time"])
    except ValueError:
        wrong = "the time of its prefix is none"
    pid = pid_of(prefix)
    return Message(
        number,
        prefix["level"].decode(),
        prefix["place"].decode("utf-8", "replace"),
        [without_tail(line[prefix.end() :])],
        stream=(name, pid, rank),
        clock_us=clock,
        compile_id=compile_id.decode() if compile_id and compile_id != b"-" else None,
        wrong="no process has the pid of its prefix" if pid is None else wrong,
    )
