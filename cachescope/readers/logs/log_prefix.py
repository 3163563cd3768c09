"""The prefix of every line of torch's text logs and of every record of a TORCH_TRACE file, and what precedes it in a line.

torch/_logging/_internal.py, `TorchLogsFormatter.format`: level letter, MMDD, time, pid, file:line, then
optionally the trace id and the artifact. Year and time zone are not in it and have to come from elsewhere.

Two processes in one file may share a pid, so the part that all lines of a process have in common names its stream: docker
compose writes ``web-1  | ``, kubectl ``[pod/a/b] ``, srun ``0: ``, mpirun ``[1,0]<stderr>:``, torchrun ``[default0]:``, Ray
``(worker pid=7) `` and journald ``Nov 22 12:00:00 host python[1]: ``. Text that a program printed is no name.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final, NamedTuple

# The trace id has to be numeric: else the hash at the start of a detail line would match.
PREFIX: Final = re.compile(
    rb"(?P<level>[VIWEC])(?P<month>\d\d)(?P<day>\d\d) (?P<time>\d\d:\d\d:\d\d\.\d{6}) (?P<pid>\d+) "
    rb"(?P<place>[^\n]*?\.py:\d+)\](?: \[(?P<compile_id>!?[0-9-]+(?:/[0-9-]+)*(?:_\d+)?)\])?"
    rb"(?: \[__(?P<artifact>\w+)\])?(?: |$)"
)

# A column holds no larger number.
_MOST_DIGITS_OF_A_PID: Final = 18
_QUARTER_US: Final = 15 * 60 * 1_000_000
# Time zones are at most 14 hours off UTC; the rest allows for a long compile.
_MOST_OFF_US: Final = 26 * 3600 * 1_000_000
_LAST_MOMENT_S: Final = 7_258_118_400
"""The end of 2199: a clock with a later time is wrong, and so is one before 1970."""
_YEAR_US: Final = 366 * 86_400_000_000
# A clock that goes back by more than half a year has passed New Year. The first event of a log may have passed it after
# earlier records.
_BACK_US: Final = 183 * 86_400_000_000
_AHEAD_US: Final = 335 * 86_400_000_000
_DAYS_BEFORE = (0, 31, 60, 91, 121, 152, 182, 213, 244, 274, 305, 335)

# The beginning of a prefix, up to its pid.
_MOMENT: Final = re.compile(rb"[VIWEC]\d{4} \d\d:\d\d:\d\d\.\d{6} \d+ ")
_TORCH: Final = re.compile(rb"[VIWEC]\d{4} \d\d:\d\d:\d\d\.\d{6} \d+ (?P<place>torch/)?")
# torch/_logging/_internal.py, `DEFAULT_FORMATTER`: logging's own format, without a time or a process.
_SHORT: Final = re.compile(rb"(?P<level>DEBUG|INFO|WARNING|ERROR):(?P<place>torch[\w.]*):")
_NO_RANK: Final = re.compile(rb"\[rank\d{10,}\]:")
_RANK: Final = re.compile(rb"\[rank(\d{1,9})\]:")
_COLOUR: Final = rb"\x1b\[[0-9;]*[A-Za-z]"
_STAMP: Final = (
    rb"\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?"
    rb"|(?:[A-Z][a-z]{2} )?[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)?(?: \d{4})?"
    rb"|\d\d:\d\d:\d\d(?:[.,]\d+)?|(?<!\d)\d++\.\d++"
)
# Parts of a lead that do not belong to a name.
_VARIES: Final = re.compile(
    rb"\xef\xbb\xbf|" + _COLOUR + rb"|" + _STAMP + rb"|std(?:out|err) [FP] |\[rank\d+\]:|\[ *\]|\( *\)"
)
# Leads that only a launcher writes; any other text may be a program's output.
_LAUNCHERS: Final = re.compile(
    rb"(?:" + _COLOUR + rb"|" + _STAMP + rb"|\xef\xbb\xbf|\s++|std(?:out|err) [FP] "
    rb"|\[[\w./:,@-]*+\](?:<std(?:out|err)>)?:?"
    rb"|\(\w++ pid=\d++(?:, ip=[\d.:a-f]+)?\)"
    rb"|[\w.-]++ ++\||\d++:"
    rb"|[\w.-]++ [\w./@-]++\[\d++\]:"
    rb")*"
)
# Of a line, as ``grep -n`` prints it; behind a rank, srun puts a space.
_NUMBER: Final = re.compile(rb"\d++:")
_CODE: Final = re.compile(_COLOUR)
_MOST_REMEMBERED: Final = 4096
# Names are shorter; a progress bar that redraws its line is longer.
_LONGEST_NAME: Final = 1_000

Name = tuple[bytes, int | None]
"""The name of a stream of lines, and the rank if torch printed one."""


def clock_of(prefix: re.Match[bytes]) -> int | None:
    """The clock of a prefix; None if its time is none."""
    return clock_us(prefix["month"], prefix["day"], prefix["time"])


def clock_us(month: bytes, day: bytes, time: bytes) -> int | None:
    """A time in microseconds since the start of a leap year: a clock that both logs of a process share; None if it is none."""
    number, of_month = int(month), int(day)
    hours, minutes, seconds = int(time[:2]), int(time[3:5]), int(time[6:8])
    # A leap second is printed as second 60.
    if not (1 <= number <= 12 and 1 <= of_month <= 31 and hours < 24 and minutes < 60 and seconds <= 60):
        return None
    days = _DAYS_BEFORE[number - 1] + of_month - 1
    return ((days * 24 + hours) * 3600 + minutes * 60 + seconds) * 1_000_000 + int(time[9:15])


def pid_of(prefix: re.Match[bytes]) -> int | None:
    """The pid of a prefix; None if no process can have it."""
    return int(prefix["pid"]) if len(prefix["pid"]) <= _MOST_DIGITS_OF_A_PID else None


def on_from(clock: int, first: int) -> int:
    """A clock of a log that began at the clock `first`: past New Year it goes on, instead of beginning again."""
    return clock + _YEAR_US * _years_after(clock, first)


def _years_after(clock: int, other: int) -> int:
    """In which year a clock of a log is, counted from that of another clock of the log."""
    if other - clock > _BACK_US:
        return 1
    return -1 if clock - other > _AHEAD_US else 0


def moment_ns(clock: int, first: int, first_ns: int) -> int:
    """The moment of a clock, if the moment of another one of the same log is known: nanoseconds since the epoch."""
    known = LogClock.from_event(first, first_ns / 1000)
    if known is None:
        return first_ns + (clock - first) * 1000
    return first_ns + known.ns(clock) - known.ns(first)


def _naive_us(clock: int, year: int) -> int:
    """The clock of a prefix in a year, as if it were UTC, in microseconds since the epoch."""
    days, rest = divmod(clock, 86_400_000_000)
    return _midnight_us(days, year) + rest


@lru_cache
def _midnight_us(days: int, year: int) -> int:
    """Midnight after so many days of a year, cached: the lines of a log fall on a few days."""
    month = max(i for i, before in enumerate(_DAYS_BEFORE) if before <= days)
    day = days - _DAYS_BEFORE[month] + 1
    # 29 February of a year that has none can only be a wrong guess of the year.
    if month == 1 and day == 29 and (year % 4 or (year % 100 == 0 and year % 400)):
        day = 28
    return int(datetime(year, month + 1, min(day, 31), tzinfo=UTC).timestamp()) * 1_000_000


class LogClock(NamedTuple):
    """Turns the clock of a prefix into nanoseconds since the epoch, once the offset is known."""

    year: int
    offset_us: int
    known_us: int

    @classmethod
    def from_event(cls, clock: int, epoch_us: float) -> LogClock | None:
        """From a record with both times: a `chromium_event` has its time since the epoch in `ts`.

        None if the two cannot be times of one moment.
        """
        if not 366 * 86_400 <= epoch_us / 1e6 <= _LAST_MOMENT_S:
            return None
        year = datetime.fromtimestamp(epoch_us / 1e6, UTC).year
        years = (year - 1, year, year + 1)
        offsets = {y: round((epoch_us - _naive_us(clock, y)) / _QUARTER_US) * _QUARTER_US for y in years}
        best = min(offsets, key=lambda y: abs(offsets[y]))
        return cls(best, offsets[best], clock) if abs(offsets[best]) <= _MOST_OFF_US else None

    @classmethod
    def from_file_time(cls, clock: int, modified_s: float) -> LogClock | None:
        """From the file's modification time, for a log that contains no time since the epoch.

        The year is the file's; the time zone is assumed to be this machine's. None if the file's time is implausible.
        """
        if not 366 * 86_400 <= modified_s <= _LAST_MOMENT_S:
            return None
        written = datetime.fromtimestamp(modified_s, UTC).astimezone()
        offset = written.utcoffset()
        offset_us = 0 if offset is None else -int(offset.total_seconds()) * 1_000_000
        year = written.year
        # The log is of 31 December, but the file was last written on 1 January.
        if _naive_us(clock, year) + offset_us > modified_s * 1e6 + 86_400_000_000:
            year -= 1
        return cls(year, offset_us, clock)

    def ns(self, clock: int) -> int:
        """Nanoseconds since the epoch, UTC."""
        year = self.year + _years_after(clock, self.known_us)
        return (_naive_us(clock, year) + self.offset_us) * 1000


def time_at(clock: LogClock | None, at: int | None) -> int | None:
    """The time at a clock of a log, in nanoseconds since the epoch; None if one of them is not known."""
    return None if clock is None or at is None else clock.ns(at)


def uncoloured(text: bytes) -> bytes:
    """The text without the codes that colour it on a terminal."""
    return _CODE.sub(b"", text) if b"\x1b" in text else text


def tells_no_rank(lead: bytes) -> bool:
    """Whether the text before torch's prefix contains a rank that no process can have."""
    return _NO_RANK.search(lead) is not None


