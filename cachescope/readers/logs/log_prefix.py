"""The prefix of every line of torch's text logs and of every record of a TORCH_TRACE file.

torch/_logging/_internal.py, `TorchLogsFormatter.format`: level letter, MMDD, time, pid, file:line, then
optionally the trace id and the artifact. Year and time zone are not in it and have to come from elsewhere.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

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


def clock_us(month: bytes, day: bytes, time: bytes) -> int:
    """The time of a prefix in microseconds since the start of a leap year: a clock that both logs of a process share.

    Raises
    ------
    ValueError
        If the month, the day or the time is invalid.
    """
    number, of_month = int(month), int(day)
    hours, minutes, seconds = int(time[:2]), int(time[3:5]), int(time[6:8])
    # A leap second is printed as second 60.
    if not (1 <= number <= 12 and 1 <= of_month <= 31 and hours < 24 and minutes < 60 and seconds <= 60):
        raise ValueError(f"no moment of a year: {(month + day + b' ' + time).decode()}")
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


class LogClock:
    """Turns the clock of a prefix into nanoseconds since the epoch, once the offset is known.

    Parameters
    ----------
    year : int
        The year of `known_us`.
    offset_us : int
        What to add to local time.
    known_us : int
        A clock of the log.
    """

    __slots__ = ("known_us", "offset_us", "year")

    def __init__(self, year: int, offset_us: int, known_us: int) -> None:
        self.year = year
        self.offset_us = offset_us
        self.known_us = known_us

    @classmethod
    def from_event(cls, clock: int, epoch_us: float) -> LogClock | None:
        """From a record with both times: a `chromium_event` has its time since the epoch in `ts`.

        None if the two cannot be times of one moment.
        """
        if not 366 * 86_400 <= epoch_us / 1e6 <= _LAST_MOMENT_S:
            return None
        year = datetime.fromtimestamp(epoch_us / 1e6, UTC).year
        offsets = {
            y: round((epoch_us - _naive_us(clock, y)) / _QUARTER_US) * _QUARTER_US
            for y in (year - 1, year, year + 1)
        }
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
