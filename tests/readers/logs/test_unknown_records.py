"""Where caches were asked and no record has a lookup, a row of problems says so, but not of what AOTInductor compiled."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

import cachescope
from cachescope import Scope
from cachescope.columns import records
from tests.conftest import Archive, Recording
from tests.readers.logs.growing import assert_same, goes_on, in_parts, read_anew
from tests.readings import read_once
from tests.recordings import Recorded

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
    assert_same(in_parts(path, [(0, cut), (cut, None)]), whole)
    assert goes_on(tmp_path / "grown.log", text[:cut], text) == (True, True)
