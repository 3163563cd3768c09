"""``cachescope time``: on a pipe, as JSON, hidden, hostile; and held against a clock outside of torch."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest

import cachescope
from cachescope.grouping import by_key
from tests.cli.conftest import Run
from tests.conftest import Recording
from tests.data.packing import free_port
from tests.programs import ran

pytestmark = pytest.mark.slow

PROGRAM = """
import json, sys, time
import torch

def step(x):
    for _ in range(20):
        x = torch.nn.functional.gelu(x @ x).softmax(-1)
    return x

compiled = torch.compile(step)
x = torch.randn(16, 16)
began = time.perf_counter()
compiled(x)
print(json.dumps(time.perf_counter() - began))
"""


@pytest.fixture
def training(recording: Recording) -> Path:
    return recording("2.13.0", "training") / "trace"


def test_a_viewers_file_has_every_event_and_every_lookup(
    run: Run, recording: Recording, tmp_path: Path
) -> None:
    traces = recording("2.13.0", "four_ranks") / "trace"
    done = run("time", traces, "--perfetto", tmp_path / "trace.json", "--json")
    written = json.loads((tmp_path / "trace.json").read_text())
    slices = [one for one in written["traceEvents"] if one["ph"] == "X"]
    events = [one for one in slices if one["cat"] not in ("aotautograd", "fxgraph")]
    # Torch's own payloads: the lines behind tabs.
    records = [
        re.split(r"\n(?!\t)", one)[0]
        for path in traces.iterdir()
        for one in path.read_text().split('{"chromium_event"')[1:]
    ]
    payloads = [json.loads(one.partition("\n")[2]) for one in records]
    assert Counter(i["name"] for i in events) == Counter(i["name"] for i in payloads if i["ph"] == "B")
    assert len(slices) - len(events) == len(cachescope.read(traces).lookups)
    for row in by_key(((one["pid"], one["tid"]), one) for one in slices).values():
        ends: list[float] = []
        for one in row:
            ends = [end for end in ends if end > one["ts"] + 0.001]
            assert not ends or one["ts"] + one["dur"] <= ends[-1] + 0.001
            ends.append(one["ts"] + one["dur"])
    # Together as long as the events of each run are in the answer.
    for one in done.json["time"]:
        mine = [event for event in events if event["pid"] == one["run"] + 1]
        outer = [event for event in mine if event["name"] == "dynamo"]
        assert sum(event["dur"] for event in outer) * 1000 == pytest.approx(one["total_ns"], rel=0.01)


def head_of(rows: list[str]) -> str:
    """The head of the first table, but for its shares."""
    return " ".join(next(row for row in rows if row.startswith(" phase")).replace("share", "").split())


def test_each_run_has_its_column_and_its_total(run: Run, training: Path) -> None:
    done = run("time", training)
    assert (done.status, done.err) == (0, "")
    rows = done.out.split("\n")
    assert head_of(rows) == "phase run 0 run 1 run 2 run 3"
    (compiler,) = (row for row in rows if row.startswith(" C++ compiler"))
    assert compiler.split()[2:6] == ["1.4", "s", "12", "%"]
    (total,) = (row for row in rows if row.startswith(" in all"))
    assert total.replace("–", "").split() == ["in", "all", "11.1", "s", "1.8", "s", "2.4", "s", "1.7", "s"]
    text = done.flat
    assert "run 0 (pid 5270, 15:32:27): hits in all caches could still save about 2.4 s" in text
    # Whichever graph came first in the folder tested the CPU: the next start in it, run 1, did not.
    assert ", about 8.7 s stay even then, 7.4 s of them once a folder; nothing hit" in text
    second = "run 1 (pid 5429, 15:32:41): no hit could save more, 1.8 s stay; its 2 hits saved 10.4 s"
    assert f"nothing hit {second}" in text


def test_json_has_the_frame_and_the_readings(run: Run, training: Path) -> None:
    printed = run("time", "--json", training).json
    scope = cachescope.read(training)
    assert printed["cachescope"] == cachescope.__version__
    assert len(printed["phases"]) == len(scope.phases)
    assert [one["run"] for one in printed["time"]] == [0, 1, 2, 3]
    for one in printed["time"]:
        assert sum(one["phases"].values()) == one["total_ns"] == one["could_save_ns"] + one["stays_ns"]
    assert printed["time"][1]["saved_ns"] == 9_339_437_717 + 1_019_137_482 and printed["problems"] == []


@pytest.mark.torch
@pytest.mark.sweep
@pytest.mark.parametrize("state", ["cold", "warm"])
def test_the_total_is_most_of_the_time_that_a_clock_outside_measures(state: str, tmp_path: Path) -> None:
    """The compiled call is nearly all compile; the rest is one step and what torch does around it."""
    for number in range(2 if state == "warm" else 1):
        trace = tmp_path / f"trace{number}"
        shutil.rmtree(trace, ignore_errors=True)
        variables = {"TORCH_TRACE": str(trace), "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
        done = ran([sys.executable, "-c", PROGRAM], {**os.environ, **variables})
    wall_ns = json.loads(done.stdout) * 1e9
    scope = cachescope.read(trace)
    assert wall_ns / 2 <= scope.phases["self_time_ns"].sum() <= wall_ns
    assert set(scope.lookups["outcome"]) == ({"hit"} if state == "warm" else {"full_miss"})


def test_two_runs_have_a_column_for_their_difference(run: Run, training: Path) -> None:
    cold, warm = (
        next(path for path in training.iterdir() if f" {pid} torch".encode() in path.read_bytes()[:100])
        for pid in (5270, 5429)
    )
    done = run("time", cold, warm)
    rows = done.out.split("\n")
    assert head_of(rows) == "phase run 0 run 1 1 - 0"
    (compiler,) = (row for row in rows if row.startswith(" C++ compiler"))
    assert compiler.split()[-2:] == ["-1.2", "s"]
    (test,) = (row for row in rows if row.startswith(" vector instruction test"))
    assert test.split()[-2:] == ["-7.3", "s"]
    (loading,) = (row for row in rows if row.startswith(" loading"))
    assert loading.split()[-2:] == ["+422", "ms"]
    # A path may be longer than a line.
    assert f"{cold}took9.3slongerthan{warm}:vectorinstructiontest+7.3s,C++compiler+1.2s," in "".join(
        done.out.split()
    )
    printed = run("time", "--json", warm, cold).json["contrast"]
    assert printed["slower"]["path"] == str(cold)
    first, second = (one["total_ns"] for one in run("time", "--json", cold, warm).json["time"])
    assert printed["longer_ns"] == first - second == sum(printed["phases"].values())


def test_a_recording_says_what_came_before_its_first_record(run: Run, training: Path, tmp_path: Path) -> None:
    log = next(path for path in training.iterdir() if b" 5429 torch" in path.read_bytes()[:100])
    (tmp_path / log.name).write_bytes(log.read_bytes())
    (begun,) = cachescope.read(log).runs["start_time"]
    note = {"cachescope_run": 1, "command": ["x"], "start_time": (begun - timedelta(seconds=8)).isoformat()}
    (tmp_path / "run.json").write_text(json.dumps(note))
    text = run("time", tmp_path).flat
    assert "in no event: 8.0 s from the start of the command to its first record" in text
    assert "end of the command" not in text
    (told,) = run("time", "--json", tmp_path).json["time"]
    assert (told["before_ns"], told["after_ns"]) == (8 * 10**9, None)
    assert "in no event" not in run("time", log).out


RANKS = """
import json, os, sys, time
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
torch.compiler.set_enable_guard_collectives(True)

