"""Past misses read from a directory: the fields that made each further entry, against what the log said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import cachescope

Recording = Callable[[str, str], Path]


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("config_flip", "inductor_config[epilogue_fusion]"),
        ("config_env", "inductor_config[coordinate_descent_tuning]"),
        ("cache_key_tag", "cache_key_tag"),
        ("matmul_precision", "cuda_matmul_settings"),
    ],
)
def test_the_directory_alone_names_the_field_that_the_log_named(
    name: str, fields: str, recording: Recording
) -> None:
    folder = recording("2.13.0", name)
    past = cachescope.read(folder / "cache").past_misses
    log = cachescope.read(folder / "trace")
    told = log.misses.merge(log.lookups, on="lookup").query("cache == 'fxgraph' and verdict == 'key_changed'")
    assert set(past["cache_key"]) == set(told["cache_key"])
    assert {field for changed in past["changed"] for field in changed} == {fields}
    assert set(past["verdict"]) == {"key_changed"}


@pytest.mark.parametrize(("name", "same", "files"), [("cache_key_tag", True, 1), ("inputs", False, 4)])
def test_equal_code_is_told_from_other_code(name: str, same: bool, files: int, recording: Recording) -> None:
    # torch names generated code by its hash: as many files as there were different sources.
    folder = recording("2.13.0", name) / "cache"
    assert len(list(folder.glob("??/c*.py"))) == files
    assert set(cachescope.read(folder).past_misses["same_code"]) == {same}


def test_other_guards_under_one_key_are_a_guard_miss(recording: Recording) -> None:
    scope = cachescope.read(recording("2.13.0", "dynamic_guards") / "cache")
    (miss,) = scope.past_misses.itertuples()
    assert (miss.verdict, miss.changed) == ("guard_failed", ())
    guards = scope.guards.set_index("entry")["guards_expr"]
    assert guards[miss.entry] != guards[miss.baseline_entry]


def test_forward_and_backward_are_graphs_of_their_own(recording: Recording) -> None:
    past = cachescope.read(recording("2.13.0", "training") / "cache").past_misses
    assert sorted(past["direction"]) == ["backward", "forward"]
    assert past["graph"].nunique() == 2


def test_a_cold_directory_has_none(recording: Recording) -> None:
    assert cachescope.read(recording("2.13.0", "cold_warm") / "cache").past_misses.empty
    assert cachescope.read(recording("2.13.0", "new_graph") / "cache").past_misses.empty