class LauncherPrefixes:
    """Finds torch's prefix in the lines of one log, and the stream that the bytes before it name."""

    def __init__(self, head: bytes = b"", *, is_named: bool | None = None) -> None:
        self.is_named = _are_named(head) if is_named is None else is_named
        self._known: dict[bytes, Name] = {}

    def prefix_of(self, line: bytes) -> re.Match[bytes] | None:
        """Torch's prefix in a line; None if it has none."""
        prefix = self._first_prefix_of(line)
        if prefix is None or not (inner := list(_MOMENT.finditer(line, *prefix.span("place")))):
            return prefix
        # Another process wrote before this line was complete. The message is that process's; only its lead could name its stream.
        return None if self.is_named or prefix.start() else PREFIX.match(line, inner[-1].start())

    def _first_prefix_of(self, line: bytes) -> re.Match[bytes] | None:
        if match := PREFIX.match(line):
            return match
        found = _TORCH.search(line)
        if found is None:
            return None
        is_torchs = self.is_named or found["place"] or _LAUNCHERS.fullmatch(line, 0, found.start())
        return PREFIX.match(line, found.start()) if is_torchs else None

    def short_of(self, line: bytes) -> re.Match[bytes] | None:
        """The prefix of TORCH_LOGS_FORMAT=short in a line; only a launcher's text may precede it."""
        found = _SHORT.search(line)
        return found if found is not None and _LAUNCHERS.fullmatch(line, 0, found.start()) else None

    def name(self, lead: bytes) -> Name:
        """The name and rank that the bytes before a prefix give."""
        if not lead:
            return b"", None
        known = self._known.get(lead)
        if known is None:
            rank = _RANK.search(lead)
            is_name = self.is_named or (_LAUNCHERS.fullmatch(lead) and not _NUMBER.fullmatch(lead))
            known = (_name(lead) if is_name else b"", int(rank[1]) if rank else None)
            # Leads that contain a time are all different.
            if len(self._known) < _MOST_REMEMBERED and len(lead) <= _LONGEST_NAME:
                self._known[lead] = known
        return known


def _name(lead: bytes) -> bytes:
    # A progress bar that redraws its line comes after the name.
    return b" ".join(_VARIES.sub(b"", lead.partition(b"\r")[0][:_LONGEST_NAME]).split())


def _are_named(head: bytes) -> bool:
    leads = [head[head.rfind(b"\n", 0, at) + 1 : at] for at in (one.start() for one in _TORCH.finditer(head))]
    named = [name for lead in leads if (name := _name(lead))]
    # A text that differs from line to line is no name.
    return 2 * len(named) > len(leads) and 2 * len(set(named)) <= len(named) + 1
