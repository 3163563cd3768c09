"""Text logs of the cache loggers (``TORCH_LOGS``): the lookups of one or more processes in one file.

torch/_logging/_internal.py, `TorchLogsFormatter`: every physical line of a message repeats the prefix. A line that
begins no known message therefore continues the message before it from the same place. With
``TORCH_LOGS_FORMAT=short`` only the first line of a message has a prefix, without time and pid.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import IO, Final

from cachescope.catalogue.messages import files, messages
from cachescope.components import join_components
from cachescope.frames.recorded_rows import LookupRow
from cachescope.readers.json_record import well_formed
from cachescope.readers.logs.byte_source import Pieces
from cachescope.readers.logs.log_events import GoesOnError, Handle, LogKind
from cachescope.readers.logs.log_lines import Lines
from cachescope.readers.logs.log_prefix import LauncherPrefixes, clock_of, pid_of, tells_no_rank, uncoloured
from cachescope.readers.logs.text_lookups import TextProcesses
from cachescope.readers.logs.text_messages import (
    DETAILS,
    Head,
    Message,
    Stream,
    begins_message,
    in_another_form,
    may_be_known,
)
from cachescope.readers.reading import Reading, not_a_hash_detail
from cachescope.terms import AOTAUTOGRAD, FXGRAPH, HASH

_HEAD_BYTES: Final = 1 << 16
_AT_DEFAULT_LEVEL: Final = frozenset("WEC")
_SHOWN: Final = 300
# Triton's loggers have no form of their own, so their messages stand alone (triton/runtime/build.py, 3.4 and later).
_TRITON: Final = b"Triton cache error: "
_RECORD: Final = b'{"'
_OF_A_TRACE: Final = (
    "records of a trace are not read among text, or behind it: give the file that torch wrote"
)
_COMPONENT: Final = re.compile(rf"\[{HASH}\] ".encode())


@dataclass(slots=True)
class _StreamState:
    """What is known of one stream of lines while they are read."""

    number: int
    last: Head | None = None
    """The head of its last message, which may go on where the log goes on."""
    first_us: int | None = None
    last_us: int | None = None
    ended_us: int | None = None
    """The clock at which an earlier reading ended."""
    said: set[int] = field(default_factory=set)
    is_behind_details: bool = False


class _TextReader:
    """Reads a text log, and makes events of its messages about caches: see `TextProcesses`."""

    def __init__(self, reading: Reading, handle: Handle) -> None:
        self._details = reading.details
        self._emit = handle
        self._streams: dict[Stream, _StreamState] = {}
        self._wrong: set[tuple[Stream, str]] = set()
        self._leads: LauncherPrefixes | None = None
        self._end = self._lines = 0
        self._can_go_on = False

    def resume(self, end_state: str, stream: IO[bytes]) -> None:
        """Restore the state at the end of an earlier reading, and go to the offset at which it ended."""
        self._end, self._lines, is_named, streams = json.loads(end_state)
        self._leads = LauncherPrefixes(is_named=is_named)
        for name, pid, rank, last, ended_us in streams:
            state = _StreamState(len(self._streams), tuple(last), ended_us=ended_us)
            self._streams[name.encode("latin-1"), pid, rank] = state
        stream.seek(self._end)

    def end_state(self) -> str | None:
        """The state for `resume`; None if reading cannot continue.

        A message of TORCH_LOGS_FORMAT=short, which has no pid, may always continue. So may hash details; and if those of another process
        come before their next line, reading from the start would number the details in another order.
        """
        may_go_on = any(state.is_behind_details for state in self._streams.values())
        if not self._can_go_on or may_go_on or self._leads is None:
            return None
        if any(pid is None for _, pid, _ in self._streams):
            return None
        streams = [
            (name.decode("latin-1"), pid, rank, state.last, state.last_us or state.ended_us)
            for (name, pid, rank), state in self._streams.items()
        ]
        return json.dumps((self._end, self._lines, self._leads.is_named, streams))

    def read(self, pieces: Pieces) -> None:
        """Read the lines of a stream to its end; a failure before the end becomes a problem."""
        lines = Lines(pieces, self._lines)
        self._leads = self._leads or LauncherPrefixes(uncoloured(lines.head(_HEAD_BYTES)))
        last = {stream: state.last for stream, state in self._streams.items() if state.last is not None}
        for message in _messages(lines, self._leads, last, self._quote_line):
            self._read_message(message)
        self._end += lines.bytes
        self._lines = lines.number
        failure = pieces.failure()
        self._can_go_on = failure is None and pieces.is_plain and lines.is_whole
        for number in lines.too_long:
            self._problem(number, "limit", "the line is too long: its end was not read")
        if failure:
            self._emit("problem", "end", *failure)
        for state in self._streams.values():
            self._emit("clocks", state.number, state.first_us, state.last_us)

    def _problem(self, line: int, kind: str, message: str) -> None:
        self._emit("problem", f"line {line}", kind, message)

    def _state_of(self, message: Message) -> _StreamState:
        state = self._streams.get(message.stream)
        if state is None:
            state = self._streams[message.stream] = _StreamState(len(self._streams))
            name, *process = message.stream
            self._emit("stream", state.number, name.decode("latin-1"), *process, message.line)
        return state

    def _read_message(self, message: Message) -> None:
        """Read one message; a message that is not about a cache only updates the clock."""
        if message.wrong is not None and (message.stream, message.wrong) not in self._wrong:
            # Once per stream: often all of its lines have the same fault.
            self._wrong.add((message.stream, message.wrong))
            self._problem(message.line, "bad_value", message.wrong)
        state = self._state_of(message)
        if message.clock_us is not None:
            if state.ended_us is not None and message.clock_us < state.ended_us:
                raise GoesOnError
            state.first_us = message.clock_us if state.first_us is None else state.first_us
            state.last_us = message.clock_us
        state.last = message.head
        state.is_behind_details = False
        whole = b"\n".join(message.lines)
        # Those of a key's details are long, and known by their first line.
        if not (begins_message(message.lines[0]) or begins_message(whole)):
            # What begins as words on a lookup do, at whatever level, may be one in the words of another release.
            if message.level in _AT_DEFAULT_LEVEL or may_be_known(whole):
                self._quote(message)
            elif whole.startswith(_RECORD) and (message.stream, _OF_A_TRACE) not in self._wrong:
                self._wrong.add((message.stream, _OF_A_TRACE))
                self._problem(message.line, "quoted", _OF_A_TRACE)
            return
        if message.said in state.said:
            return
        if message.said is not None:
            state.said.add(message.said)
        if message.is_too_long:
            self._problem(message.line, "limit", "the message is too long: its end was not read")
        if match := DETAILS.match(message.lines[0].decode("utf-8", "replace")):
            self._read_details(match, message, state)
        else:
            text = whole.decode("utf-8", "replace")
            at = message.compile_id, message.clock_us
            self._emit("message", state.number, message.line, *at, text, message.is_cut)

    def _quote(self, message: Message) -> None:
        """Tell of an error of a cache that is no fact of a lookup, or not known."""
        # The module instead, where the format is short.
        file = message.place.partition(".py:")[0].replace(".", "/") + ".py"
        if file not in files("torch"):
            return
        first, last = (message.lines[at].decode("utf-8", "replace")[:_SHOWN] for at in (0, -1))
        known = next((one for one in messages("torch") if one.pattern.fullmatch(first)), None)
        text = first if len(message.lines) == 1 else f"{first}: {last}"
        alike = text.partition(" for key ")[0]
        if (message.stream, alike) not in self._wrong and (known is None or known.means):
            self._wrong.add((message.stream, alike))
            told = f"{'' if known else 'not understood: '}{well_formed(text)}"
            self._problem(message.line, "quoted", f"torch's log says of its caches: {told}")

    def _quote_line(self, line: bytes, number: int) -> None:
        """Tell of a line without torch's prefix that is about a cache, or a compile."""
        if (at := line.find(_TRITON)) >= 0:
            text = line[at:].decode("utf-8", "replace").rstrip()[:_SHOWN]
            is_known = any(one.pattern.fullmatch(text) for one in messages("triton"))
            told = f"{'' if is_known else 'not understood: '}{well_formed(text)}"
            self._problem(number, "quoted", f"Triton's log says of its cache: {told}")
        elif (said := in_another_form(line)) is not None:
            self._problem(number, "quoted", f"not read, as its form is not torch's: {said[:_SHOWN]}")

    def _read_details(self, match: re.Match[str], message: Message, state: _StreamState) -> None:
        state.is_behind_details = True
        # 2.4 logged the details of AOTAutograd keys with the words of FX keys.
        is_aot = match["which"] == "Autograd" or match["key"].startswith("a")
        lookup = LookupRow(cache_key=match["key"], compile_id=message.compile_id, outcome="unknown")
        lookup.cache = AOTAUTOGRAD if is_aot else FXGRAPH
        lines = message.lines[1:]
        lookup.is_details_cut = not lines or message.is_too_long
        rejected: list[str] = []
        if not lookup.is_details_cut:
            texts = b"\n".join(lines).decode("utf-8", "replace").split("\n")
            lookup.detail_set, rejected = self._details.add(join_components(texts))
        is_2_4 = is_aot and match["which"] == "FX"
        self._emit("lookup", lookup, state.number, message.clock_us, is_2_4)
        for text in rejected:
            self._problem(message.line, "hash_detail", not_a_hash_detail(text))


