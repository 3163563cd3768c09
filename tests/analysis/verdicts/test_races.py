"""Processes that compile the same key at once: who came first is cold, the others raced."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import cachescope

Recording = Callable[[str, str], Path]


@pytest.mark.parametrize("way", ["trace", "text", pytest.param("both", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["four_processes", pytest.param("four_ranks", marks=pytest.mark.slow)])
def test_four_at_once_race_and_then_hit(name: str, way: str, recording: Recording) -> None:
    folder = recording("2.13.0", name)
    scope = cachescope.read(
        *([folder / "trace", folder / "text", folder / "cache"] if way == "both" else [folder / way])
    )
    assert len(scope.runs) == 8
    told = scope.lookups.merge(scope.misses, on="lookup", how="left")
    assert set(told.loc[told["run"] >= 4, "outcome"]) == {"hit"}
    racing = told[told["run"] < 4]
    assert set(racing["outcome"]) == {"full_miss"}
    assert set(racing["verdict"]) == {"first_lookup", "compiled_concurrently"}
    for _, of_cache in racing.groupby("cache"):
        # One looked first; every other looked while that one compiled.
        assert (of_cache["verdict"] == "first_lookup").sum() == 1
        first = of_cache[of_cache["verdict"] == "first_lookup"]
        assert first["time"].iloc[0] == of_cache["time"].min()
    if name == "four_ranks":
        assert sorted(scope.runs["rank"].iloc[:4]) == [0, 1, 2, 3]
        (race,) = scope.causes[scope.causes["verdict"] == "compiled_concurrently"].itertuples()
        assert len(race.ranks) >= 3
