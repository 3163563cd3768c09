"""Text logs that hold lines twice: appended again to the same file, or delivered twice. Nothing was looked up again."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

import cachescope
from cachescope.readers.logs.text_log import read_on_text_log, read_text_log
from cachescope.readers.reading import Reading
from tests.conftest import Recording

SCENARIOS = [("2.13.0", "tour"), ("2.13.0", "bypass_custom_pass"), ("2.6.0", "dynamic_guards")]
_MESSAGE = re.compile(rb"\] (?:FX|fx graph|AOTAutograd|Autograd|Bypassing|Writing)[^\n]*\n$")
_SEEN = ["cache", "cache_key", "outcome", "compile_id", "bypass_reason", "guards_expr", "time"]


@pytest.fixture(params=SCENARIOS, ids=" ".join)
def lines(request: pytest.FixtureRequest, recording: Recording) -> list[bytes]:
    texts = sorted((recording(*request.param) / "text").iterdir())
    return [line for path in texts for line in path.read_bytes().splitlines(keepends=True)]


def seen(path: Path, lines: list[bytes]) -> tuple[pd.DataFrame, list[tuple[str, object]]]:
    """The lookups and the verdicts of a log of these lines."""
    path.write_bytes(b"".join(lines))
    scope = cachescope.read(path, index=False)
    verdicts = list(zip(scope.misses["verdict"], scope.misses["changed"], strict=True))
    return scope.lookups[_SEEN], verdicts


@pytest.mark.slow
def test_a_log_that_was_appended_twice_says_nothing_new(lines: list[bytes], tmp_path: Path) -> None:
    once, verdicts = seen(tmp_path / "once.log", lines)
    twice, verdicts_of_twice = seen(tmp_path / "twice.log", lines + lines)
    pd.testing.assert_frame_equal(once, twice)
    assert verdicts == verdicts_of_twice


@pytest.mark.slow
def test_a_part_that_was_delivered_twice_makes_no_lookup(lines: list[bytes], tmp_path: Path) -> None:
    once, _ = seen(tmp_path / "once.log", lines)
    part, _ = seen(tmp_path / "part.log", lines[: len(lines) // 2] + lines)
    pd.testing.assert_frame_equal(once, part)


@pytest.mark.slow
def test_a_line_that_was_delivered_twice_is_one(lines: list[bytes], tmp_path: Path) -> None:
    once, verdicts = seen(tmp_path / "once.log", lines)
    repeated = [line for line in lines for _ in range(2 if _MESSAGE.search(line) else 1)]
    assert len(repeated) > len(lines)
    twice, verdicts_of_twice = seen(tmp_path / "twice.log", repeated)
    pd.testing.assert_frame_equal(once, twice)
    assert verdicts == verdicts_of_twice


def test_a_log_that_grows_by_what_it_holds_is_read_anew(recording: Recording, tmp_path: Path) -> None:
    (first, *_) = sorted((recording("2.13.0", "tour") / "text").iterdir())
    path = tmp_path / "a.log"
    path.write_bytes(first.read_bytes())
    reading = Reading()
    read_text_log(str(path), reading)
    assert reading.processes[0].end_state is not None
    path.write_bytes(first.read_bytes() * 2)
    assert not read_on_text_log(str(path), reading)


def test_a_log_that_grows_by_its_last_line_again_has_no_more_lookups(
    recording: Recording, tmp_path: Path
) -> None:
    (first, *_) = sorted((recording("2.13.0", "tour") / "text").iterdir())
    data = first.read_bytes()
    line = data.splitlines(keepends=True)[-1]
    assert _MESSAGE.search(line)
    path = tmp_path / "a.log"
    path.write_bytes(data)
    reading = Reading()
    read_text_log(str(path), reading)
    path.write_bytes(data + line)
    anew = Reading()
    read_text_log(str(path), anew)
    assert read_on_text_log(str(path), reading)
    assert reading.processes[0].lookups == anew.processes[0].lookups
