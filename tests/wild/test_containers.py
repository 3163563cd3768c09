"""Containers that were restarted, pid 1 each time, one service or two in one stream of lines: tests/data/container_scenarios.py.

One service: a cold start, another config, the first config again. Of two: a cold start; then one with another option and the
other as it was; then both as at first. torch counted the same in each process. The stream is as `docker compose logs` prints
it, where a restarted container keeps its name, or as `kubectl logs --prefix` does, where a new pod has a new one.
"""

import json
import re
from pathlib import Path

import pytest
from scenarios import Run
from test_scenarios import lookups_of, with_sorted_fields

import cachescope
from cachescope.columns import records
from cachescope.readers.assemble import Tables, assemble
from cachescope.readers.logs.text_log import TEXT
from cachescope.readers.logs.trace_log import TRACE
from cachescope.readers.reading import Reading
from tests.conftest import Recording
from tests.readings import read_by, read_once
from tests.truth import SERVICES, processes

pytestmark = pytest.mark.slow


VERSIONS = ["2.13.0", "2.6.0", "2.10.0", "2.15.0"]


def tables(folder: Path, *, with_traces: bool) -> Tables:
    reading = Reading()
    for path in sorted((folder / "trace").iterdir()) if with_traces else ():
        TRACE.read(str(path), reading)
    TEXT.read(str(folder / "text" / "all.log"), reading)
    return assemble(reading)


def outcomes(found: Tables) -> list[tuple[int, str, str]]:
    return [(row["run"], row["cache"], row["outcome"]) for row in records(found.lookups.frame)]


def counted(folder: Path) -> list[tuple[int, str, str]]:
    """The same by torch's counters: one lookup of each cache in each process."""
    ended = {"hit": "hit", "miss": "full_miss"}
    told = (sorted(one["counted"].elements()) for one in processes(folder, "", "restarted_container"))
    return [(run, what.split()[0], ended[what.split()[1]]) for run, both in enumerate(told) for what in both]


@pytest.mark.parametrize("version", VERSIONS)
def test_traces_tell_the_processes_of_one_pid_apart(version: str, recording: Recording) -> None:
    folder = recording(version, "restarted_container")
    found = tables(folder, with_traces=True)
    assert outcomes(found) == counted(folder)
    assert found.runs.frame["pid"].tolist() == [1, 1, 1]
    # Each has a trace, and its part of the log.
    assert [len(sources) for sources in found.runs.frame["sources"]] == [2, 2, 2]


def test_the_address_of_a_function_tells_them_apart_where_only_the_log_is_there(recording: Recording) -> None:
    folder = recording("2.13.0", "restarted_container")
    found = tables(folder, with_traces=False)
    # On a hit torch prints no details of an FX graph, and nothing shows that it is another process.
    runs = {0: 0, 1: 1, 2: 1}
    assert outcomes(found) == [(runs[run], cache, outcome) for run, cache, outcome in counted(folder)]


def test_what_shows_nothing_stays_one_process(recording: Recording) -> None:
    # 2.15 prints no details of FX graphs at all.
    folder = recording("2.15.0", "restarted_container")
    assert [i[1:] for i in outcomes(tables(folder, with_traces=False))] == [i[1:] for i in counted(folder)]
    assert len(tables(folder, with_traces=False).runs) == 1


def test_a_reset_within_a_process_is_no_restart(recording: Recording) -> None:
    folder = recording("2.13.0", "in_process")
    for path in sorted((folder / "text").iterdir()):
        (process,) = read_by(TEXT.read, str(path)).processes
        ids = [lookup.compile_id for lookup in process.lookups if lookup.cache == "aotautograd"]
        # The same ids again and again: its program calls torch._dynamo.reset() in between.
        assert len(ids) > len(set(ids)) > 0


