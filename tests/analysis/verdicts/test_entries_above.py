"""AOTAutograd misses against a directory: its entries say nothing of their keys, those of the graphs below them do.

What really changed is known from the details that torch recorded of both keys.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pandas as pd
import pytest

import cachescope
from cachescope.samples import sample
from tests.conftest import Recording
from tests.made import aot, entry, fx, miss_rows, run, scope_of

CHANGED = ("cpp_runtime_thread_count", "inductor_config[epilogue_fusion]")
"""What the recorded pre-flight had changed: it ran with one thread and without this fusion."""


@pytest.fixture
def foretold(tmp_path: Path) -> Path:
    """A real cache, which a run without a recording made, and the traces of a pre-flight under other settings."""
    return shutil.copytree(sample("foretold"), tmp_path / "foretold")


def aot_misses(scope: cachescope.Scope, run: int) -> pd.DataFrame:
    """The AOTAutograd misses of one run, by their keys."""
    found = scope.misses.merge(scope.lookups[["lookup", "run", "cache", "cache_key"]], on="lookup")
    return found[(found["cache"] == "aotautograd") & (found["run"] == run)].set_index("cache_key")


def without_earlier_runs(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The AOTAutograd misses of the last run: as its trace and the directory tell, and as all traces do."""
    every = cachescope.read(folder / "trace", folder / "cache")
    last = every.runs.sort_values("start_time").iloc[-1]
    alone = cachescope.read(last["source"], folder / "cache")
    told = aot_misses(alone, 0)
    assert len(told)
    return told, aot_misses(every, last["run"]).loc[told.index]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("bypass_custom_pass", marks=pytest.mark.slow),
        pytest.param("combined", marks=pytest.mark.slow),
        pytest.param("isolation_context", marks=pytest.mark.slow),
        pytest.param("matmul_precision", marks=pytest.mark.slow),
        pytest.param("options_undone", marks=pytest.mark.slow),
        "rank_in_config",
        pytest.param("three_changes", marks=pytest.mark.slow),
        pytest.param("tour", marks=pytest.mark.slow),
    ],
)
def test_what_changed_in_the_graphs_changed_in_the_key_above_them(recording: Recording, name: str) -> None:
    told, recorded = without_earlier_runs(recording("2.13.0", name))
    assert set(recorded["verdict"]) == {"key_changed"}
    assert set(told["verdict"]) == {"key_changed"}
    assert set(told["evidence"]) == {"inferred"}
    for ours, torchs in zip(told["changed"], recorded["changed"], strict=True):
        assert ours
        assert set(ours) <= set(torchs)


@pytest.mark.parametrize(
    "name",
    [
        "captured_tensor",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("graph_constant", "nearest_inputs", "rename_argument")
        ),
    ],
)
def test_a_graph_is_not_called_new_where_nothing_tells(recording: Recording, name: str) -> None:
    told, recorded = without_earlier_runs(recording("2.13.0", name))
    assert set(recorded["verdict"]) == {"key_changed"}
    assert set(told["verdict"]) == {"first_lookup"}
    assert set(told["evidence"]) == {"not_known"}


def test_the_misses_of_the_graphs_are_its_cause(foretold: Path) -> None:
    scope = cachescope.read(foretold)
    misses = aot_misses(scope, 0)
    assert misses["changed"].tolist() == [CHANGED] * 2
    # The graphs have baselines whose values can be shown.
    assert not misses["root"].any()
    assert scope.causes["fields"].tolist() == [CHANGED]


@pytest.mark.parametrize("gone", ["aotautograd", "fxgraph"])
def test_without_entries_that_tell_nothing_is_known(foretold: Path, gone: str) -> None:
    shutil.rmtree(foretold / "cache" / gone)
    misses = aot_misses(cachescope.read(foretold), 0)
    assert set(misses["verdict"]) == {"first_lookup"}
    assert set(misses["evidence"]) == {"not_known"}


def test_in_an_empty_directory_the_graph_is_new(foretold: Path) -> None:
    for which in ("aotautograd", "fxgraph"):
        shutil.rmtree(foretold / "cache" / which)
    misses = aot_misses(cachescope.read(foretold), 0)
    assert set(misses["verdict"]) == {"first_lookup"}
    assert set(misses["evidence"]) == {"inferred"}


@pytest.mark.parametrize(
    ("stored", "evidence"), [(None, "not_known"), (50, "not_known"), (100, "not_known"), (200, "inferred")]
)
def test_what_was_stored_after_a_miss_could_not_be_found(stored: float | None, evidence: str) -> None:
    """An entry made by a run that nothing recorded, and a miss; made by hand."""
    key = {"gm": "code", "x": "1"}
    looked_up = run(aot("a11", details=key, at=100, took=3), fx("f11", details=key, at=101, took=1))
    above, _ = miss_rows(scope_of(looked_up, entries=[entry("aotautograd", "a99", at=stored)]))
    assert (above["verdict"], above["evidence"]) == ("first_lookup", evidence)
