"""A container that was restarted twice, pid 1 each time, with one stream of lines: tests/data/container_scenarios.py.

What was done: a cold start, another config, the first config again. torch's counters of each process say the same.
"""

import json
import re
from pathlib import Path

import pytest

from cachescope.columns import records
from cachescope.readers.assemble import Tables, assemble
from cachescope.readers.logs.text_log import read_text_log
from cachescope.readers.logs.trace_log import read_trace_log
from cachescope.readers.reading import Reading
from tests.conftest import Recording

pytestmark = pytest.mark.slow


VERSIONS = ["2.13.0", "2.6.0", "2.10.0", "2.15.0"]


def tables(folder: Path, *, with_traces: bool) -> Tables:
    reading = Reading()
    for path in sorted((folder / "trace").iterdir()) if with_traces else ():
        read_trace_log(str(path), reading)
    read_text_log(str(folder / "text" / "all.log"), reading)
    return assemble(reading)


def outcomes(found: Tables) -> list[tuple[int, str, str]]:
    return [(row["run"], row["cache"], row["outcome"]) for row in records(found.lookups.frame)]


def counted(folder: Path) -> list[tuple[int, str, str]]:
    """The same by torch's counters: one lookup of each cache in each process."""
    found = []
    for run, name in enumerate(("cold", "restarted", "restarted_again")):
        counters = json.loads((folder / "steps" / f"{name}.json").read_text())["counters"]
        hit = counters["aot_autograd"].get("autograd_cache_hit", 0)
        assert counters["inductor"].get("fxgraph_cache_hit", 0) == hit
        found += [(run, cache, "hit" if hit else "full_miss") for cache in ("aotautograd", "fxgraph")]
    return found


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
    assert [row[1:] for row in outcomes(tables(folder, with_traces=False))] == [
        row[1:] for row in counted(folder)
    ]
    assert len(tables(folder, with_traces=False).runs) == 1


def test_a_reset_within_a_process_is_no_restart(recording: Recording) -> None:
    folder = recording("2.13.0", "in_process")
    for path in sorted((folder / "text").iterdir()):
        reading = Reading()
        read_text_log(str(path), reading)
        (process,) = reading.processes
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
    reading = Reading()
    read_text_log(str(tmp_path / "a.log"), reading)
    assert [len(process.lookups) for process in reading.processes] == [2, 2]
    (tmp_path / "b.log").write_bytes(earlier + cold)
    reading = Reading()
    read_text_log(str(tmp_path / "b.log"), reading)
    assert [len(process.lookups) for process in reading.processes] == [4]
