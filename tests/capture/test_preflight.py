"""Pre-flights of one program, held against what torch then really does: on a cold, a warm and a changed cache."""

import os
from pathlib import Path

import pytest

import cachescope
from cachescope.scope.preflight import read_preflight
from tests.capture.preflights import (
    assert_came_true,
    compiler_that_tells,
    copied,
    entries_of,
    environment,
    lookups_of,
    predicted,
    preflown,
    program,
    really,
    told_by,
    traces_in,
    tree_hash,
)

pytestmark = [pytest.mark.torch, pytest.mark.slow]


@pytest.fixture(scope="module")
def flown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the traces of a pre-flight, what a cold run then did, and the cache that it made."""
    folder = tmp_path_factory.mktemp("flown")
    compilers, called = compiler_that_tells(folder / "bin", os.environ)
    cache = folder / "cache"
    traces = preflown(program("training"), cache, folder / "preflight", **compilers)
    assert not cache.exists()
    assert not called.exists(), called.read_text()
    told = predicted(traces, cache)
    assert [outcome for *_, outcome in told] == ["miss"] * 5
    assert_came_true(told, really(program("training"), cache, folder / "cold"))
    return folder


def test_a_warm_cache_hits_as_predicted(flown: Path, tmp_path: Path) -> None:
    cache = copied(flown / "cache", tmp_path / "cache")
    before = tree_hash(cache)
    told = predicted(traces_in(flown), cache)
    assert tree_hash(cache) == before
    assert [outcome for *_, outcome in told] == ["hit"] * 5
    assert_came_true(told, really(program("training"), cache, tmp_path / "real"))


@pytest.mark.parametrize(("which", "how"), [("fxgraph", "deleted"), ("aotautograd", "truncated")])
def test_what_is_gone_or_damaged_misses_as_told(flown: Path, tmp_path: Path, which: str, how: str) -> None:
    cache = copied(flown / "cache", tmp_path / "cache")
    entry = entries_of(cache, which)[0]
    if how == "deleted":
        entry.unlink()
    else:
        entry.write_bytes(entry.read_bytes()[:100])
    told = predicted(traces_in(flown), cache)
    assert {outcome for *_, outcome in told} == {"hit", "miss"}
    assert_came_true(told, really(program("training"), cache, tmp_path / "real"))


def test_the_changed_field_is_named(flown: Path, tmp_path: Path) -> None:
    changed = {"PREFLIGHT_PROGRAM_CONFIG": "epilogue_fusion"}
    cache = copied(flown / "cache", tmp_path / "cache")
    before = tree_hash(cache)
    traces = preflown(program("training"), cache, tmp_path / "preflight", **changed)
    assert tree_hash(cache) == before
    scope = read_preflight(str(traces), [str(cache)])
    told = lookups_of(scope)
    assert {outcome for *_, outcome in told} == {"miss"}
    assert set(scope.misses["verdict"]) == {"key_changed"}
    assert set(scope.misses["changed"]) == {("inductor_config[epilogue_fusion]",)}
    assert_came_true(told, really(program("training"), cache, tmp_path / "real", **changed))


def test_an_ordinary_reading_knows_it_for_what_it_is(flown: Path) -> None:
    alone = cachescope.read(traces_in(flown))
    assert alone.runs["is_preflight"].tolist() == [True]
    assert set(alone.lookups["outcome"]) == {"not_known"}
    beside = cachescope.read(traces_in(flown), flown / "cache")
    assert set(beside.lookups["outcome"]) == {"would_hit"}
    assert beside.hit_rates()["hit_rate"].tolist() == [1.0]


def test_what_a_recording_left_behind_is_what_it_is_held_against(flown: Path) -> None:
    told = predicted(traces_in(flown), flown / "cold" / "trace")
    assert [outcome for *_, outcome in told] == ["hit"] * 5


def test_a_pre_flight_is_no_past_of_a_real_run(flown: Path) -> None:
    scope = cachescope.read(traces_in(flown), flown / "cold" / "trace")
    (preflight,) = scope.runs.loc[scope.runs["is_preflight"], "run"]
    alone = cachescope.read(flown / "cold" / "trace").misses
    beside = scope.misses[scope.misses["lookup"].isin(scope.lookups.query(f"run != {preflight}")["lookup"])]
    columns = ["verdict", "reason", "changed", "evidence"]
    assert beside[columns].values.tolist() == alone[columns].values.tolist()


def test_the_command_asks_for_a_share_of_hits(flown: Path, tmp_path: Path) -> None:
    def status(name: str) -> int:
        against = str(flown / "cache")
        words = ["preflight", "--min-hit-rate", "1", "--against", against, "--", *program(name)]
        return told_by(words, environment(tmp_path / "other"), status=None).returncode

    # What is trained there is also run without gradients.
    assert status("mlp") == 0 and status("dropout") == 3
    assert not (tmp_path / "other").exists()


def test_guards_that_do_not_hold_are_predicted(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    few = {"PREFLIGHT_PROGRAM_SIZES": "5 6"}
    really(program("guarded_size"), cache, tmp_path / "first", **few)
    many = {"PREFLIGHT_PROGRAM_SIZES": "50 60"}
    traces = preflown(program("guarded_size"), cache, tmp_path / "preflight", **many)
    told = predicted(traces, cache)
    assert set(read_preflight(str(traces), [str(cache)]).misses["verdict"]) == {"guard_failed"}
    assert_came_true(told, really(program("guarded_size"), cache, tmp_path / "second", **many))
    # Both are stored now.
    assert {outcome for *_, outcome in predicted(traces, cache)} == {"hit"}


def test_the_second_lookup_of_a_key_finds_what_the_first_would_store(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    told = predicted(preflown(program("twice"), cache, tmp_path / "preflight"), cache)
    assert [outcome for *_, outcome in told] == ["miss"] * 3 + ["hit"] * 3
    assert_came_true(told, really(program("twice"), cache, tmp_path / "real"))
