"""Logs of processes that ran past New Year: recordings whose clocks are moved there. A prefix names no year."""

import os
import re
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pytest

import cachescope
from tests.conftest import Recording

pytestmark = pytest.mark.usefixtures("in_utc")

_PREFIX = re.compile(rb"(?m)^([VIWEC])(\d{4} \d\d:\d\d:\d\d\.\d{6}) ")
_STAMP = re.compile(rb'("(?:ts|start_time_us|cache_event_time|start_time)": )(\d+)(\.\d+)?')
NEW_YEAR = datetime(2027, 1, 1, tzinfo=UTC).timestamp()


def moments(data: bytes) -> list[datetime]:
    return [
        datetime.strptime("2026" + one[1].decode(), "%Y%m%d %H:%M:%S.%f") for one in _PREFIX.findall(data)
    ]


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
