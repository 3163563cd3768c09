"""Where events say that caches were asked and no record has a lookup, a row of problems says so: torch may have renamed its artifacts.

The traces are real; the names of their artifacts are changed by hand.
"""

from pathlib import Path

import pytest

import cachescope
from tests.conftest import Recording
from tests.readers.logs.growing import assert_same, goes_on, in_parts, read_anew, written
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
def test_caches_that_were_not_asked_are_not_missed(
    version: str, recording: Recording, tmp_path: Path
) -> None:
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


@pytest.mark.slow
@pytest.mark.parametrize("caches", [[], ["fxgraph"], BOTH], ids=len)
def test_read_in_two_steps_it_is_the_same(caches: list[str], recording: Recording, tmp_path: Path) -> None:
    text = renamed(cold(recording, "2.13.0"), *caches)
    path = written(tmp_path / "whole.log", text)
    whole = read_anew(path)
    starts = [at + 1 for at in range(len(text)) if text.startswith(b"\nV", at)]
    for cut in starts[1 :: max(1, len(starts) // 12)]:
        assert_same(in_parts(path, [(0, cut), (cut, None)]), whole)
        assert goes_on(tmp_path / f"{cut}.log", text[:cut], text) == (True, True)
    assert [problem.kind for problem in whole.problems] == ["no_lookups"] * len(caches)


def check_no_lookup_is_lacking_that_an_event_tells_of(recorded: Recorded) -> None:
    assert asked_of(read_once(recorded.folder)) == []