def _messages(
    lines: Lines, leads: LauncherPrefixes, last: Mapping[Stream, Head], on_other: Callable[[bytes, int], None]
) -> Iterator[Message]:
    """Join physical lines into messages, separately for each process.

    `last` holds the heads of the messages before; `on_other` is given each line that has no head of torch, and its number.
    """
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
        number, written, line = lines.number, line, uncoloured(line)
        prefix = leads.prefix_of(line)
        if prefix is None:
            if leads.short_of(line) is None:
                on_other(line, number)
            if (ended := shorts.take(line, number)) is not None:
                yield ended
            continue
        message = _message(number, line, prefix, leads)
        stream = message.stream
        before = open_messages.get(stream)
        goes_on = message.head == (last.get(stream) if before is None else before.head)
        if goes_on and not begins_message(message.lines[0]):
            if before is None:
                raise GoesOnError
            before.go_on(message.lines)
        elif goes_on and before is not None and message.lines == before.lines[:1]:
            pass  # the line was delivered twice
        else:
            if before is not None:
                yield before
            before = open_messages[stream] = message
        latest = before
        # The other lines of a message nearly always follow at once, each after the same bytes.
        if line is written and prefix[0].endswith(b" "):
            before.go_on(lines.take_continued(line[: prefix.end()], _continues))
    if latest is not None:
        latest.is_cut = not lines.is_whole
    yield from shorts.values()
    yield from open_messages.values()


