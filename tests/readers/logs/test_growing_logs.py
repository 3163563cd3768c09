"""A trace that has grown is read from where it ended, and gives what reading it anew gives, wherever it was cut."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pandas as pd
import pytest

import cachescope
from cachescope.readers.logs import many_logs as logs
from cachescope.readers.logs.trace_log import read_on_trace_log, read_trace_log
from cachescope.readers.reading import Reading
from tests.readers.logs.growing import assert_as_anew, assert_same, in_columns, kept, out_of_columns, written

__all__ = ["kept"]

Recording = Callable[[str, str], Path]

RECORD = re.compile(rb"\n(?![\t])")
WRITTEN = [
    ("2.13.0", "tour"),
    ("2.13.0", "force_disabled"),
    ("2.13.0", "bypass_custom_pass_fx"),
    ("2.6.0", "config_flip"),
    ("2.10.0", "config_flip"),
]


@pytest.fixture(scope="module", params=WRITTEN, ids=" ".join)
def trace(request: pytest.FixtureRequest, recording: Recording) -> bytes:
    """All processes of a recording in one log, which has more kinds of records than any of them."""
    folder = recording(*request.param)
    return b"".join(path.read_bytes() for path in sorted((folder / "trace").iterdir()))


def read_anew(path: Path) -> Reading:
    reading = Reading()
    read_trace_log(str(path), reading)
    return reading


def ends_of_records(data: bytes) -> list[int]:
    return [match.end() for match in RECORD.finditer(data)]


def a_few(rng: random.Random, data: bytes) -> list[int]:
    """Places to cut at: behind records, and anywhere."""
    ends = ends_of_records(data)
    return sorted(
        {rng.choice(ends) if rng.random() < 0.6 else rng.randrange(100, len(data)) for _ in range(3)}
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_a_log_that_grew_in_steps_is_what_it_is_when_read_anew(
    seed: int, trace: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "a.log"
    cuts = a_few(random.Random(seed), trace)
    written(path, trace[: cuts[0]])
    before = out_of_columns(in_columns(read_anew(path)))
    for last, cut in pairwise([*cuts, len(trace)]):
        written(path, trace[:cut])
        anew = read_anew(path)
        is_whole = trace[last - 1 : last] == b"\n" and trace[last : last + 1] != b"\t"
        assert read_on_trace_log(str(path), before) == is_whole
        if is_whole:
            assert_same(before, anew)
        before = out_of_columns(in_columns(anew))


@pytest.mark.slow
def test_every_record_is_a_place_to_go_on_from(trace: bytes, tmp_path: Path) -> None:
    ends = ends_of_records(trace)
    step = max(len(ends) // 40, 1)
    path = written(tmp_path / "a.log", trace[: ends[0]])
    reading = read_anew(path)
    for end in ends[step::step]:
        written(path, trace[:end])
        assert read_on_trace_log(str(path), reading)
        reading = out_of_columns(in_columns(reading))
    assert_same(reading, read_anew(path))


def test_the_clock_that_was_found_stays(trace: bytes, tmp_path: Path) -> None:
    ends = ends_of_records(trace)
    # Nothing behind tells the time since the epoch.
    at = next(
        end for end in ends[len(ends) // 2 :] if b"chromium_event" not in trace[end : trace.index(b"\n", end)]
    )
    path = written(tmp_path / "a.log", trace[:at])
    reading = read_anew(path)
    written(path, trace[: ends[ends.index(at) + 1]])
    assert read_on_trace_log(str(path), reading)
    assert_same(reading, read_anew(path))


def test_a_log_that_ends_within_a_record_has_no_way_on(trace: bytes, tmp_path: Path) -> None:
    ends = ends_of_records(trace)
    # The longest record, where it is cut.
    start, end = max(pairwise(ends), key=lambda pair: pair[1] - pair[0])
    line_end = trace.index(b"\n", start) + 1
    assert trace[line_end : line_end + 1] == b"\t"
    for cut in (start + 1, line_end - 1, line_end, line_end + 1, (line_end + end) // 2, end - 1):
        path = written(tmp_path / f"{cut}.log", trace[:cut])
        reading = read_anew(path)
        written(path, trace)
        assert not read_on_trace_log(str(path), reading)


def places(data: bytes, shares: tuple[float, ...]) -> list[int]:
    ends = ends_of_records(data)
    return [ends[int(share * (len(ends) - 1))] for share in shares]


@pytest.mark.slow
def test_a_job_that_is_followed_is_read_whole_once(kept: list[str], trace: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    for cut in [*places(trace, (0.2, 0.5, 0.9)), len(trace)]:
        assert_as_anew(written(path, trace[:cut]))
    assert kept == [str(path)]


@pytest.mark.slow
def test_a_look_in_mid_record_costs_nothing_later(kept: list[str], trace: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    first, second = places(trace, (0.3, 0.6))
    for cut in (first, second + 40, len(trace)):
        assert_as_anew(written(path, trace[:cut]))
    assert kept == [str(path)]


def another(data: bytes) -> bytes:
    """What another process would have written, byte for byte as long."""
    return re.sub(rb"(?m)^([VIWEC]\d{4} \d\d:)(\d)", rb"\g<1>5", data)


def put_a_longer_one_in_its_place(path: Path, trace: bytes) -> None:
    path.with_name("other").write_bytes(trace)
    os.replace(path.with_name("other"), path)


def write_it_anew(path: Path, trace: bytes) -> None:
    path.write_bytes(another(trace))


def write_it_anew_as_long(path: Path, trace: bytes) -> None:
    path.write_bytes(another(trace)[: path.stat().st_size])


def change_a_letter(path: Path, trace: bytes) -> None:
    data = bytearray(path.read_bytes())
    data[data.index(b"torch/")] ^= 1
    path.write_bytes(data)


def change_the_end_and_go_on(path: Path, trace: bytes) -> None:
    size = path.stat().st_size
    with open(path, "r+b") as file:
        file.seek(size - 3)
        file.write(b"xx\n" + trace[size:])


def cut_it(path: Path, trace: bytes) -> None:
    os.truncate(path, path.stat().st_size // 2)


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        put_a_longer_one_in_its_place,
        write_it_anew,
        write_it_anew_as_long,
        change_a_letter,
        change_the_end_and_go_on,
        cut_it,
    ],
)
def test_another_log_in_its_place_is_read_whole(
    change: Callable[[Path, bytes], None], kept: list[str], recording: Recording, tmp_path: Path
) -> None:
    trace = min((recording("2.13.0", "tour") / "trace").iterdir()).read_bytes()
    path = written(tmp_path / "a.log", trace[: places(trace, (0.5,))[0]])
    assert_as_anew(path)
    change(path, trace)
    assert_as_anew(path)
    assert kept == [str(path)] * 2


def test_one_put_in_its_place_while_it_is_read_is_read_whole(
    kept: list[str], recording: Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = min((recording("2.13.0", "tour") / "trace").iterdir()).read_bytes()
    path = written(tmp_path / "a.log", trace[: places(trace, (0.5,))[0]])
    cachescope.read(path)
    written(path, trace)

    def replaced_first(name: str, reading: Reading) -> bool:
        put_a_longer_one_in_its_place(path, another(trace))
        return read_on_trace_log(name, reading)

    monkeypatch.setitem(logs._READ_ON, "trace", replaced_first)
    here = cachescope.read(path)
    monkeypatch.undo()
    pd.testing.assert_frame_equal(here.lookups, cachescope.read(path, index=False).lookups)


def test_workers_are_not_asked_for_what_has_grown(
    kept: list[str], recording: Recording, tmp_path: Path
) -> None:
    from concurrent.futures import ThreadPoolExecutor

    trace = min((recording("2.13.0", "tour") / "trace").iterdir()).read_bytes()
    path = written(tmp_path / "a.log", trace[: places(trace, (0.5,))[0]])
    cachescope.read(path)
    written(path, trace)
    with ThreadPoolExecutor(1) as executor:
        told = cachescope.read(path, executor=executor)
    assert kept == [str(path)]
    pd.testing.assert_frame_equal(told.lookups, cachescope.read(path, index=False).lookups)