@torch.compile(backend="eager")
def step(x):
    return x + 1

x = torch.ones(3)
step(x)
# The first of these collectives makes their group, and waits for it outside of any event.
step(x)
dist.barrier()
if dist.get_rank() == 1:
    time.sleep(2)
began = time.perf_counter()
step(x)
print(json.dumps(time.perf_counter() - began))
dist.destroy_process_group()
"""


@pytest.mark.torch
def test_the_rank_that_comes_last_is_the_one_that_others_waited_for(run: Run, tmp_path: Path) -> None:
    """Ranks that agree on their guards, as `torch.compiler.set_enable_guard_collectives` has it: a clock outside says who waited."""
    env = os.environ | {
        "TORCH_TRACE": str(tmp_path / "trace"), "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache"),
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "GLOO_SOCKET_IFNAME": "lo",
        "WORLD_SIZE": "2",
    }  # fmt: skip
    command = [sys.executable, "-c", RANKS]
    ranks = [subprocess.Popen(command, env=env | {"RANK": one}, stdout=subprocess.PIPE) for one in "01"]
    waits = [json.loads(one.communicate()[0]) for one in ranks]
    assert [one.returncode for one in ranks] == [0, 0]
    told = run("time", "--json", tmp_path / "trace").json
    rank_of = {row["run"]: row["rank"] for row in told["runs"]}
    waited = {rank_of[one["run"]]: one["waited_ns"] / 1e9 for one in told["waited_for_ranks"]["runs"]}
    assert waits[0] > 1.5 > waits[1]
    assert 1.5 < waited[0] <= waits[0] + 0.5
    assert waited[1] < 1.5
    assert rank_of[told["waited_for_ranks"]["waited_least"]] == 1
