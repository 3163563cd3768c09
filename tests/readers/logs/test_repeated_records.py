"""Logs that hold records or lines twice: appended to themselves, delivered twice, copied while they grew. Nothing was looked up again.

And caches that were asked where no record has a lookup: a problem says so, but not of what AOTInductor compiled.
"""

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import pandas as pd
import pytest

import cachescope
from cachescope import Scope
from cachescope.columns import records
from cachescope.readers.logs import many_logs
from cachescope.readers.logs.trace_log import parts_of_trace
from tests.conftest import Archive, Recording
from tests.readers.logs import growing
from tests.readers.logs.growing import goes_on, in_parts, read_anew
from tests.readings import read_once
from tests.recordings import Recorded

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


VERSIONS = ("2.6.0", "2.10.0", "2.13.0", "2.15.0")
NAMES = {"fxgraph": b'"name": "fx_graph_cache_', "aotautograd": b'"name": "aotautograd_cache_'}
BOTH = ["aotautograd", "fxgraph"]


def renamed(trace: Path, *caches: str) -> bytes:
    """A trace whose artifacts of some caches have other names; torch would have renamed them in the payload's record alone."""
    text = trace.read_bytes()
    for cache in caches:
        text = text.replace(b'{"artifact": {' + NAMES[cache], b'{"artifact": {"name": "renamed_')
    return text


def asked(path: Path) -> list[str]:
    return asked_of(cachescope.read(path))


def asked_of(scope: cachescope.Scope) -> list[str]:
    """The caches that a row of problems names."""
    problems = scope.problems
    return [text.split(" ")[0] for text in problems[problems["kind"] == "no_lookups"]["message"]]


def cold(recording: Recording, version: str, name: str = "cold_warm") -> Path:
    """The trace of the first process, which compiles."""
    return max((recording(version, name) / "trace").iterdir(), key=lambda path: path.stat().st_size)


@pytest.mark.parametrize("version", VERSIONS)
def test_caches_without_a_lookup_are_named(version: str, recording: Recording, tmp_path: Path) -> None:
    trace = cold(recording, version)
    for caches in ([], ["fxgraph"], ["aotautograd"], BOTH):
        path = tmp_path / f"{len(caches)}{''.join(caches)}.log"
        path.write_bytes(renamed(trace, *caches))
        assert asked(path) == caches


@pytest.mark.parametrize("version", VERSIONS)
def test_caches_that_were_not_asked_are_no_misses(version: str, recording: Recording, tmp_path: Path) -> None:
    """What torch bypassed, and a cache that is off, without any record of it."""
    path = tmp_path / "bypassed.log"
    traces = (recording(version, "bypass_custom_pass") / "trace").iterdir()
    bypassed = [one for one in traces if set(cachescope.read(one).lookups["outcome"]) == {"bypass"}]
    assert len(bypassed) == 2
    for trace in bypassed:
        path.write_bytes(renamed(trace, *BOTH))
        assert asked(path) == []
    path = tmp_path / "off.log"
    path.write_bytes(renamed(cold(recording, version, "cold_warm_fx"), "aotautograd"))
    assert asked(path) == []


def test_nothing_is_said_of_a_log_that_lost_its_beginning(recording: Recording, tmp_path: Path) -> None:
    """Cut behind the artifacts of its only compile, before the event that ends it."""
    text = cold(recording, "2.13.0").read_bytes()
    last = max(text.rindex(name) for name in NAMES.values())
    start = text.index(b"\nV", last) + 1
    assert b'"cache_state": "miss"' in text[start:] and b"dynamo_start" not in text[start:]
    path = tmp_path / "rest.log"
    path.write_bytes(text[start:])
    assert asked(path) == []


def check_no_lookup_is_lacking_that_an_event_tells_of(recorded: Recorded) -> None:
    assert asked_of(read_once(recorded.folder)) == []


Trace = Callable[[str, str], Path]


