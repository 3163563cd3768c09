"""A recorded pre-flight, read as anything else is: it is known for what it is."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

import cachescope
from cachescope.answers.summary import headline


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("preflights")
    with tarfile.open(Path(__file__).parents[1] / "data" / "preflights" / "2.13.0.tar.xz") as packed:
        packed.extractall(folder, filter="data")
    return folder


def test_a_pre_flight_beside_its_directory(recorded: Path) -> None:
    scope = cachescope.read(recorded / "as_baked", recorded / "cache")
    assert headline(scope).startswith("predicted by a pre-flight: 6 lookups in 1 run: 6 hit, 0 missed")
    assert scope.runs["is_preflight"].tolist() == [True]
    replayed = scope.what_if().frame
    assert (
        set(scope.lookups["outcome"])
        == set(replayed["outcome"])
        == set(replayed["outcome_after"])
        == {"would_hit"}
    )


def test_a_pre_flight_alone_knows_no_outcome(recorded: Path) -> None:
    scope = cachescope.read(recorded / "as_baked")
    assert headline(scope).startswith(
        "predicted by a pre-flight: 6 lookups in 1 run: 0 hit, 0 missed, 6 of unknown outcome"
    )


def test_the_changed_fields_are_those_that_were_changed(recorded: Path) -> None:
    for step, changed in {
        "changed": ("cpp_runtime_thread_count", "inductor_config[epilogue_fusion]"),
        "half_fixed": ("inductor_config[epilogue_fusion]",),
    }.items():
        scope = cachescope.read(recorded / step, recorded / "cache")
        assert set(scope.lookups["outcome"]) == {"would_miss"}
        assert set(scope.misses.loc[scope.misses["verdict"] == "key_changed", "changed"]) == {changed}
        assert "(pre-flight, pid " in str(scope.explain())


def test_beside_a_real_run_it_is_counted_as_what_it_is(recorded: Path) -> None:
    scope = cachescope.read(recorded / "changed", recorded / "cache", cachescope.sample("config_flip"))
    assert "; 6 of them predicted by a pre-flight" in headline(scope)


@pytest.mark.slow
def test_a_lock_expects_the_keys_of_a_pre_flight(recorded: Path) -> None:
    for step, found in {"as_baked": 6, "changed": 0}.items():
        lock = cachescope.lock(recorded / "cache", expect=recorded / step)
        assert lock.expected is not None
        assert len(lock.expected) == 6
        stored = {(entry.kind, entry.key) for entry in lock.entries()}
        assert len(stored & set(lock.expected)) == found
        assert repr(lock).endswith("6 expected keys>")
