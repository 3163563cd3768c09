"""Clocks of log prefixes, which tell no year and no time zone, made moments; also past New Year."""

import os
import re
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pandas as pd
import pytest

import cachescope
from cachescope.readers.logs.log_prefix import LogClock, clock_us, moment_ns, on_from
from tests.conftest import Recording

pytestmark = pytest.mark.usefixtures("in_utc")


def clock(moment: datetime) -> int:
    return clock_us(b"%02d" % moment.month, b"%02d" % moment.day, moment.strftime("%H:%M:%S.%f").encode())


def epoch_us(moment: datetime) -> int:
    return int(moment.timestamp()) * 1_000_000 + moment.microsecond


def ns(moment: datetime) -> int:
    return epoch_us(moment) * 1_000


MOMENTS = [
    datetime(2026, 11, 22, 13, 52, 27, 716_000, tzinfo=UTC),
    datetime(2024, 2, 29, 12, 0, 0, 1, tzinfo=UTC),
    datetime(2025, 2, 28, 23, 59, 59, tzinfo=UTC),
    datetime(2025, 3, 1, 0, 0, 0, tzinfo=UTC),
    datetime(2025, 12, 31, 23, 30, 0, tzinfo=UTC),
    datetime(2026, 1, 1, 0, 30, 0, tzinfo=UTC),
]


@pytest.mark.parametrize("moment", MOMENTS, ids=str)
@pytest.mark.parametrize("hours", [0, 1, 5.5, -8, 13, -11])
def test_an_event_tells_year_and_zone(moment: datetime, hours: float) -> None:
    """The prefix prints local time; at the turn of the year it may be of another year than the event."""
    local = clock((moment + timedelta(hours=hours)).replace(tzinfo=UTC))
    found = LogClock.from_event(local, epoch_us(moment))
    assert found.ns(local) == ns(moment)


@pytest.mark.parametrize("moment", MOMENTS, ids=str)
@pytest.mark.parametrize("later", [0, 60, 6 * 3_600, 23 * 3_600])
def test_the_time_of_a_file_tells_the_year(moment: datetime, later: int) -> None:
    """Also where it was written last in the year behind."""
    found = LogClock.from_file_time(clock(moment), moment.timestamp() + later)
    assert found.ns(clock(moment)) == ns(moment)


@pytest.mark.parametrize(
    "text",
    ["00 01 00:00:00", "13 01 00:00:00", "01 00 00:00:00", "01 32 00:00:00", "01 01 24:00:00", "01 01 00:60:00", "01 01 00:00:61"],
)  # fmt: skip
def test_what_is_no_moment_of_a_year(text: str) -> None:
    month, day, at = text.encode().split()
    assert clock_us(month, day, at + b".000000") is None
    # But a leap second is one.
    assert clock_us(b"12", b"31", b"23:59:60.999999") == 365 * 86_400 * 10**6 + 86_400 * 10**6 + 999_999


def test_a_clock_counts_microseconds_from_new_year() -> None:
    assert clock_us(b"01", b"01", b"00:00:00.000001") == 1
    assert clock_us(b"01", b"02", b"03:04:05.600000") == ((27 * 60 + 4) * 60 + 5) * 10**6 + 600_000
    assert clock_us(b"03", b"01", b"00:00:00.000000") == 60 * 86_400 * 10**6
    assert clock_us(b"12", b"31", b"00:00:00.000000") == 365 * 86_400 * 10**6


@pytest.mark.parametrize(
    ("year", "day"), [(2000, 29), (2023, 28), (2024, 29), (2099, 28), (2100, 28), (2104, 29), (2196, 29)]
)
def test_a_leap_day_in_a_year_that_has_none_is_the_day_before(year: int, day: int) -> None:
    leap_day = clock_us(b"02", b"29", b"12:00:00.000000")
    assert LogClock(year, 0, leap_day).ns(leap_day) == ns(datetime(year, 2, day, 12, tzinfo=UTC))


