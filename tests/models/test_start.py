"""Where the seconds of a start went, held against a clock outside: a real transformer, cold and warm."""

import json
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

import cachescope
from cachescope.answers.time_spent import TimeSpent

HERE = Path(__file__).parent
PACKED = HERE.parent / "data" / "starts" / "transformer.tar.xz"


def held(folder: Path) -> dict[str, list[float]]:
    """For each start, what the clock said and what is told, in seconds: before the first record, compiling, between, and after the last."""
    about = json.loads((folder / "starts.json").read_text())
    scope = cachescope.read(folder / "runs")
    assert scope.problems.empty and scope.phase_problems.empty
    assert scope.lookups.groupby("run")["outcome"].agg(set).tolist() == [{"full_miss"}, {"hit"}]
    spent = TimeSpent.of(scope)
    # Runs are in the order of their start, as the steps are.
    return {
        step["step"]: [step["wall_s"], *(ns / 1e9 for ns in _parts(one))]
        for step, one in zip(about["steps"], spent.runs, strict=True)
    }


def _parts(one: Any) -> list[int]:
    besides = one.besides
    return [besides.before_ns, one.readings.total_ns, besides.between_ns, besides.after_ns]


def check(told: dict[str, list[float]]) -> None:
    for step, (wall, *parts) in told.items():
        print(step, f"{wall:.1f} s by the clock:", *(f"{part:.1f}" for part in parts))
        assert all(part >= 0 for part in parts), step
        # The clock runs from before the command was started until after it was read that it had ended.
        assert wall * 0.99 - 0.2 <= sum(parts) <= wall + 0.01, step
    cold, warm = told.values()
    assert cold[2] > 2 * warm[2]


@pytest.mark.slow
def test_the_seconds_of_a_recorded_start_are_those_of_the_clock(tmp_path: Path) -> None:
    with tarfile.open(PACKED) as packed:
        packed.extractall(tmp_path, filter="data")
    check(held(tmp_path))


@pytest.mark.models
@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_seconds_are_those_of_the_clock(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    subprocess.run([sys.executable, str(HERE / "record_start.py"), str(tmp_path / "start")], check=True)
    with capsys.disabled():
        check(held(tmp_path / "start"))
