"""Two threads that compile at once: torch's lock lets one of them work, and a trace names neither."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import cachescope
from tests.analysis.phases.replay import events_of, traces_of
from tests.conftest import unpacked

ARCHIVE = Path(__file__).parents[2] / "data" / "threads" / "2.13.0.tar.xz"
# Between the beginning of an event and what torch measures by another clock around it.
SLACK_NS = 60_000_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpacked(ARCHIVE, tmp_path_factory.mktemp("threads"))


@pytest.fixture(scope="module")
def phases(folder: Path) -> pd.DataFrame:
    scope = cachescope.read(folder / "trace")
    assert scope.phase_problems.empty
    return scope.phases


@pytest.fixture(scope="module")
def measured(folder: Path) -> Any:
    return json.loads((folder / "measured.json").read_text())


def test_a_trace_names_no_thread(folder: Path, measured: Any) -> None:
    """What lanes of threads would need: there were two, and the events have one number."""
    assert {thread for _, thread in measured["threads"]} == {"MainThread", "second"}
    (_, trace), *_ = traces_of(folder)
    assert {event["tid"] for event in events_of(trace)} == {0}


def test_compiles_at_once_last_as_long_as_torch_measured(phases: pd.DataFrame, measured: Any) -> None:
    roots = phases[phases["event"].isin(["entire_frame_compile", "entire_backward_compile"])]
    found: Counter[tuple[str, bool]] = Counter()
    for row in roots.itertuples(index=False):
        found[row.compile_id, row.event == "entire_frame_compile"] += row.time_ns
    told = {(one["compile_id"], one["is_forward"]): one["duration_us"] * 1000 for one in measured["compiles"]}
    assert found == pytest.approx(told, abs=SLACK_NS)


def test_every_event_of_threads_has_its_end(phases: pd.DataFrame) -> None:
    assert (phases["unended"] == 0).all()


def test_a_backward_graph_that_waits_takes_none_of_the_time(phases: pd.DataFrame, measured: Any) -> None:
    waits = phases[phases["event"].str.contains("entire_backward_compile|bw_compiler")]
    assert waits["self_time_ns"].sum() < SLACK_NS
    # One works after the other: the second while its function compiles, and again when the first one's backward graph is done.
    first = min(one["start_time_us"] for one in measured["compiles"])
    last = max(one["end_time_us"] for one in measured["compiles"])
    assert phases["self_time_ns"].sum() == pytest.approx((last - first) * 1000, abs=2 * SLACK_NS)
    of = {(one["compile_id"], one["is_forward"]): one for one in measured["compiles"]}
    backward, before = of["1/0", False], of["0/0", False]
    second = of["1/0", True]["duration_us"] + backward["end_time_us"] - before["end_time_us"]
    by_compile = phases.groupby("compile_id")["self_time_ns"].sum()
    assert by_compile["1/0"] == pytest.approx(second * 1000, abs=2 * SLACK_NS)