def test_a_clock_is_ahead_of_utc_by_its_offset() -> None:
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
    assert LogClock(2026, -3_600_000_000, clock(noon)).ns(clock(noon)) == ns(noon - timedelta(hours=1))
    assert LogClock(2026, 3_600_000_000, clock(noon)).ns(clock(noon)) == ns(noon + timedelta(hours=1))


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata", "America/New_York"])
def test_without_an_event_a_log_is_of_this_machines_zone(zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    moment = datetime(2026, 7, 5, 12, 0, 0, 250_000, tzinfo=UTC)
    local = clock(moment.astimezone().replace(tzinfo=UTC))
    found = LogClock.from_file_time(local, moment.timestamp() + 60)
    assert found is not None and found.ns(local) == ns(moment)


def test_a_log_of_a_day_ahead_of_its_file_is_of_the_year_before() -> None:
    written = datetime(2026, 5, 3, 12, tzinfo=UTC)
    for ahead_us, year in ((86_400_000_000, 2026), (86_400_000_001, 2025)):
        found = LogClock.from_file_time(clock(written) + ahead_us, written.timestamp())
        assert found is not None and found.year == year


def test_an_event_is_at_most_so_far_from_its_clock() -> None:
    """A zone is at most 14 hours off; the rest is for a long compile."""
    moment = datetime(2026, 5, 3, 12, tzinfo=UTC)
    for hours, is_one in ((26, True), (-26, True), (26.25, False), (-26.25, False)):
        found = LogClock.from_event(clock(moment), epoch_us(moment + timedelta(hours=hours)))
        assert (found is not None) is is_one
        assert found is None or found.offset_us == hours * 3_600_000_000


@pytest.mark.parametrize("year", [2024, 2025, 2026])
@pytest.mark.parametrize("hours", [0, 5.5, -8])
def test_a_log_goes_on_past_new_year(year: int, hours: float) -> None:
    before = datetime(year, 12, 31, 23, 59, 58, tzinfo=UTC)
    began, zone = clock(before), timedelta(hours=hours)
    for later in (timedelta(seconds=1), timedelta(seconds=3), timedelta(days=40), timedelta(days=170)):
        after = before + later
        assert on_from(clock(after), began) >= began
        found = LogClock.from_event(began, epoch_us(before - zone))
        assert found is not None and found.ns(clock(after)) == ns(after - zone)
        assert moment_ns(clock(after), began, ns(before - zone)) == ns(after - zone)
        # The first event may have passed it after the first record.
        found = LogClock.from_event(clock(after), epoch_us(after - zone))
        if later < timedelta(days=30):
            assert found is not None and found.ns(began) == ns(before - zone)
    found = LogClock.from_file_time(began, before.timestamp() + 3_600)
    assert found is not None and found.ns(clock(before + timedelta(seconds=3))) == ns(before) + 3 * 10**9


def test_a_log_of_many_months_is_of_one_year() -> None:
    first, last = datetime(2026, 1, 5, tzinfo=UTC), datetime(2026, 11, 30, tzinfo=UTC)
    assert moment_ns(clock(last), clock(first), ns(first)) == ns(last)
    # So is one whose processes stand in it in another order.
    july = datetime(2026, 7, 1, tzinfo=UTC)
    assert moment_ns(clock(first), clock(july), ns(july)) == ns(first)


def test_a_leap_day_that_is_none_takes_no_time() -> None:
    first, last = datetime(2026, 2, 28, 23, tzinfo=UTC), datetime(2026, 3, 1, 1, tzinfo=UTC)
    assert moment_ns(clock(last), clock(first), ns(first)) == ns(last)


def test_the_first_and_the_last_moment_that_are_believed() -> None:
    for seconds, is_one in (
        (366 * 86_400, True),
        (366 * 86_400 - 1, False),
        (7_258_118_400, True),
        (7_258_118_401, False),
    ):
        moment = datetime.fromtimestamp(seconds, UTC)
        assert (LogClock.from_event(clock(moment), seconds * 1e6) is not None) is is_one
        assert (LogClock.from_file_time(clock(moment), seconds) is not None) is is_one
    for seconds in (10**12, -5):
        assert LogClock.from_event(0, seconds * 1e6) is LogClock.from_file_time(0, seconds) is None


_PREFIX = re.compile(rb"(?m)^([VIWEC])(\d{4} \d\d:\d\d:\d\d\.\d{6}) ")
_STAMP = re.compile(rb'("(?:ts|start_time_us|cache_event_time|start_time)": )(\d+)(\.\d+)?')
NEW_YEAR = datetime(2027, 1, 1, tzinfo=UTC).timestamp()


def moments(data: bytes) -> list[datetime]:
    return [datetime.strptime("2026" + i[1].decode(), "%Y%m%d %H:%M:%S.%f") for i in _PREFIX.findall(data)]


def moved(data: bytes, shift_s: float) -> bytes:
    """The log as it would be so many seconds later."""

    def at(match: re.Match[bytes]) -> bytes:
        moment = datetime.strptime("2026" + match[2].decode(), "%Y%m%d %H:%M:%S.%f").timestamp() + shift_s
        text = datetime.fromtimestamp(round(moment, 6)).strftime("%m%d %H:%M:%S.%f")
        return match[1] + text.encode() + b" "

    def stamp(match: re.Match[bytes]) -> bytes:
        unit = 10 ** (len(match[2]) - 10)
        return match[1] + str(int(match[2]) + round(shift_s) * unit).encode() + (match[3] or b"")

    return _STAMP.sub(stamp, _PREFIX.sub(at, data))


@pytest.mark.parametrize(
    "kinds", [["trace"], ["text"], pytest.param(["trace", "text"], marks=pytest.mark.slow)], ids="+".join
)
def test_what_ran_past_new_year_has_the_times_it_has_on_other_days(
    kinds: list[str], recording: Recording, tmp_path: Path
) -> None:
    folder = recording("2.13.0", "training")
    first = min((folder / "trace").iterdir(), key=lambda path: moments(path.read_bytes())[0])
    data = first.read_bytes()
    pid = re.search(rb"^\S+ \S+ (\d+) ", data)[1]  # type: ignore[index]
    logs = {"trace": data}
    for path in (folder / "text").iterdir():
        text = path.read_bytes()
        if re.search(rb"^\S+ \S+ " + pid + rb" ", text, re.MULTILINE):
            logs["text"] = text
    # Half of it is in the new year.
    all_moments = moments(data)
    middle = all_moments[0] + (all_moments[-1] - all_moments[0]) / 2
    day = 86_400.0
    for name, shift in (
        ("before", round(NEW_YEAR - middle.timestamp() - 9 * day)),
        ("across", round(NEW_YEAR - middle.timestamp())),
    ):
        (tmp_path / name).mkdir()
        for kind in kinds:
            log = tmp_path / name / f"{kind}.log"
            log.write_bytes(moved(logs[kind], shift))
            ended = all_moments[-1].timestamp() + shift + 5
            os.utime(log, (ended, ended))
    before, across = (cachescope.read(tmp_path / name, index=False) for name in ("before", "across"))
    assert len(before.lookups) > 1 and len(before.runs) == len(across.runs) == 1
    assert across.runs["start_time"][0].year == 2026 and across.runs["end_time"][0].year == 2027
    for name in ("runs", "lookups"):
        was, now = getattr(before, name), getattr(across, name)
        for column in was.select_dtypes("datetimetz"):
            pd.testing.assert_series_equal(was[column] + pd.Timedelta(days=9), now[column])
    assert before.lookups["outcome"].tolist() == across.lookups["outcome"].tolist()
