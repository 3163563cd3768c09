"""Processes side by side: which was slower, where it spent longer, who waited; times made by hand."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import cachescope
from cachescope.analysis.phases.frame import Readings
from cachescope.answers.time_spent import Besides, Contrast, RanksWaited, RunTime, TimeSpent, members_of
from cachescope.frames.recorded_rows import RunRow
from cachescope.report.time_spent import besides_text, contrast_text, path_texts, rank_texts

MS = 10**6
WAITING = "waiting for other ranks"


def spent(run: int, rank: int | None = None, **phases: int) -> RunTime:
    """A process with phases in milliseconds; ``_`` stands for a space."""
    times = {name.replace("_", " "): ms * MS for name, ms in phases.items()}
    total = sum(times.values())
    return RunTime(run, rank, f"run {run}", times, Readings(total, 0, total, 0, 0, 0, 0), Besides(), True)


def waited(*runs: RunTime) -> RanksWaited | None:
    return RanksWaited.of_runs(runs)


def text_of(runs: Sequence[RunTime]) -> str:
    found = RanksWaited.of_runs(runs)
    assert found is not None
    return "; ".join(rank_texts(found, runs))


@pytest.mark.parametrize(("runs", "said"), [
    ([spent(0, loading=1000, guards=10), spent(1, compiler=9100, guards=2010, loading=700)],
     "run 1 took 10.8 s longer than run 0: compiler +9.1 s, guards +2.0 s"),
    # What took less is told as well.
    ([spent(0, loading=900), spent(1, compiler=2000)],
     "run 1 took 1.1 s longer than run 0: compiler +2.0 s; loading -900 ms"),
    # Of many the slowest is held against the quickest.
    ([spent(0, a=300), spent(1, a=900), spent(2, a=100), spent(3, a=500)],
     "the slowest of 4, run 1, took 800 ms longer than the quickest, run 2: a +800 ms"),
    ([spent(0, a=3), spent(1, a=3)], "run 1 took as long as run 0, to the millisecond"),
    # At most three phases are named.
    ([spent(0), spent(1, p0=100, p1=99, p2=98, p3=97, p4=96)],
     "run 1 took 490 ms longer than run 0: p0 +100 ms, p1 +99 ms, p2 +98 ms and 2 more"),
])  # fmt: skip
def test_it_says_where_the_slower_one_spent_longer(runs: list[RunTime], said: str) -> None:
    found = Contrast.of_members(runs)
    assert found is not None and found.longer_ns == sum(found.phases.values())
    assert contrast_text(found) == said


def test_ranks_are_held_against_those_of_their_start(recording: Any) -> None:
    """Four ranks on an empty directory, and again on what they left: the quickest of all is one that loaded."""
    found = TimeSpent.of(cachescope.read(recording("2.13.0", "four_ranks") / "trace")).contrast
    assert found is not None and found.is_of_start and found.of == 4
    assert {found.slower.run, found.other.run} <= {0, 1, 2, 3}
    assert contrast_text(found).startswith("the slowest of 4 ranks of its start, run ")


def test_one_alone_is_held_against_nothing() -> None:
    assert Contrast.of_members([spent(0, a=3)]) is None
    assert Contrast.of_members([]) is None


def test_a_path_of_several_says_which_process_stands_for_it() -> None:
    members = [replace(spent(0, x=1), path="a"), replace(spent(2, x=2), path="b", of_path=3)]
    represented = "b is represented by its slowest process of 3, run 2"
    assert list(path_texts(members)) == ["a is run 0", represented]
    assert list(path_texts([spent(0, x=1)])) == []


def test_where_no_event_tells_it_nothing_is_claimed_of_waiting() -> None:
    runs = [spent(0, 0, a=9), spent(1, 1, a=1)]
    assert waited(*runs) == RanksWaited({}, None)
    assert text_of(runs).startswith("no event shows whether a rank waited")


def test_who_waits_least_is_waited_for() -> None:
    runs = [spent(0, 0, **{WAITING: 900}), spent(1, 1, **{WAITING: 20}), spent(2, 2, **{WAITING: 700})]
    assert text_of(runs) == (
        "waited for other ranks: run 0 900 ms, run 2 700 ms, run 1 20 ms; run 1 waited least: the others waited for it"
    )


@pytest.mark.parametrize("runs", [
    # About equal: each waited for another one at another time.
    [spent(0, 0, **{WAITING: 900}), spent(1, 1, **{WAITING: 800})],
    # The log of one of them tells nothing.
    [spent(0, 0, **{WAITING: 900}), spent(1, 1, a=1)],
    # Two jobs.
    [spent(0, 0, **{WAITING: 900}), spent(1, 1, **{WAITING: 1}), spent(2, 0, **{WAITING: 900})],
])  # fmt: skip
def test_it_is_not_said_who_was_waited_for_without_evidence(runs: list[RunTime]) -> None:
    found = waited(*runs)
    assert found is not None and found.last is None
    assert "waited least" not in text_of(runs)


def test_processes_that_are_no_ranks_of_one_job_wait_for_nobody() -> None:
    assert waited(spent(0, None, **{WAITING: 5}), spent(1, 1, a=1)) is None
    assert waited(spent(0, 0, a=1), spent(1, 0, a=1)) is None


@pytest.mark.parametrize(("times", "wanted"), [
    ((None, 10, 40, None), (None, 20, None)),
    ((3, 10, 40, 45), (7, 20, 5)),
    # Clocks that differ a little.
    ((11, 10, 18, 17), (0, 0, 0)),
    ((3, None, None, 45), (None, None, None)),
])  # fmt: skip
def test_what_passed_besides_compiling(times: tuple[int | None, ...], wanted: tuple[int | None, ...]) -> None:
    begun, start, end, ended = times
    row = RunRow(
        0, "x", ("x",), 1, None, None, None, start, end, None, None, None, None, begun, ended, False, True
    )
    found = Besides.of_run(row, 10)
    assert (found.before_ns, found.between_ns, found.after_ns) == wanted


def test_what_passed_besides_is_said_where_it_is_known_and_matters() -> None:
    assert besides_text(Besides(), 100) == ""
    assert besides_text(Besides(None, 5, None), 100) == ""
    said = "in no event: 0 ms between the first and the last record"
    assert besides_text(Besides(None, 6, None), 100) == said
    assert besides_text(Besides(8 * 10**9, 0, 10**9), 100) == (
        "in no event: 8.0 s from the start of the command to its first record, imports among them; "
        "1.0 s from the last record to the end of the command"
    )


@pytest.fixture(scope="module")
def scope(recording: Any) -> tuple[Path, cachescope.Scope]:
    trace = recording("2.13.0", "training") / "trace"
    return trace, cachescope.read(trace)


def test_paths_are_held_against_each_other_by_their_slowest(recording: Any) -> None:
    cold_and_warm = recording("2.13.0", "training") / "trace"
    inference = recording("2.13.0", "config_flip") / "trace"
    read = cachescope.read(cold_and_warm, inference)
    found = TimeSpent.of(read, [str(cold_and_warm), str(inference)])
    totals = read.phases.groupby("run")["self_time_ns"].sum()
    of_folder = {
        folder: totals[[str(folder) in source for source in read.runs["source"]]]
        for folder in (cold_and_warm, inference)
    }
    assert [(one.path, one.of_path, one.run) for one in found.members] == [
        (str(folder), len(mine), mine.idxmax()) for folder, mine in of_folder.items()
    ]
    assert found.contrast is not None
    slowest = [mine.max() for mine in of_folder.values()]
    assert found.contrast.longer_ns == max(slowest) - min(slowest)


def test_one_path_or_one_in_another_compares_all_processes(scope: tuple[Path, cachescope.Scope]) -> None:
    trace, read = scope
    runs = TimeSpent.of(read).runs
    here = str(trace)
    for paths in ([], [here], [here, here], [here, "nowhere"], [here, str(trace / "*")]):
        assert members_of(read, runs, paths) == runs, paths


def test_files_stand_for_their_process(scope: tuple[Path, cachescope.Scope]) -> None:
    trace, read = scope
    files = sorted(str(path) for path in trace.iterdir())[:2]
    members = members_of(read, TimeSpent.of(read).runs, files)
    assert [(one.path, one.of_path) for one in members] == [(file, 1) for file in files]
