"""A text log that has grown is read from where it ended, and gives what reading it anew gives."""

from __future__ import annotations

import random
import re
from collections import deque
from collections.abc import Callable
from itertools import accumulate, groupby
from pathlib import Path

import pytest

from cachescope.readers.logs.text_log import read_on_text_log, read_text_log
from cachescope.readers.reading import Reading
from tests.readers.logs.growing import assert_as_anew, assert_same, in_columns, kept, out_of_columns, written

__all__ = ["kept"]

Recording = Callable[[str, str], Path]

WRITTEN = [
    ("2.13.0", "four_processes"),
    ("2.13.0", "entry_truncated"),
    ("2.13.0", "bypass_custom_pass"),
    ("2.13.0", "logs_out"),
    ("2.6.0", "dynamic_guards"),
    ("2.10.0", "training"),
    ("2.15.0", "config_flip"),
]
HEAD = re.compile(rb"[VIWEC]\d{4} \S+ \d+ [^\]]*\](?: \[[-!\d/_]+\])?")


@pytest.fixture(scope="module", params=WRITTEN, ids=" ".join)
def log(request: pytest.FixtureRequest, recording: Recording) -> list[bytes]:
    """The messages of all processes of a recording in turns, as those that write to one file leave them."""
    version, scenario = request.param
    texts = sorted((recording(version, scenario) / "text").iterdir())
    rest = [deque(messages(path.read_bytes())) for path in texts]
    rng = random.Random(len(rest))
    found: list[bytes] = []
    while rest := [one for one in rest if one]:
        one = rng.choice(rest)
        found += [one.popleft() for _ in range(min(rng.randrange(1, 6), len(one)))]
    assert len(found) > 10
    return found


def messages(data: bytes) -> list[bytes]:
    """Each message with all its lines: those of one call of a logger begin with the same bytes."""
    head = b""

    def head_of(line: bytes) -> bytes:
        nonlocal head
        match = HEAD.match(line)
        head = match[0] if match else head
        return head

    return [b"".join(lines) for _, lines in groupby(data.splitlines(keepends=True), key=head_of)]


def read_anew(path: Path) -> Reading:
    reading = Reading()
    read_text_log(str(path), reading)
    return reading


def can_go_on(reading: Reading) -> bool:
    return any(process.end_state is not None for process in reading.processes)


def cut_places(log: list[bytes]) -> list[int]:
    """Some forty ends of messages, and the end."""
    ends = list(accumulate(map(len, log)))
    return [*ends[:: max(len(ends) // 40, 1)], ends[-1]]


@pytest.mark.slow
def test_between_messages_it_goes_on_and_is_what_it_is_when_read_anew(
    log: list[bytes], tmp_path: Path
) -> None:
    data = b"".join(log)
    path = tmp_path / "a.log"
    table, went_on = None, 0
    for end in cut_places(log):
        anew = read_anew(written(path, data[:end]))
        if table is not None:
            reading = out_of_columns(table)
            assert read_on_text_log(str(path), reading)
            assert_same(reading, anew)
            went_on += 1
        if can_go_on(anew):
            table = in_columns(anew)
    assert went_on >= 10


def test_processes_stand_in_the_order_of_their_first_lines(recording: Recording, tmp_path: Path) -> None:
    texts = sorted((recording("2.13.0", "four_processes") / "text").iterdir())
    one, other = (messages(path.read_bytes()) for path in texts[:2])
    del one[: next(at for at, message in enumerate(one) if b"hash details for key" not in message)]
    # The first message of the one goes on, for all that can be known, until its second begins.
    log = [one[0], *other, *one[1:]]
    path = tmp_path / "a.log"
    kept_then = read_anew(written(path, b"".join(log[: len(other) + 1])))
    assert can_go_on(kept_then)
    reading = out_of_columns(in_columns(kept_then))
    assert read_on_text_log(str(written(path, b"".join(log))), reading)
    assert reading.processes[0].pid == read_anew(texts[0]).processes[0].pid
    assert_same(reading, read_anew(path))


@pytest.mark.slow
def test_from_anywhere_it_is_what_it_is_when_read_anew_or_is_read_anew(
    log: list[bytes], tmp_path: Path
) -> None:
    data = b"".join(log)
    rng = random.Random(len(data))
    # Most lines are hash details, behind which nothing goes on: so also around the ends of messages.
    ends = list(accumulate(map(len, log)))[:-1]
    around = {end + shift for end in rng.sample(ends, min(len(ends), 12)) for shift in (-1, 0, 1, 40)}
    lines = [match.end() for match in re.finditer(b"\n", data)]
    went_on = 0
    for cut in sorted({*around, *rng.sample(lines, 20), *(rng.randrange(len(data)) for _ in range(5))}):
        path = written(tmp_path / f"{cut}.log", data[:cut])
        reading = read_anew(path)
        if not can_go_on(reading):
            continue
        reading = out_of_columns(in_columns(reading))
        written(path, data)
        if read_on_text_log(str(path), reading):
            assert_same(reading, read_anew(path))
            went_on += 1
    assert went_on > 0


@pytest.mark.slow
def test_one_that_is_followed_is_read_whole_once(kept: list[str], log: list[bytes], tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    data = b"".join(log)
    # The first look finds something to go on from, and more than is probed.
    first = next(
        end
        for end in cut_places(log)
        if end > 10_000 and can_go_on(read_anew(written(tmp_path / f"{end}.log", data[:end])))
    )
    for end in (first, (first + len(data)) // 2, len(data)):
        assert_as_anew(written(path, data[:end]))
    assert kept == [str(path)]


def test_a_message_that_was_cut_between_its_lines_is_read_anew(recording: Recording, tmp_path: Path) -> None:
    data = (recording("2.13.0", "entry_truncated") / "text" / "02_after_damage.log").read_bytes()
    error = data.index(b"unable to load compiled graph")
    cut = data.index(b"\n", error) + 1
    path = written(tmp_path / "a.log", data[:cut])
    reading = read_anew(path)
    assert can_go_on(reading)
    written(path, data)
    assert not read_on_text_log(str(path), reading)


def test_short_logs_and_details_without_an_outcome_have_no_way_on(
    recording: Recording, tmp_path: Path
) -> None:
    short = next((recording("2.13.0", "text_short") / "text").iterdir()).read_bytes()
    assert not can_go_on(read_anew(written(tmp_path / "short.log", short)))
    data = (recording("2.13.0", "cold_warm") / "text" / "00_cold.log").read_bytes()
    log = messages(data)
    first, second = [at for at, message in enumerate(log) if b"hash details for key" in message]
    assert can_go_on(read_anew(written(tmp_path / "before.log", b"".join(log[:second]))))
    for at in (first, second):
        assert not can_go_on(read_anew(written(tmp_path / f"{at}.log", b"".join(log[: at + 1]))))
