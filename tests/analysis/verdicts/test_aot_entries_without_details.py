"""AOTAutograd misses against a directory: its entries say nothing of their keys, those of the graphs below them do.

What really changed is known from the details that torch recorded of both keys.
"""

import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import cachescope
from cachescope.frames.directory_rows import EntryRow
from cachescope.samples import sample
from tests.conftest import Recording
from tests.made import CODE, Details, aot, entry, fx, miss_rows, run, scope_of

CHANGED = ("cpp_runtime_thread_count", "inductor_config[epilogue_fusion]")
"""What the recorded pre-flight had changed: it ran with one thread and without this fusion."""


@pytest.fixture
def predicted(tmp_path: Path) -> Path:
    """A real cache, which a run without a recording made, and the traces of a pre-flight under other settings."""
    return shutil.copytree(sample("preflight"), tmp_path / "cache")


def aot_misses(scope: cachescope.Scope, run: int) -> pd.DataFrame:
    found = scope.misses.merge(scope.lookups[["lookup", "run", "cache", "cache_key"]], on="lookup")
    return found[(found["cache"] == "aotautograd") & (found["run"] == run)].set_index("cache_key")


def without_earlier_runs(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The AOTAutograd misses of the last run: as its trace and the directory tell, and as all traces do."""
    every = cachescope.read(folder / "trace", folder / "cache")
    last = every.runs.sort_values("start_time").iloc[-1]
    told = aot_misses(cachescope.read(last["source"], folder / "cache"), 0)
    assert len(told)
    return told, aot_misses(every, last["run"]).loc[told.index]


@pytest.mark.parametrize("name", [
    "rank_in_config",
    *(
        pytest.param(name, marks=pytest.mark.slow)
        for name in (
            "bypass_custom_pass", "combined", "isolation_context", "matmul_precision", "options_undone",
            "three_changes", "tour",
        )
    ),
])  # fmt: skip
def test_what_changed_in_the_graphs_changed_in_the_key_above_them(recording: Recording, name: str) -> None:
    told, recorded = without_earlier_runs(recording("2.13.0", name))
    assert set(recorded["verdict"]) == {"key_changed"}
    assert set(told["verdict"]) == {"key_changed"}
    assert set(told["evidence"]) == {"inferred"}
    for ours, torchs in zip(told["changed"], recorded["changed"], strict=True):
        assert ours
        assert set(ours) <= set(torchs)


SLOW = ("graph_constant", "nearest_inputs", "rename_argument")


@pytest.mark.parametrize(
    "name", ["captured_tensor", *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)]
)
def test_a_graph_is_not_called_new_where_nothing_tells(recording: Recording, name: str) -> None:
    told, recorded = without_earlier_runs(recording("2.13.0", name))
    assert set(recorded["verdict"]) == {"key_changed"}
    assert set(told["verdict"]) == {"first_lookup"}
    assert set(told["evidence"]) == {"not_known"}


def test_the_misses_of_the_graphs_are_its_cause(predicted: Path) -> None:
    scope = cachescope.read(predicted)
    misses = aot_misses(scope, 0)
    assert misses["changed"].tolist() == [CHANGED] * 2
    # The graphs have baselines whose values can be shown.
    assert not misses["root"].any()
    assert scope.causes["fields"].tolist() == [CHANGED]


@pytest.mark.parametrize(
    ("gone", "evidence"),
    [(["aotautograd"], "not_known"), (["fxgraph"], "not_known"), (["aotautograd", "fxgraph"], "inferred")],
)
def test_without_entries_a_graph_is_new_or_not_known(predicted: Path, gone: list[str], evidence: str) -> None:
    for cache in gone:
        shutil.rmtree(predicted / "cache" / cache)
    misses = aot_misses(cachescope.read(predicted), 0)
    assert set(zip(misses["verdict"], misses["evidence"], strict=True)) == {("first_lookup", evidence)}


OTHER: Details = {"gm": "def forward(self, y):\n    return (torch.fft.fft(y),)"}


@pytest.mark.parametrize(("entries", "evidence"), [
    ([], "inferred"),
    # Of another graph is an entry whose graphs are known, and are others.
    ([entry("aotautograd", "a2", at=1, fx_keys=("f2",)), entry("fxgraph", "f2", OTHER, at=1)], "inferred"),
    ([entry("aotautograd", "a2", at=1, fx_keys=("f2",)), entry("fxgraph", "f2", at=1)], "not_known"),
    ([entry("aotautograd", "a2", at=1, fx_keys=("f2",))], "not_known"),
    # One that names none may be of any graph; of one that was stored later, this is no question.
    ([entry("aotautograd", "a2", at=1)], "not_known"),
    ([entry("aotautograd", "a2", at=50)], "inferred"),
])  # fmt: skip
def test_a_graph_is_new_where_each_entry_is_known_to_be_of_another(
    entries: list[tuple[EntryRow, Details | None]], evidence: str
) -> None:
    details = {"gm": CODE}
    made = run(aot("a1", details=details, at=9), fx("f1", details=details, at=9), cache_dir="/cache")
    above = miss_rows(scope_of(made, entries=entries))[0]
    assert (above["verdict"], above["evidence"]) == ("first_lookup", evidence)


@pytest.mark.parametrize(("is_there", "changed"), [(True, ("x",)), (False, ("gm",))])
def test_an_entry_of_this_form_says_more_than_another_form(is_there: bool, changed: tuple[str, ...]) -> None:
    """It was compiled with another graph before, and in the directory there is this one with another x."""
    sides = [{"gm": gm, "x": "2"} for gm in (OTHER["gm"], CODE)]
    lookups = []
    for at, details in enumerate(sides):
        told: dict[str, Any] = {"details": details, "compile_id": f"0/{at}"}
        lookups += [aot(f"a{at}", at=10 * at, **told), fx(f"f{at}", at=10 * at + 1, took=1.0, **told)]
    entries = [
        entry("aotautograd", "a9", at=-9, fx_keys=("f9",)),
        entry("fxgraph", "f9", {"gm": CODE, "x": "1"}, at=-8),
    ]
    rows = miss_rows(scope_of(run(*lookups, cache_dir="/cache"), entries=entries if is_there else []))
    (above,) = (row for row in rows if row["lookup"] == 2)
    assert (above["verdict"], above["changed"]) == ("key_changed", changed)


@pytest.mark.parametrize(("outcomes", "evidence"), [
    (["full_miss"], "inferred"),
    (["full_miss", "hit"], "inferred"),
    # It was there before it was missed, as another process wrote it.
    (["hit"], "not_known"),
    (["hit", "full_miss"], "not_known"),
])  # fmt: skip
def test_an_entry_that_a_recorded_miss_wrote_is_represented_by_it(outcomes: list[str], evidence: str) -> None:
    details = {"gm": CODE}
    others = [
        run(aot("a2", outcome, OTHER, at=at), cache_dir="/cache") for at, outcome in enumerate(outcomes)
    ]
    made = run(aot("a1", details=details, at=9), fx("f1", details=details, at=9), cache_dir="/cache")
    scope = scope_of(*others, made, entries=[entry("aotautograd", "a2", at=0.5)])
    (above,) = (row for row in miss_rows(scope) if row["lookup"] == len(outcomes))
    assert (above["verdict"], above["evidence"]) == ("first_lookup", evidence)
