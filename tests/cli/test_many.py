"""What stands first for 156 runs and for 128 ranks: groups in place of lists, the one that differs on top."""

import json
from pathlib import Path
from typing import Any

import pytest

import cachescope
from cachescope.figures.compile_time import phases
from cachescope.figures.rates import outcomes
from cachescope.readers.logs.byte_source import zstd
from cachescope.views.plot import Plot
from tests.cli.conftest import Run
from tests.conftest import Recording
from tests.many_runs import begun, fortnight, write_ranks
from tests.readings import read_once

pytestmark = pytest.mark.usefixtures("commands_read_once")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fortnight: cold, then 152 that hit but for three with another option."""
    traces = (cachescope.sample("config_flip") / "trace").iterdir()
    data = sorted((zstd.decompress(path.read_bytes()) for path in traces), key=begun)
    folder = tmp_path_factory.mktemp("fortnight")
    fortnight(data, folder)
    return folder


@pytest.fixture(scope="module")
def ranks(recording: Recording, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A job of 128 ranks on 16 nodes: the last rank compiled, the others found its entries."""
    traces = recording("2.13.0", "four_ranks") / "trace"
    cold, warm = sorted((path.read_bytes() for path in traces.glob("*rank_0_*")), key=begun)
    folder = tmp_path_factory.mktemp("ranks")
    write_ranks(folder, (warm, cold), 128)
    return folder


def test_ranks_in_folders_of_nodes_are_one_start(ranks: Path, tmp_path: Path, recording: Recording) -> None:
    told = str(read_once(ranks)).splitlines()[0]
    assert told == "cachescope.Scope: Nothing was compiled twice: 12.7 s of first compiles"
    traces = recording("2.13.0", "four_ranks") / "trace"
    cold = max((path.read_bytes() for path in traces.glob("*rank_0_*")), key=len)
    write_ranks(tmp_path, (cold, cold), 16)
    told = str(cachescope.read(tmp_path)).splitlines()[0]
    assert "12.7 s of first compiles" in told and "all ranks together compiled for 3 min 23 s" in told


def test_of_many_processes_the_slowest_the_median_and_the_quickest_are_told(run: Run, ranks: Path) -> None:
    rows = run("time", ranks).out.splitlines()
    which = "the slowest of 128 processes, the median and the quickest"
    at = rows.index(f"where the time of compiling went: {which}")
    assert " ".join(rows[:at]) == (
        "run 0 (rank 127, pid 5127, 15:39:17), the slowest of 128 processes, spent 13.9 s in torch.compile:"
        " code generation 11.7 s, Inductor passes 995 ms; hits could still save about 13.1 s "
    )
    assert rows[at + 1].replace("share", "").split() == ["phase", "run", "0", "run", "65", "run", "1"]
    text = " ".join(" ".join(rows).split())
    assert "the slowest of 128, run 0 (rank 127, pid 5127, 15:39:17), took 10.8 s longer" in text
    at = text.index("run 0 (rank 127, pid 5127, 15:39:17): hits in all caches could still save about 13.1 s")
    others = "127 runs (ranks 0-126, 15:39:17) together: no hit could save more"
    assert text.index(others) > at and "their 127 hits saved 26 min 20 s" in text
    assert len(rows) < 40


def test_a_fortnight_is_drawn_in_the_explorer_too(runs: Path) -> None:
    def plots_of(widget: Any) -> list[Plot]:
        below = [one for child in getattr(widget, "children", ()) for one in plots_of(child)]
        return [*below, *([widget] if isinstance(widget, Plot) else [])]

    every = plots_of(read_once(runs).explore().pane("Overview"))
    (trend,) = (one for one in every if one.label == "Day by day and commit by commit")
    trend.seen = True
    assert json.loads(trend.figure)["data"]


def test_lists_of_numbers_are_spans(run: Run, ranks: Path) -> None:
    assert "Nothing that is known of all 128 contexts differs." in run("contexts", ranks).out
    assert "\n 0-127  From: " in run("contexts", ranks).out
    assert "runs 0-127" in run("devices", ranks).out


