"""A trace that has grown is read from where it ended, and gives what reading it anew gives, wherever it was cut."""

import os
import random
import re
from itertools import pairwise
from pathlib import Path

import pandas as pd
import pytest

import cachescope
from cachescope.readers.logs.log_events import LogKind
from cachescope.readers.reading import Reading
from tests.conftest import Recording
from tests.readers.logs.growing import (
    TRACES,
    assert_as_anew,
    assert_same,
    can_go_on,
    folded,
    goes_on,
    keep,
    one_trace,
    read_anew,
    read_on,
    written,
)
from tests.readers.logs.test_trace_process import (
    IDS,
    NOON_NS,
    artifact,
    begins,
    disabled,
    event,
    looked_up,
    metrics,
    prefix,
    record,
)

RECORD = re.compile(rb"\n(?![\t])")


@pytest.fixture(scope="module", params=TRACES, ids=" ".join)
def trace(request: pytest.FixtureRequest, recording: Recording) -> bytes:
    return one_trace(recording(*request.param))


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
    before = keep(path)
    for last, cut in pairwise([*cuts, len(trace)]):
        written(path, trace[:cut])
        is_whole = trace[last - 1 : last] == b"\n" and trace[last : last + 1] != b"\t"
        on = read_on(path, before)
        assert (on is not None) == is_whole
        before = keep(path) if on is None else on
        assert_same(folded(path, before), read_anew(path))


def test_a_log_that_ends_within_a_record_has_no_way_on(trace: bytes, tmp_path: Path) -> None:
    ends = ends_of_records(trace)
    # The longest record, where it is cut.
    start, end = max(pairwise(ends), key=lambda pair: pair[1] - pair[0])
    line_end = trace.index(b"\n", start) + 1
    assert trace[line_end : line_end + 1] == b"\t"
    for cut in (start + 1, line_end - 1, line_end, line_end + 1, (line_end + end) // 2, end - 1):
        assert goes_on(tmp_path / "a.log", trace[:cut], trace)[1] is False


def places(data: bytes, shares: tuple[float, ...]) -> list[int]:
    ends = ends_of_records(data)
    return [ends[int(share * (len(ends) - 1))] for share in shares]


@pytest.mark.slow
def test_a_job_that_is_followed_is_read_whole_once(kept: list[str], trace: bytes, tmp_path: Path) -> None:
    """A look in mid-record costs nothing later."""
    path = tmp_path / "a.log"
    first, second, third = places(trace, (0.2, 0.5, 0.9))
    for cut in (first, second + 40, third, len(trace)):
        assert_as_anew(written(path, trace[:cut]))
    assert kept == [str(path)]


def another(data: bytes) -> bytes:
    """What another process would have written, byte for byte as long."""
    return re.sub(rb"(?m)^([VIWEC]\d{4} \d\d:)(\d)", rb"\g<1>5", data)


def test_one_put_in_its_place_while_it_is_read_is_read_whole(
    kept: list[str], recording: Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = min((recording("2.13.0", "tour") / "trace").iterdir()).read_bytes()
    path = written(tmp_path / "a.log", trace[: places(trace, (0.5,))[0]])
    cachescope.read(path)
    written(path, trace)

    read_on = LogKind.read_on

    def replaced_first(self: LogKind, name: str, reading: Reading) -> bool:
        path.with_name("other").write_bytes(another(trace))
        os.replace(path.with_name("other"), path)
        return read_on(self, name, reading)

    monkeypatch.setattr(LogKind, "read_on", replaced_first)
    here = cachescope.read(path)
    monkeypatch.undo()
    pd.testing.assert_frame_equal(here.lookups, cachescope.read(path, index=False).lookups)


OTHER = {"frame_id": 1, "frame_compile_id": 0}
FRAME = {"name": "f", "line": 3, "filename": 2}


def aot(outcome: str, second: float, ids: dict[str, int] | None = None, **told: object) -> str:
    return artifact(f"aotautograd_cache_{outcome}", {"key": "a" + "b" * 51, **told}, second, ids)


# What a record means may depend on those before it: the compile of an id, a text by its number, the clock.
RECORDS = [
    looked_up("miss", 1),
    record({"str": ["/mine.py", 2]}, None, 2),
    begins(3, stack=[FRAME]),
    aot("miss", 4, cache_event_time=NOON_NS + 4 * 10**9),
    looked_up("miss", 5),
    looked_up("miss", 6, ids=OTHER),
    begins(7, OTHER, stack=[FRAME]),
    metrics(8),
    looked_up("hit", 9, ids=OTHER),
    metrics(10, OTHER, fail_type="E", fail_reason="why"),
    begins(11),
    looked_up("hit", 12),
    looked_up("hit", 13, ids={**IDS, "rank": 3}),
    aot("hit", 14),
    artifact("fx_graph_cache_bypass", {"cache_event_time": NOON_NS, "cache_bypass_reason": "no"}, 15),
    event(16, 3, args={"cache_state": "bypass", "cache_event_time": NOON_NS}),
    record({"inductor_output_code": {"filename": "/cache/ab/cabc.py"}}, "text", 17),
    metrics(18, pytorch_version="2.13.0", python_version="3.12.1"),
    aot("miss", 19, OTHER),
    metrics(20, OTHER, kind="bwd_compilation_metrics", fail_type="F"),
    artifact("torch_version", {"pytorch_version": "2.14.0"}, 21),
    disabled(22, 2),
    looked_up("hit", 23, payload={"key": 3}),
    "no record\n",
    looked_up("miss", 24, ids={"frame_id": 2, "frame_compile_id": 0}),
    # It may have ended as well, with no record of it.
    metrics(25, OTHER),
]


def made(*records: str) -> bytes:
    return "".join(records).encode()


@pytest.mark.parametrize("cut", range(1, len(RECORDS) + 1))
def test_a_trace_made_by_hand_goes_on_from_any_record(cut: int, tmp_path: Path) -> None:
    whole = made(*RECORDS, looked_up("hit", 26))
    assert goes_on(tmp_path / "a.log", made(*RECORDS[:cut]), whole) == (True, True)


def test_where_nothing_more_is_there_or_a_payload_continues_there_is_no_way_on(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    before = keep(written(path, made(RECORDS[0])))
    assert can_go_on(before)
    assert read_on(path, before) is None
    assert read_on(written(path, (RECORDS[0] + "\tmore of the payload\n").encode()), before) is None


def test_the_year_of_a_log_is_that_of_its_file_until_an_event_shows_it(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    first = made(*RECORDS[:3])
    assert read_anew(written(path, first)).processes[0].start_time_ns is not None
    year = 365 * 86_400
    stamped = f'{prefix(30)}{{"chromium_event": {{}}}}\n\t{{"name": "x", "ts": {(NOON_NS // 10**9 + 30 - 2 * year) * 10**6}.0}}\n'
    later = stamped.replace(str(NOON_NS // 10**9 + 30 - 2 * year), str(NOON_NS // 10**9 + 30))
    whole = made(*RECORDS[:3], stamped, later)
    assert goes_on(path, first, whole) == (True, True)
    assert read_anew(path).processes[0].start_time_ns == NOON_NS + 10**9 - 2 * year * 10**9
    # And one that was shown stays, however the log goes on.
    assert goes_on(path, made(*RECORDS[:3], stamped), whole) == (True, True)
