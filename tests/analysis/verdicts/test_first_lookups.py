"""First lookups: new graphs in a cache that others had filled, and the first of processes that compile one key at once.

Torch's own counters say what hit.
"""

from pathlib import Path

import pytest

import cachescope
from cachescope.answers.summary import footer
from tests.conftest import Recording

COLD, NEW = "first lookups (cold start)", "first lookups (new graphs)"


def traces(folder: Path) -> list[Path]:
    return sorted((folder / "trace").iterdir(), key=lambda path: path.read_bytes()[:21])


def first_lookups(*paths: Path) -> list[tuple[str, str, tuple[int, ...]]]:
    causes = cachescope.read(*paths, index=False).causes
    rows = causes[causes["verdict"] == "first_lookup"]
    return list(zip(rows["summary"], rows["kind"], rows["runs"], strict=True))


@pytest.mark.parametrize("name", ["new_graph", "new_graph_fx"])
def test_a_graph_that_no_earlier_run_had_is_new_in_a_warm_cache(name: str, recording: Recording) -> None:
    first, second = traces(recording("2.13.0", name))
    assert first_lookups(first, second) == [(COLD, "", (0,)), (NEW, "new graph", (1,))]
    # What hits in it was stored by a process that was not read.
    assert first_lookups(second) == [(NEW, "new graph", (0,))]
    assert first_lookups(first) == [(COLD, "", (0,))]


@pytest.mark.parametrize(("version", "name"), [
    # What others stored may lie on another machine, and a trace does not say that torch could not write.
    ("2.13.0", "two_programs"), ("2.6.0", "entries_not_writable"),
    # Also of ranks that start at once, and of a process that goes on to hit what it stored.
    *(("2.13.0", name) for name in ("cold_warm", "four_ranks", "two_ranks_cold", "in_process", "training")),
])  # fmt: skip
def test_what_nothing_shows_to_be_stored_is_a_cold_start(
    version: str, name: str, recording: Recording
) -> None:
    assert {found[0] for found in first_lookups(*traces(recording(version, name)))} == {COLD}


def test_every_form_says_that_the_graph_is_new(recording: Recording) -> None:
    _, second = traces(recording("2.13.0", "new_graph"))
    scope = cachescope.read(second, index=False)
    (cause,) = scope.causes.itertuples()
    check = scope.check(min_hit_rate=1.0)
    for text in (footer(scope), str(scope), str(scope.explain()), str(check), cause.summary):
        assert "cold start" not in text
    assert NEW in footer(scope) and NEW in str(check)


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
