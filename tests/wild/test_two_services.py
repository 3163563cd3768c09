"""Two programs in one stream of lines, each pid 1 of its container: tests/data/container_scenarios.py.

What was done, of both: a cold start; then one with another option and the other as it was; then both as at first. torch
counted the same in each process. The stream is as `docker compose logs` prints it, where a restarted container keeps its
name, or as `kubectl logs --prefix` does, where a new pod has a new one.
"""

import json
import re
from pathlib import Path

import pytest
from scenarios import COLD, FUSION, HIT, Run, changed
from test_scenarios import lookups_of, with_sorted_fields

import cachescope
from tests.conftest import Recording
from tests.readings import read_once

pytestmark = pytest.mark.slow


CASES = [(version, name) for version in ("2.13.0", "2.6.0") for name in ("two_services", "two_services_pods")]
WAYS = {"trace": ["trace"], "text": ["text"], "all": ["trace", "text", "cache"]}
EXPECTED: dict[str, Run] = {
    "serve": COLD * 2,
    "score": COLD * 2,
    "serve_fusion_off": changed(FUSION) * 2,
    "score_again": HIT * 2,
    "serve_back": HIT * 2,
    "score_once_more": HIT * 2,
}
SERVICES = {
    "serve": ("serve", "serve_fusion_off", "serve_back"),
    "score": ("score", "score_again", "score_once_more"),
}


def read_way(folder: Path, way: str) -> cachescope.Scope:
    return read_once(*(folder / source for source in WAYS[way]))


def steps_of(folder: Path) -> dict[str, list[str]]:
    steps = json.loads((folder / "scenario.json").read_text())["steps"]
    return {step["step"]: step["trace"] for step in steps}


def outcomes(lines: Run) -> list[str]:
    return [" ".join(line.split()[:2]) for line in lines]


@pytest.mark.parametrize("way", ["trace", "all"])
@pytest.mark.parametrize(("version", "name"), CASES)
def test_traces_tell_each_process(version: str, name: str, way: str, recording: Recording) -> None:
    folder = recording(version, name)
    scope = read_way(folder, way)
    told = lookups_of(scope)
    assert len(told) == len(EXPECTED)
    for step, (trace,) in steps_of(folder).items():
        (run,) = (
            run.run for run in scope.runs.itertuples() if any(trace in source for source in run.sources)
        )
        assert told[run] == with_sorted_fields([EXPECTED[step]])[0], step


@pytest.mark.parametrize(("version", "name"), CASES)
def test_a_stream_tells_each_service(version: str, name: str, recording: Recording) -> None:
    folder = recording(version, name)
    scope = read_way(folder, "text")
    evidence = dict(zip(scope.misses["lookup"], scope.misses["evidence"], strict=True))
    keys = keys_of_services(folder)
    for service, steps in SERVICES.items():
        told = []
        for run, lines in enumerate(lookups_of(scope)):
            lookups = scope.lookups[scope.lookups["run"] == run]
            if set(lookups["cache_key"]) <= keys[service]:
                told += zip(lines, map(evidence.get, lookups["lookup"]), strict=True)
        wanted = with_sorted_fields([[line for step in steps for line in EXPECTED[step]]])[0]
        # No run has lookups of both, so none is left out.
        assert outcomes([line for line, _ in told]) == outcomes(wanted), service
        for (line, word), other in zip(told, wanted, strict=True):
            assert line == other or word == "not_known", (service, line, other)


def keys_of_services(folder: Path) -> dict[str, set[str]]:
    """The keys that the lines of each service name; they have no graph in common."""
    keys: dict[str, set[str]] = {service: set() for service in SERVICES}
    for line in (folder / "text" / "all.log").read_text().splitlines():
        service = "serve" if line.startswith(("serve", "[pod/serve")) else "score"
        keys[service].update(re.findall(r"\bfor key (\w+)", line))
    assert keys["serve"] and keys["score"] and not keys["serve"] & keys["score"]
    return keys


@pytest.mark.parametrize("version", ["2.13.0", "2.6.0"])
def test_an_outcome_of_a_restarted_container_is_not_that_of_a_lookup_before(
    version: str, recording: Recording, tmp_path: Path
) -> None:
    lines = (recording(version, "two_services") / "text" / "all.log").read_bytes().splitlines(keepends=True)
    # Of score.py the outcomes of the first process are lost, which missed, and the hash details of those after it, which hit.
    missed = [n for n, line in enumerate(lines) if re.search(rb"^score.*cache miss for key", line)]
    details = [n for n, line in enumerate(lines) if line.startswith(b"score") and b" | V" in line]
    lost = {*missed, *(n for n in details if n > max(missed))}
    (tmp_path / "all.log").write_bytes(b"".join(line for n, line in enumerate(lines) if n not in lost))
    lookups = cachescope.read(tmp_path / "all.log").lookups
    hits = lookups[(lookups["cache"] == "fxgraph") & (lookups["outcome"] == "hit")]
    # serve.py twice, once undone; score.py four times.
    assert len(hits) == 2 + 4
    keys = keys_of_services(recording(version, "two_services"))["score"]
    begun = lookups[lookups["cache_key"].isin(keys)].groupby("cache_key")["outcome"].apply(list)
    assert all(outcomes[0] != "hit" for key, outcomes in begun.items() if key.startswith("f"))


def test_a_copy_of_a_service_is_no_part_of_its_next_process(recording: Recording, tmp_path: Path) -> None:
    folder = recording("2.13.0", "two_services_pods")
    lines = (folder / "text" / "all.log").read_bytes().splitlines(keepends=True)
    copies = [b"[pod/copy-5d9c7b/copy] " + line for line in lines]
    (tmp_path / "all.log").write_bytes(
        b"".join(line for pair in zip(lines, copies, strict=True) for line in pair)
    )
    scope = cachescope.read(folder / "trace", tmp_path / "all.log")
    told = lookups_of(scope)
    assert len(told) == 2 * len(EXPECTED)
    assert {len(lines) for lines in told} == {4}
    for run in scope.runs["run"]:
        assert scope.lookups["time"][scope.lookups["run"] == run].is_monotonic_increasing