@pytest.fixture
def trace_of(archive: Archive) -> Trace:
    """The trace of one process: ``trace_of("2.13.0", "package")``."""
    return lambda version, way: next((archive(f"ahead_of_time/{version}") / version / way).iterdir())


def told(scope: Scope) -> list[tuple[str, str, bool | None, str, str]]:
    """What is said of each lookup that missed."""
    joined = scope.lookups.merge(scope.misses, on="lookup", suffixes=("", "_of_miss"))
    columns = ["outcome", "bypass_reason", "aot_mode", "verdict", "kind"]
    return [tuple(row.values()) for row in records(joined, columns)]


AHEAD = ("disabled", "cache not enabled", True, "disabled", "AOTInductor")
OFF = ("disabled", "cache not enabled", None, "disabled", "")


@pytest.mark.parametrize(("way", "expected"), [("package", [AHEAD]), ("export", []), ("both", [AHEAD, OFF])])
@pytest.mark.parametrize("version", ["2.13.0", "2.15.0"])
def test_a_graph_compiled_ahead_of_time_is_known_by_the_code_that_was_written(
    trace_of: Trace, version: str, way: str, expected: list[object]
) -> None:
    assert told(cachescope.read(trace_of(version, way))) == expected


@pytest.mark.parametrize(("way", "expected"), [("package", [True]), ("both", [True, None])])
@pytest.mark.parametrize("version", ["2.10.0", "2.13.0", "2.15.0"])
def test_a_text_log_tells_it_where_inductors_logger_is_at_debug(
    trace_of: Trace, version: str, way: str, expected: list[bool | None]
) -> None:
    """And a lookup that the trace has as well is one."""
    trace = trace_of(version, way)
    log = trace.parents[1] / f"{way}.log"
    for paths in ((log,), (trace, log)):
        scope = cachescope.read(*paths)
        found = [(outcome, is_aot, verdict, kind) for outcome, _, is_aot, verdict, kind in told(scope)]
        assert found == [("disabled", one, "disabled", "AOTInductor" if one else "") for one in expected]
        assert len(scope.runs) == 1


@pytest.mark.parametrize("way", ["package", "both"])
def test_torch_2_6_says_nothing_of_it_in_a_text_log(trace_of: Trace, way: str) -> None:
    log = trace_of("2.6.0", way).parents[1] / f"{way}.log"
    assert cachescope.read(log).lookups.empty and log.stat().st_size > 0


def test_a_torch_that_does_not_record_it_is_not_said_to_have_done_it(trace_of: Trace) -> None:
    assert told(cachescope.read(trace_of("2.6.0", "package"))) == [OFF]


def test_no_switch_is_blamed(trace_of: Trace) -> None:
    scope = cachescope.read(trace_of("2.13.0", "both"))
    advice = dict(zip(scope.causes["kind"], scope.causes["advice"], strict=True))
    assert "FORCE_DISABLE" not in advice["AOTInductor"] and "FORCE_DISABLE" in advice[""]
    text = str(scope.explain())
    assert "AOTInductor" in text


@pytest.mark.parametrize("version", ["2.13.0", "2.15.0"])
def test_what_is_no_compile_has_no_compile_id(trace_of: Trace, version: str) -> None:
    """Torch prints it as None."""
    (compile_id,) = cachescope.read(trace_of(version, "package")).lookups["compile_id"]
    assert pd.isna(compile_id)


def test_what_is_ahead_of_time_is_the_same_read_in_two_steps(trace_of: Trace, tmp_path: Path) -> None:
    """Cut between the code and the event that ends its compile."""
    path = trace_of("2.13.0", "both")
    text = path.read_bytes()
    cut = text.index(b"\nV", text.index(b'"inductor_aot_wrapper_code"')) + 1
    assert text.index(b'"cache_state": "disabled"') > cut
    whole = read_anew(path)
    assert [one.aot_mode for one in whole.processes[0].lookups] == [True, None]
    growing.assert_same(in_parts(path, [(0, cut), (cut, None)]), whole)
    assert goes_on(tmp_path / "grown.log", text[:cut], text) == (True, True)