class _ShortMessages(dict[bytes, Message]):
    """Messages of TORCH_LOGS_FORMAT=short that may continue, by the name of their stream.

    Only the first line of a message has torch's prefix. A launcher's text precedes every line.
    """

    def __init__(self, leads: LauncherPrefixes) -> None:
        super().__init__()
        self._leads = leads
        # How much precedes torch's prefix in the latest first line of each stream; and each such width once.
        self._width_of: dict[bytes, int] = {}
        self._widths: dict[int, None] = {}

    def take(self, line: bytes, number: int) -> Message | None:
        """Add a line; return the message that it ends, if any."""
        match = self._leads.short_of(line)
        if match is None:
            for width in self._widths:
                name, _ = self._leads.name(line[:width])
                if width <= len(line) and self._width_of.get(name) == width:
                    self[name].go_on([line[width:]])
                    break
            return None
        name, rank = self._leads.name(line[: match.start()])
        ended = self.get(name)
        text = line[match.end() :]
        level, place = match["level"].decode()[:1], match["place"].decode()
        self[name] = Message(number, level, place, [text], stream=(name, None, rank))
        self._width_of[name] = match.start()
        self._widths[match.start()] = None
        return ended


def _continues(text: bytes) -> bool:
    """Whether a text after a known prefix continues the message rather than the prefix, and needs no other look."""
    if b"\x1b" in text:
        return False
    return _COMPONENT.match(text) is not None if text.startswith(b"[") else not begins_message(text)


def _message(number: int, line: bytes, prefix: re.Match[bytes], leads: LauncherPrefixes) -> Message:
    lead = line[: prefix.start()]
    name, rank = leads.name(lead)
    compile_id = prefix["compile_id"]
    clock, pid = clock_of(prefix), pid_of(prefix)
    wrong = "no process has the rank before its prefix" if tells_no_rank(lead) else None
    wrong = "the time of its prefix is none" if clock is None else wrong
    wrong = "no process has the pid of its prefix" if pid is None else wrong
    told = prefix["level"].decode(), prefix["place"].decode("utf-8", "replace"), [line[prefix.end() :]]
    compiled = compile_id.decode() if compile_id and compile_id != b"-" else None
    return Message(number, *told, stream=(name, pid, rank), clock_us=clock, compile_id=compiled, wrong=wrong)


TEXT: Final = LogKind("text", _TextReader, TextProcesses)