def test_of_many_runs_those_that_went_alike_share_a_row_and_bars_are_shares(ranks: Path, runs: Path) -> None:
    scope = read_once(ranks)
    drawn = outcomes(scope.shown.rows, scope.tables.runs.rows)
    assert drawn.layout["yaxis"]["ticktext"] == ["run 0 · rank 127 · 15:39:17", "127 runs · ranks 0-126"]
    assert [(bar["name"], bar["x"]) for bar in drawn.data if bar["hoverinfo"] == "text"] == [
        ("hit", [100]), ("full_miss", [100]), ("hit", [100]), ("full_miss", [100]),
    ]  # fmt: skip
    of_time = phases(scope.phases_read[0].rows, scope.tables.runs.rows)
    (loading,) = (bar for bar in of_time.data if bar["name"] == "loading")
    # The mean of a row, not the sum.
    assert loading["x"][0] < 0.1 and 2 < loading["x"][1] < 2.5
    scope = read_once(runs)
    drawn = outcomes(scope.shown.rows, scope.tables.runs.rows)
    labels = drawn.layout["yaxis"]["ticktext"]
    assert labels[0].startswith("run 0 · ") and len(labels) == 8


def test_a_fortnight_is_told_day_by_day_and_commit_by_commit(run: Run, runs: Path) -> None:
    scope = read_once(runs)
    trend = scope.trend
    assert len(trend) == 156 and trend["start_time"].is_monotonic_increasing
    assert trend["commit"].tolist() == [f"{at // 40:012}" for at in range(156)]
    # One compiles first, three under another option or what was stored under it: the rest hit.
    assert trend.index[trend["hit_rate"] == 0].tolist() == [0, 50, 100, 150]
    lookups = scope.lookups
    missed = lookups[lookups["cache"].eq("fxgraph") & lookups["outcome"].ne("hit")]
    lost = missed.groupby("run")["time_taken_ns"].sum()
    assert trend.set_index("run")["time_lost_ns"].dropna().to_dict() == lost.to_dict()
    said = run("explain", runs).out
    # Of the later two, nothing says what became of the entries that the first of them stored.
    assert trend["avoidable_ns"].to_dict() == {**dict.fromkeys(range(156), 0), 50: lost[50]}
    assert said.startswith("1.6 s of the 18.6 s compiled after misses were avoidable")
    told = [row.split() for row in said.partition("Over time, the newest first\n")[2].splitlines()[:15]]
    assert " ".join(told[0]) == "Day Commit Starts Hit rate Compiled after misses Known avoidable"
    days = trend.groupby([trend["start_time"].dt.date.astype(str), "commit"]).size()
    assert [(day, commit, int(starts)) for day, commit, starts, *_ in told[1:]] == [
        (*of, count) for of, count in days[::-1][:14].items()
    ]
    assert f"The first 14 of {len(days)} days and commits; scope.trend has all." in said
    assert "**Over time, the newest first**" in run("report", runs, "--markdown").out


def test_what_is_of_one_day_and_commit_has_no_trend(run: Run, ranks: Path) -> None:
    assert "Over time" not in run("explain", ranks).out
    (job,) = read_once(ranks).trend.itertuples()
    assert (job.starts, job.lookups, job.hits) == (1, 256, 254)
    # A pre-flight compiled nothing.
    assert cachescope.read(cachescope.sample("preflight")).trend.empty


def test_two_weeks_are_compared_as_runs_and_as_keys(run: Run, runs: Path) -> None:
    weeks = [f"{runs}/2026-11-1*", f"{runs}/2026-11-2*"]
    rows = run("diff", *weeks).out.splitlines()
    scope = read_once(runs)
    first = scope.trend["start_time"].dt.day < 20
    rates = [scope.trend[which][["hits", "lookups"]].sum() for which in (first, ~first)]
    (one, other) = (f"{rate.hits} of {rate.lookups}" for rate in rates)
    assert rows[0].startswith("Hit rate by count: ") and rows[0].endswith(f"({one} → {other})")
    assert rows[1].endswith(f"({first.sum()} runs → {(~first).sum()} runs, together)")
    assert rows[2].startswith("   lookups, aligned by their graphs: ")
    week = f"before: {weeks[0]}: {first.sum()} runs (first run 0, 2026-11-10 09:00:00)"
    assert week in " ".join(" ".join(rows).split())
    aligned = run("diff", *weeks, "--json").json["compared_lookups"]
    told = [row["change"].replace("_", " ") for row in aligned]
    assert all(f"{told.count(change)} {change}" in rows[2] for change in {*told} - {"same"})
