"""Which earlier lookup a miss is compared with, where several programs share one folder of runs."""

from __future__ import annotations

from cachescope.analysis.verdicts.baselines import Baselines, Choice
from cachescope.details import HashDetails
from cachescope.frames.recorded_rows import LookupRow
from tests.analysis.plain_rows import history_of, run_row
from tests.analysis.verdicts.test_graph_alignment import NEW, A, B, C, D, graph, rows

A2 = graph("mm", "tanh", "add", "sum")
A3 = graph("mm", "tanh", "sub", "sum")


def found(store: HashDetails, runs: list[list[LookupRow]], choice: Choice | None = None) -> list[int | None]:
    """The baseline of every lookup of the last run."""
    every = [row for run in runs for row in run]
    about = [run_row(n, start_time=n) for n in range(len(runs))]
    baselines = Baselines(history_of(every, store, runs=about), choice or Choice())
    found = [baselines.find(at) for at in range(len(every) - len(runs[-1]), len(every))]
    return [every[one].lookup if isinstance(one, int) else None for one in found]


def runs_of(*programs: list[str]) -> tuple[HashDetails, list[list[LookupRow]]]:
    store = HashDetails()
    return store, [rows(store, program, n, "forward") for n, program in enumerate(programs)]


def test_another_program_between_is_not_the_baseline_of_a_changed_graph() -> None:
    store, runs = runs_of([A], [B], [A2])
    assert found(store, runs) == [0]


def test_of_several_alike_the_latest_run_is_taken() -> None:
    store, runs = runs_of([A], [A2], [A3])
    assert found(store, runs) == [100]


def test_an_equal_graph_wins_over_a_changed_one_in_a_later_run() -> None:
    store, runs = runs_of([A, B], [A2, B], [A, B])
    assert found(store, runs) == [0, 101]


def test_a_new_graph_has_no_baseline() -> None:
    store, runs = runs_of([A, B, C, D], [A, B, NEW, C, D])
    assert found(store, runs)[2] is None


def test_a_chosen_run_is_the_only_one_that_counts() -> None:
    store, runs = runs_of([A], [A2], [A3])
    assert found(store, runs, Choice("run", run=0)) == [0]
