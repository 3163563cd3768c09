"""Logs that hold records or lines twice: appended to themselves, delivered twice, copied while they grew. Nothing was looked up again."""

import re
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import pandas as pd
import pytest

import cachescope
from cachescope.readers.logs import many_logs
from cachescope.readers.logs.trace_log import parts_of_trace
from tests.conftest import Recording
from tests.readers.logs.growing import goes_on

_FRAMES = ("lookups", "misses", "compiles", "phases")


@pytest.fixture(
    params=[("2.13.0", "cold_warm"), ("2.6.0", "config_flip"), ("2.13.0", "force_disabled")], ids=" ".join
)
def trace(request: pytest.FixtureRequest, recording: Recording) -> bytes:
    """The longest trace of a recording."""
    traces = (path.read_bytes() for path in (recording(*request.param) / "trace").iterdir())
    return max(traces, key=len)


def read(folder: Path, *traces: bytes) -> cachescope.Scope:
    folder.mkdir()
    for number, data in enumerate(traces):
        (folder / f"{number}.log").write_bytes(data)
    return cachescope.read(folder, index=False)


def assert_same(once: cachescope.Scope, other: cachescope.Scope, *facts: str) -> None:
    assert len(once.lookups) and len(once.phases)
    for name in _FRAMES:
        pd.testing.assert_frame_equal(getattr(once, name), getattr(other, name))
    names = ["pid", "start_time", "is_cut", "torch_version", *facts]
    pd.testing.assert_frame_equal(once.runs[names], other.runs[names])


def record_ends(data: bytes) -> list[int]:
    return [at + 1 for at in range(len(data) - 1) if data[at] == 10 and data[at + 1] != 9]


def test_a_trace_appended_to_itself_says_nothing_new(trace: bytes, tmp_path: Path) -> None:
    assert_same(read(tmp_path / "once", trace), read(tmp_path / "twice", trace + trace), "end_time")


def test_a_part_that_was_delivered_twice_says_nothing_new(trace: bytes, tmp_path: Path) -> None:
    ends = record_ends(trace)
    part = trace[: ends[len(ends) * 2 // 3]]
    once = read(tmp_path / "once", trace)
    assert_same(once, read(tmp_path / "before", part + trace), "end_time")
    after = read(tmp_path / "after", trace + part)
    assert_same(once, after)
    # No record of another kind than these says how long the process ran on.
    assert after.runs["end_time"][0] >= once.lookups["end_time"].max()


def test_each_record_twice_is_one(trace: bytes, tmp_path: Path) -> None:
    ends = [0, *record_ends(trace), len(trace)]
    doubled = b"".join(2 * trace[start:end] for start, end in pairwise(ends))
    assert_same(read(tmp_path / "once", trace), read(tmp_path / "twice", doubled))


@pytest.mark.slow
def test_parts_of_a_trace_appended_to_itself_say_nothing_new(
    trace: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    once = read(tmp_path / "once", trace)
    twice = tmp_path / "twice.log"
    twice.write_bytes(trace + trace)
    monkeypatch.setattr(many_logs, "_PART_BYTES", len(trace) // 3)
    assert len(parts_of_trace(str(twice), len(trace) // 3)) > 3
    with ThreadPoolExecutor(2) as workers:
        assert_same(once, cachescope.read(twice, executor=workers, index=False))


def test_a_copy_of_a_trace_is_no_other_process(trace: bytes, tmp_path: Path) -> None:
    once = read(tmp_path / "once", trace)
    assert_same(once, read(tmp_path / "copy", trace, trace), "end_time")
    assert_same(once, read(tmp_path / "of twice", trace, trace + trace))


@pytest.mark.parametrize("share", [0.7, *(pytest.param(one, marks=pytest.mark.slow) for one in (0.4, 0.95))])
def test_a_copy_of_a_trace_that_grew_is_no_other_process(trace: bytes, share: float, tmp_path: Path) -> None:
    """Whichever of the two is read first."""
    once = read(tmp_path / "once", trace)
    older = trace[: round(len(trace) * share)]
    assert_same(once, read(tmp_path / "behind", trace, older), "end_time")
    assert_same(once, read(tmp_path / "before", older, trace), "end_time")


def test_two_traces_of_one_pid_that_began_apart_are_two_processes(trace: bytes, tmp_path: Path) -> None:
    (first, *_) = trace.split(b" ", 2)[1:2]
    later = trace.replace(first, first[:-6] + b"%06d" % ((int(first[-6:]) + 1) % 10**6), 1)
    assert later != trace
    assert len(read(tmp_path / "two", trace, later).runs) == 2


def test_a_trace_that_grows_by_what_it_holds_is_as_read_anew(trace: bytes, tmp_path: Path) -> None:
    assert goes_on(tmp_path / "a.log", trace, trace * 2) == (True, True)


TEXTS = [("2.13.0", "tour"), ("2.13.0", "bypass_custom_pass"), ("2.6.0", "dynamic_guards")]
_MESSAGE = re.compile(rb"\] (?:FX|fx graph|AOTAutograd|Autograd|Bypassing|Writing)[^\n]*\n$")
_SEEN = ["cache", "cache_key", "outcome", "compile_id", "bypass_reason", "guards_expr", "time"]


@pytest.fixture(params=TEXTS, ids=" ".join)
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
def test_lines_that_were_delivered_twice_are_one(lines: list[bytes], tmp_path: Path) -> None:
    """A log that was appended to itself, a part of one, and each line of torch's twice."""
    doubled = [line for line in lines for _ in range(2 if _MESSAGE.search(line) else 1)]
    assert len(doubled) > len(lines)
    once, verdicts = seen(tmp_path / "once.log", lines)
    for name, repeated in (("twice", lines + lines), ("doubled", doubled)):
        again, verdicts_of_again = seen(tmp_path / f"{name}.log", repeated)
        pd.testing.assert_frame_equal(once, again)
        assert verdicts == verdicts_of_again
    part, _ = seen(tmp_path / "part.log", lines[: len(lines) // 2] + lines)
    pd.testing.assert_frame_equal(once, part)


def test_a_text_log_that_grows_by_its_last_line_again_has_no_more_lookups(
    recording: Recording, tmp_path: Path
) -> None:
    """One that grows by all that it holds is read anew."""
    data = min((recording("2.13.0", "tour") / "text").iterdir()).read_bytes()
    line = data.splitlines(keepends=True)[-1]
    assert _MESSAGE.search(line)
    assert goes_on(tmp_path / "a.log", data, data * 2) == (True, False)
    assert goes_on(tmp_path / "a.log", data, data + line) == (True, True)
