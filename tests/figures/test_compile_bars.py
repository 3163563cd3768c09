"""The bars of compiles: as many, as long and as deep as the compiles; from a recording and from rows made by hand."""

from collections import Counter
from typing import Any

import pytest
from figures.frames import START, frame, runs_of

import cachescope
from cachescope import figures
from cachescope.figures.folding import MOST_ROWS
from tests.conftest import Recording

pytestmark = pytest.mark.slow  # every figure is drawn

MS = 10**6


def compile_row(start_ms: float, ms: float | None, kind: str = "first", **other: Any) -> dict[str, Any]:
    return {
        "run": 0, "compile_id": "0/0", "segment": 1, "kind": kind, "function": "forward", "file": "/home/me/model.py", "line": 3,
        "start_time": int(START + start_ms * MS), "time_taken_ns": None if ms is None else int(ms * MS), **other,
    }  # fmt: skip


def drawn(rows: list[dict[str, Any]], runs: int = 1) -> Any:
    return figures.compiles(frame("compiles", rows), runs_of(runs))


def bars(figure: Any) -> list[tuple[float, float, float, str]]:
    """Row, beginning and length of each bar, and its kind."""
    return [
        (round(y, 3), round(base, 6), round(x, 6), trace.name)
        for trace in figure.data
        for x, y, base in zip(trace.x, trace.y, trace.base, strict=True)
    ]


def test_every_compile_of_a_recording_has_a_bar_as_long_as_it_took(recording: Recording) -> None:
    scope = cachescope.read(recording("2.13.0", "recompiles") / "trace")
    made = figures.compiles(scope.compiles, scope.runs)
    assert Counter(kind for *_, kind in bars(made)) == Counter(scope.compiles["kind"])
    assert {"first", "recompile"} <= set(scope.compiles["kind"])
    lengths = sorted(length for _, _, length, _ in bars(made))
    assert lengths == pytest.approx(sorted(scope.compiles["time_taken_ns"] / 1e9), abs=1e-6)
    texts = [text for trace in made.data for text in trace.hovertext]
    assert all("record_programs.py:" in text for text in texts)
    reasons = [row[0] for row in scope.compiles["recompile_reasons"] if row]
    assert len(reasons) == sum("guard of" in text for text in texts) > 0


def test_a_compile_within_another_is_below_it() -> None:
    outer, inner, innermost = compile_row(0, 100), compile_row(10, 50), compile_row(20, 10, "resume")
    made = bars(drawn([compile_row(70, 5), inner, outer, innermost]))
    lanes = sorted({row for row, *_ in made})
    assert len(lanes) == 3
    assert {(start, length): lanes.index(row) for row, start, length, _ in made} == {
        (0, 0.1): 0, (0.01, 0.05): 1, (0.02, 0.01): 2, (0.07, 0.005): 1,
    }  # fmt: skip


def test_compiles_one_after_the_other_share_a_lane() -> None:
    made = bars(drawn([compile_row(0, 100), compile_row(100, 50, "backward")]))
    assert len({row for row, *_ in made}) == 1


def test_runs_at_different_times_begin_at_the_same_place() -> None:
    rows = [compile_row(0, 10), compile_row(10_000, 10, run=1)]
    runs = frame("runs", [{"run": i, "source": "x", "start_time": START + i * 10_000 * MS} for i in range(2)])
    made = figures.compiles(frame("compiles", rows), runs)
    assert {start for _, start, *_ in bars(made)} == {0}
    assert made.layout.xaxis.title.text == "since the run began"


def test_runs_at_once_share_one_clock() -> None:
    made = drawn([compile_row(0, 100), compile_row(40, 100, run=1)], runs=2)
    assert sorted(start for _, start, *_ in bars(made)) == [0, 0.04]
    assert made.layout.xaxis.title.text == "since the first run began"


def test_bars_that_lie_over_each_other_have_no_names() -> None:
    def names(runs: int) -> list[str]:
        made = drawn([compile_row(0, 100, run=run) for run in range(runs)], runs)
        return [text for trace in made.data for text in trace.text]

    assert set(names(3)) == {"forward (model.py:3) [0/0]"}
    # More than there are rows for: runs share one.
    assert set(names(MOST_ROWS + 1)) == {""}


def test_a_compile_without_an_end_is_told_and_not_drawn() -> None:
    made = drawn([compile_row(0, 100), {**compile_row(200, None), "start_time": None}])
    assert len(bars(made)) == 1
    assert made.layout.annotations[0].text == "1 compile without an end in the log not shown"
    (said,) = drawn([compile_row(0, None)]).layout.annotations
    assert "No compile has an end" in said.text


def test_a_failed_compile_says_so_and_why() -> None:
    (trace,) = drawn([compile_row(0, 9, error="Unsupported: no")]).data
    assert "failed: Unsupported: no" in trace.hovertext[0]


def test_ten_thousand_compiles_stay_within_bounds() -> None:
    kinds = ("first", "recompile", "backward", "resume", "limit")
    rows = [
        compile_row(number // 100 * 10, 4, kinds[number % 5], run=number % 100, compile_id=f"{number}/0", file=f"/a/{number % 700}.py")
        for number in range(10_000)
    ]  # fmt: skip
    made = drawn(rows, runs=100)
    assert 100 < len(bars(made)) <= 2_500
    assert len(made.to_json()) < 2_000_000 and made.layout.height < 900
    texts = [text for trace in made.data for text in trace.hovertext if " compiles, " in text]
    stood_for = [int(text.partition(" ")[0]) for text in texts]
    assert sum(stood_for) + len(bars(made)) - len(stood_for) == 10_000
    assert "10,000 compiles in" in made.layout.annotations[0].text


def test_a_click_says_the_run_and_the_compile() -> None:
    (trace,) = drawn([compile_row(0, 9, run=3, compile_id="4/1")], runs=4).data
    assert [list(data) for data in trace.customdata] == [[3, "4/1"]]
