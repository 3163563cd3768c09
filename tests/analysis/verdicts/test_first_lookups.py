"""First lookups, and lookups that a pre-flight predicts would miss: rows made by hand in, reasons out."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import cachescope
from cachescope.analysis.history.history import History
from cachescope.analysis.verdicts.judging import guards_would_fail, judge_predicted
from cachescope.analysis.verdicts.misses import VerdictsSoFar, Why
from cachescope.answers.summary import footer
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.recorded_rows import LookupRow
from tests.analysis.plain_rows import entry_row, history_of
from tests.analysis.what_if.test_replay import row
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


@pytest.mark.parametrize("name", ["new_graph", "new_graph_fx"])
def test_a_graph_is_new_where_the_run_has_each_graph_that_it_is_like(name: str, recording: Recording) -> None:
    # A text log names no functions, and the graphs before are alike; but none of them was replaced.
    logs = sorted((recording("2.13.0", name) / "text").iterdir())
    assert first_lookups(*logs) == [(COLD, "", (0,)), (NEW, "new graph", (1,))]


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


@pytest.mark.parametrize("name", ["failed_codegen", "failed_compiler", "interrupted", "killed_compiling"])
def test_a_compile_that_ended_early_without_a_recorded_lookup_may_have_been_of_the_same_graph(
    name: str, recording: Recording
) -> None:
    first, second, _ = traces(recording("2.6.0", name))
    scope = cachescope.read(first, second, index=False)
    assert not len(scope.lookups[scope.lookups["run"] == 0])
    (place,), *_ = scope.runs["unrecorded_compiles"]
    assert place.startswith("matmul_relu (")
    assert set(scope.misses["evidence"]) == {"not_known"}
    assert "run 0 had begun to compile matmul_relu, and its log has no lookup of that" in str(
        scope.explain(0)
    )
    # Alone, nothing speaks against a cold start.
    assert first_lookups(second) == [(COLD, "", (0,))]


def test_below_a_changed_key_a_graph_without_details_is_no_cold_start(recording: Recording) -> None:
    # torch 2.15 writes no hash details of FX keys into text logs.
    scope = cachescope.read(recording("2.15.0", "recompiles") / "text", index=False)
    lookups = scope.misses.merge(scope.lookups[["lookup", "cache", "compile_id"]], on="lookup")
    graphs = lookups[lookups["cache"] == "fxgraph"]
    found = {at: set(of["verdict"]) for at, of in graphs.groupby("compile_id")}
    assert found.pop("0/0") == {"first_lookup"}
    assert len(found) == 4
    assert set().union(*found.values()) == {"details_not_recorded"}


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


TOLD = "its entry in /cache is damaged"


def lookup(at: int = 0, cache: str = "fxgraph", key: str = "f1", **told: Any) -> LookupRow:
    return replace(row(at, 0, at, cache, key, False, None, None, None), **{"prediction": TOLD, **told})


def entry(cache: str, key: str, status: str = "ok", damage: str | None = None) -> EntryRow:
    return entry_row(0, cache, key, "/cache", "/cache/e", 1, status, damage)


DAMAGED = entry("fxgraph", "f1", "damaged", "truncated at 4 bytes")


def judged(history: History, *said: tuple[int, Why]) -> VerdictsSoFar:
    found = VerdictsSoFar(len(history.lookups))
    for at, why in said:
        found.record(at, why)
    judge_predicted(history, found)
    return found


@pytest.mark.parametrize(("made", "entries", "kind"), [
    (lookup(), [DAMAGED], "damaged"),
    (lookup(), [entry("fxgraph", "f1"), DAMAGED], "damaged"),
    # torch found the AOTAutograd entry, and not the graph that it points to.
    (lookup(cache="aotautograd", key="a1", status_detailed="hit"), [], "graph entry"),
    (lookup(status_detailed="miss"), [DAMAGED], "damaged"),
    # Nothing lies there, or what torch may load; nothing of it under another key, or in another cache.
    (lookup(), [], None),
    (lookup(), [entry("fxgraph", "f1")], None),
    (lookup(), [entry("fxgraph", "f1", "damaged", None)], None),
    (lookup(), [entry("fxgraph", "f1", "damaged", "content hash differs from the name")], None),
    (lookup(), [entry("fxgraph", "f1", "unreadable", "truncated")], None),
    (lookup(), [entry("fxgraph", "f2", "damaged", "empty file")], None),
    (lookup(), [entry("aotautograd", "f1", "damaged", "empty file")], None),
    # A lookup that was made, one that would not miss, and one whose guards would fail.
    (lookup(prediction=None), [DAMAGED], None),
    (lookup(outcome="hit"), [DAMAGED], None),
    (lookup(outcome="unknown"), [DAMAGED], None),
    (lookup(outcome="guard_miss"), [DAMAGED], None),
], ids=range(15))  # fmt: skip
def test_what_the_directory_shows(made: LookupRow, entries: list[EntryRow], kind: str | None) -> None:
    found = judged(history_of([made], entries=entries))
    if kind is None:
        assert found.why == [None]
        return
    why = "predicted: the directory shows it as it is now"
    assert found.why == [Why("entry_unavailable", TOLD, "inferred", why, kind=kind)]
    # It is compared with nothing: no lookup was made before.
    assert found.baseline == [None]


def test_each_lookup_has_its_own_reason_and_keeps_one_that_it_has() -> None:
    rows = [
        lookup(0, key="f2"),
        lookup(1),
        lookup(2, prediction="other"),
        lookup(3),
        lookup(4, prediction=""),
    ]
    before = Why("disabled", "its caches are off", "recorded", "")
    found = judged(history_of(rows, entries=[DAMAGED]), (3, before))
    reasons = [None if why is None else why.reason for why in found.why]
    assert reasons == [None, TOLD, "other", "its caches are off", ""]


def test_guards_that_would_fail() -> None:
    found = guards_would_fail("f1", "no guards hold")
    wanted = ("guard_failed", "no guards hold", "inferred", "f1")
    assert (found.verdict, found.reason, found.evidence, found.kind) == wanted
    assert found.evidence_text.startswith("predicted: the guards of the entries were evaluated")
