"""A trace that is read in parts gives what reading it in one gives: every row, every problem, in the same order."""

import random
import re
from itertools import pairwise
from pathlib import Path

import pytest

from cachescope.errors import RecordError
from cachescope.readers.logs import trace_records
from cachescope.readers.logs.trace_log import TRACE, _record_behind, parts_of_trace
from cachescope.readers.reading import Reading
from tests.conftest import Recording
from tests.readers.logs.growing import assert_same, in_parts, one_trace, read_anew, written

pytestmark = pytest.mark.slow  # megabytes, read again and again

# A record is a line that begins with no tab, and the lines behind it that do.
BORDER = re.compile(rb"(?<=\n)(?!\t)(?!\Z)")
Places = list[tuple[int, int | None]]


@pytest.fixture(scope="module")
def tour(recording: Recording) -> bytes:
    """Six processes in one log: hits, misses, compiles of equal ids, interned strings that are told anew."""
    return one_trace(recording("2.13.0", "tour"))


def records_of(data: bytes) -> list[bytes]:
    ends = [0, *(found.start() for found in BORDER.finditer(data)), len(data)]
    return [data[start:end] for start, end in pairwise(ends)]


def places_of(*borders: int) -> Places:
    return list(pairwise([0, *sorted(set(borders) - {0}), None]))  # type: ignore[arg-type]


def assert_parts_tell_the_same(data: bytes, path: Path, *sizes: int) -> Reading:
    """Cut in parts of some sizes, and in a part for each of some of its records."""
    whole = read_anew(written(path, data))
    for size in sizes:
        places = parts_of_trace(str(path), size)
        assert len(places) > 1
        assert_same(in_parts(path, places), whole)
    borders = [match.start() for match in BORDER.finditer(data)]
    assert_same(in_parts(path, places_of(*random.Random(1).sample(borders, min(40, len(borders))))), whole)
    return whole


def test_lines_some_of_which_end_as_on_windows(tour: bytes, tmp_path: Path) -> None:
    half = tour.index(b"\n", len(tour) // 2) + 1
    data = tour[:half] + tour[half:].replace(b"\n", b"\r\n")
    assert_parts_tell_the_same(data, tmp_path / "t.log", 300_000)


def test_wrong_values_of_every_kind_are_told_in_their_order(tour: bytes, tmp_path: Path) -> None:
    data = tour.replace(b'"frame_id": 1', b'"rank": true, "frame_id": "1"')
    data = data.replace(b'"name": "forward"', b'"name": 7')
    data = data.replace(b'"components": ["', b'"components": ["no hash detail", "')
    whole = assert_parts_tell_the_same(data, tmp_path / "t.log", 200_000)
    assert {problem.kind for problem in whole.problems} >= {"bad_value", "hash_detail"}
    path = tmp_path / "t.log"
    errors = []
    for read in (
        lambda: TRACE.read(str(path), Reading(strict=True)),
        lambda: in_parts(path, parts_of_trace(str(path), 200_000), strict=True),
    ):
        with pytest.raises(RecordError) as caught:
            read()
        errors.append((caught.value.where, caught.value.kind, str(caught.value)))
    assert errors[0] == errors[1]


def test_a_log_may_be_cut_at_any_byte_around_a_border(tour: bytes, tmp_path: Path) -> None:
    path = written(tmp_path / "t.log", tour)
    whole = read_anew(path)
    chance = random.Random(0)
    borders = chance.sample([match.start() for match in BORDER.finditer(tour)], 4)
    for border in borders:
        for place in range(border - 3, border + 3):
            # Two parts of which the first ends at this byte or behind it.
            (_, found), _ = parts = parts_from(path, place)
            assert found == next(i.start() for i in BORDER.finditer(tour, place - 1) if i.start() >= place)
            if place in (border - 1, border + 1):
                assert_same(in_parts(path, parts), whole)


def parts_from(path: Path, place: int) -> Places:
    with path.open("rb") as stream:
        return places_of(_record_behind(stream, place) or 0)


def test_a_record_that_is_too_long_is_told_once_wherever_the_parts_begin(
    tour: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_records, "BLOCK_BYTES", 4096)
    monkeypatch.setattr(trace_records, "_MOST_BYTES_OF_A_RECORD", 30_000)
    whole = assert_parts_tell_the_same(tour, tmp_path / "t.log", 200_000)
    too_long = [record for record in records_of(tour) if len(record) > 30_000]
    assert sum(problem.count for problem in whole.problems if problem.kind == "limit") == len(too_long) > 0


def test_a_trace_without_the_time_of_an_event_has_the_year_of_its_file(tour: bytes, tmp_path: Path) -> None:
    no_times = tour.replace(b'"ts": ', b'"st": ')
    whole = assert_parts_tell_the_same(no_times, tmp_path / "t.log", 200_000)
    assert whole.processes[0].start_time is not None
    # The first half has none, the second has.
    later = no_times[: len(tour) // 2] + tour[len(tour) // 2 :]
    assert_parts_tell_the_same(later, tmp_path / "u.log", 200_000)


def test_a_payload_without_end_is_in_one_part(tour: bytes, tmp_path: Path) -> None:
    path = tmp_path / "t.log"
    path.write_bytes(tour + b"\t" + b"x" * 2_000_000 + b"\n" + tour)
    places = parts_of_trace(str(path), 100_000)
    assert not any(len(tour) <= start <= len(tour) + 2_000_000 for start, _ in places[1:])
    assert_same(in_parts(path, places), read_anew(path))