def test_a_clock_that_goes_back_begins_another_process(recording: Recording, tmp_path: Path) -> None:
    cold = (recording("2.15.0", "cold_warm") / "text" / "00_cold.log").read_bytes()
    hour = re.compile(rb"^([A-Z]\d{4}) (\d\d):", re.MULTILINE)
    # By hand: what is written later says an earlier hour.
    earlier = hour.sub(lambda found: b"%s %02d:" % (found[1], int(found[2]) - 2), cold)
    assert earlier != cold
    (tmp_path / "a.log").write_bytes(cold + earlier)
    reading = read_by(TEXT.read, str(tmp_path / "a.log"))
    assert [len(process.lookups) for process in reading.processes] == [2, 2]
    (tmp_path / "b.log").write_bytes(earlier + cold)
    reading = read_by(TEXT.read, str(tmp_path / "b.log"))
    assert [len(process.lookups) for process in reading.processes] == [4]


CASES = [(version, name) for version in ("2.13.0", "2.6.0") for name in ("two_services", "two_services_pods")]
WAYS = {"trace": ["trace"], "text": ["text"], "all": ["trace", "text", "cache"]}
STEPS = {
    "serve": ("serve", "serve_fusion_off", "serve_back"),
    "score": ("score", "score_again", "score_once_more"),
}


def read_way(folder: Path, way: str) -> cachescope.Scope:
    return read_once(*(folder / source for source in WAYS[way]))


def steps_of(folder: Path) -> dict[str, list[str]]:
    steps = json.loads((folder / "scenario.json").read_text())["steps"]
    return {step["step"]: step["trace"] for step in steps}


def outcomes_said(lines: Run) -> list[str]:
    return [" ".join(line.split()[:2]) for line in lines]


@pytest.mark.parametrize("way", ["trace", "all"])
@pytest.mark.parametrize(("version", "name"), CASES)
def test_traces_tell_each_process(version: str, name: str, way: str, recording: Recording) -> None:
    folder = recording(version, name)
    scope = read_way(folder, way)
    told = lookups_of(scope)
    assert len(told) == len(SERVICES)
    for step, (trace,) in steps_of(folder).items():
        runs = (run for run in scope.runs.itertuples() if any(trace in source for source in run.sources))
        (run,) = (run.run for run in runs)
        assert told[run] == with_sorted_fields([SERVICES[step]])[0], step


@pytest.mark.parametrize(("version", "name"), CASES)
def test_a_stream_tells_each_service(version: str, name: str, recording: Recording) -> None:
    folder = recording(version, name)
    scope = read_way(folder, "text")
    evidence = dict(zip(scope.misses["lookup"], scope.misses["evidence"], strict=True))
    keys = keys_of_services(folder)
    for service, steps in STEPS.items():
        told = []
        for run, lines in enumerate(lookups_of(scope)):
            lookups = scope.lookups[scope.lookups["run"] == run]
            if set(lookups["cache_key"]) <= keys[service]:
                told += zip(lines, map(evidence.get, lookups["lookup"]), strict=True)
        wanted = with_sorted_fields([[line for step in steps for line in SERVICES[step]]])[0]
        # No run has lookups of both, so none is left out.
        assert outcomes_said([line for line, _ in told]) == outcomes_said(wanted), service
        for (line, word), other in zip(told, wanted, strict=True):
            assert line == other or word == "not_known", (service, line, other)


def keys_of_services(folder: Path) -> dict[str, set[str]]:
    """The keys that the lines of each service name; they have no graph in common."""
    keys: dict[str, set[str]] = {service: set() for service in STEPS}
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
    # Of score.py the outcomes_said of the first process are lost, which missed, and the hash details of those after it, which hit.
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
    assert all(outcomes_said[0] != "hit" for key, outcomes_said in begun.items() if key.startswith("f"))


def test_a_copy_of_a_service_is_no_part_of_its_next_process(recording: Recording, tmp_path: Path) -> None:
    folder = recording("2.13.0", "two_services_pods")
    lines = (folder / "text" / "all.log").read_bytes().splitlines(keepends=True)
    copies = [b"[pod/copy-5d9c7b/copy] " + line for line in lines]
    pairs = zip(lines, copies, strict=True)
    (tmp_path / "all.log").write_bytes(b"".join(line for pair in pairs for line in pair))
    scope = cachescope.read(folder / "trace", tmp_path / "all.log")
    told = lookups_of(scope)
    assert len(told) == 2 * len(SERVICES)
    assert {len(lines) for lines in told} == {4}
    for run in scope.runs["run"]:
        assert scope.lookups["time"][scope.lookups["run"] == run].is_monotonic_increasing
