"""The Scope: frames that keep their contract, baselines that can be chosen, save and read back; and the public names, loaded at their first use."""

import gzip
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import cachescope
from cachescope.columns import pandas_type
from cachescope.frames.described import FRAMES
from cachescope.rows import columns_of
from cachescope.samples import sample_names
from tests.conftest import Recording

FROM_SOURCES = ("runs", "lookups", "misses", "causes", "entries", "contexts", "devices", "problems")


@pytest.fixture(scope="module")
def scope(recording: Recording) -> cachescope.Scope:
    folder = recording("2.13.0", "three_changes")
    return cachescope.read(folder / "trace", folder / "cache")


@pytest.mark.parametrize("name", FROM_SOURCES)
def test_frames_have_exactly_the_declared_columns_and_types(name: str, scope: cachescope.Scope) -> None:
    frame = getattr(scope, name)
    declared = {column.name: pandas_type(column.dtype) for column in columns_of(FRAMES[name])}
    assert dict(frame.dtypes) == declared


@pytest.mark.parametrize("name", FROM_SOURCES)
def test_columns_that_are_never_missing_are_not(name: str, scope: cachescope.Scope) -> None:
    frame = getattr(scope, name)
    for column in columns_of(FRAMES[name]):
        if column.missing == "never":
            assert frame[column.name].notna().all(), column.name


@pytest.mark.parametrize("name", [*FRAMES, "outcomes", "verdicts", "evidence_kinds", "entry_kinds"])
def test_every_frame_is_described(name: str) -> None:
    described = cachescope.describe(name)
    assert len(described) and described["meaning"].str.len().gt(3).all()


def test_a_frame_that_is_changed_leaves_the_scope_as_it_was(scope: cachescope.Scope) -> None:
    frame = scope.lookups
    frame.loc[:, "outcome"] = "hit"
    assert "full_miss" in set(scope.lookups["outcome"])


def test_empty_sources_give_frames_of_the_same_types(recording: Recording) -> None:
    scope = cachescope.read(recording("2.13.0", "cold_warm") / "cache")
    assert len(scope.lookups) == 0
    declared = {column.name: pandas_type(column.dtype) for column in columns_of(FRAMES["lookups"])}
    assert dict(scope.lookups.dtypes) == declared and "3 entries" in repr(scope)


@pytest.mark.slow
@pytest.mark.parametrize("sample", sample_names())
def test_saved_and_read_back_is_the_same(sample: str, tmp_path: Path) -> None:
    """Every frame of every shipped recording: of logs, directories, snapshots, pre-flights and vLLM."""
    scope = cachescope.read(cachescope.sample(sample))
    scope.save(tmp_path / "saved")
    again = cachescope.read(tmp_path / "saved")
    frames = {name: one for name in FRAMES if isinstance(one := getattr(scope, name, None), pd.DataFrame)}
    assert len(frames) >= 30
    for name, frame in frames.items():
        pd.testing.assert_frame_equal(getattr(again, name), frame)
    assert repr(again) == repr(scope)


def test_what_is_saved_takes_the_place_of_a_saved_scope_and_of_nothing_else(
    scope: cachescope.Scope, tmp_path: Path
) -> None:
    for _ in range(2):
        scope.save(tmp_path / "saved")
    key = scope.lookups["cache_key"].iloc[-1]
    assert cachescope.read(tmp_path / "saved").hash_details(key).equals(scope.hash_details(key))
    (tmp_path / "mine").mkdir()
    with pytest.raises(FileExistsError):
        scope.save(tmp_path / "mine")


def changed_in_last_run(scope: cachescope.Scope) -> set[str]:
    lookups = scope.lookups
    last = lookups[(lookups["run"] == lookups["run"].max()) & (lookups["cache"] == "fxgraph")]["lookup"]
    (changed,) = scope.misses.set_index("lookup").loc[list(last), "changed"]
    return set(changed)


FUSION = "inductor_config[epilogue_fusion]"
REST = {"example_inputs[0]", "deterministic_algorithms_settings", "inductor_config[deterministic]"}


def test_the_baseline_can_be_chosen(scope: cachescope.Scope) -> None:
    assert changed_in_last_run(scope) == REST
    assert changed_in_last_run(scope.with_baseline(0)) == REST | {FUSION}
    assert changed_in_last_run(scope.with_baseline(1)) == REST
    assert changed_in_last_run(scope.with_baseline("nearest")) == REST
    first = scope.lookups["cache_key"].iloc[1]
    assert changed_in_last_run(scope.with_baseline(first[:12])) == REST | {FUSION}


def test_entries_alone_are_a_baseline_for_one_slow_run(recording: Recording, tmp_path: Path) -> None:
    folder = recording("2.13.0", "config_flip")
    traces = sorted((folder / "trace").iterdir(), key=lambda p: p.read_bytes()[:40])
    shutil.copy(traces[1], tmp_path / "slow.log")
    scope = cachescope.read(tmp_path / "slow.log", folder / "cache")
    miss = scope.misses.merge(scope.lookups, on="lookup").query("cache == 'fxgraph'").iloc[0]
    assert miss["verdict"] == "key_changed" and miss["changed"] == (FUSION,)
    assert pd.isna(miss["baseline_lookup"])
    entry = scope.entries.set_index("entry").loc[miss["baseline_entry"]]
    assert entry["cache"] == "fxgraph" and entry["cache_key"] != miss["cache_key"]


def test_an_explanation_tells_field_baseline_and_advice(recording: Recording) -> None:
    explained = cachescope.read(recording("2.13.0", "config_flip") / "trace").explain()
    assert explained.verdict == "key_changed"
    assert explained.frame[["field", "summary"]].values.tolist() == [[FUSION, "True -> False"]]
    text = repr(explained)
    assert "compared with run 0" in text and "torch._inductor.config.epilogue_fusion" in text
    assert "\x1b" not in text


def test_a_hit_is_told_plainly(recording: Recording) -> None:
    warm = cachescope.read(recording("2.13.0", "cold_warm") / "trace")
    assert warm.explain(len(warm.lookups) - 1).verdict is None


def test_hit_rates_by_run_and_cache_add_up(recording: Recording) -> None:
    scope = cachescope.read(recording("2.13.0", "config_flip") / "trace")
    total = scope.hit_rates().iloc[0]
    by_run = scope.hit_rates(by=["run", "cache"])
    assert by_run["lookups"].sum() == total["lookups"] == 6
    assert by_run["hits"].sum() == total["hits"] == 2
    fx = by_run[by_run["cache"] == "fxgraph"].set_index("run")
    assert fx["hit_rate"].tolist() == [0.0, 0.0, 1.0]
    # torch's own measure: what the hit saved is what the first compile took.
    assert fx["time_saved_ns"].loc[2] == fx["time_lost_ns"].loc[0]
    saved, lost = fx["time_saved_ns"].loc[2], fx["time_lost_ns"].sum()
    assert total["time_hit_rate"] == pytest.approx(saved / (saved + lost))
    with pytest.raises(cachescope.NotFoundError):
        scope.hit_rates(by=["nothing"])
    assert scope.hit_rates(by="run").equals(scope.hit_rates(by=["run"]))
    with pytest.raises(cachescope.NotFoundError, match="no column 'rnu'"):
        scope.hit_rates(by="rnu")


def test_a_lookup_is_named_by_a_whole_number(recording: Recording) -> None:
    scope = cachescope.read(recording("2.13.0", "config_flip") / "trace")
    assert repr(scope.explain(np.int64(2))) == repr(scope.explain(2)) == repr(scope.explain("2"))
    with pytest.raises(TypeError, match="float"):
        scope.explain(2.5)  # type: ignore[arg-type]


def test_globs_and_directories_read_the_same(recording: Recording) -> None:
    folder = recording("2.13.0", "config_flip")
    whole = cachescope.read(folder / "trace")
    pd.testing.assert_frame_equal(cachescope.read(folder / "trace" / "*.log").lookups, whole.lookups)
    pd.testing.assert_frame_equal(cachescope.read(folder / "trace", folder / "trace").lookups, whole.lookups)


def test_reading_writes_nothing_into_a_cache(recording: Recording) -> None:
    cache = recording("2.13.0", "training") / "cache"
    before = {p: p.stat().st_mtime_ns for p in [cache, *cache.rglob("*")]}
    scope = cachescope.read(cache)
    assert scope.entries["cache"].value_counts().to_dict() == {"fxgraph": 4, "aotautograd": 2, "code": 2}
    repr(scope)
    assert {p: p.stat().st_mtime_ns for p in [cache, *cache.rglob("*")]} == before


def test_a_snapshot_of_this_torch_becomes_a_context(tmp_path: Path, caching_context: object) -> None:
    snapshot = cachescope.capture()
    (tmp_path / "host.json").write_text(json.dumps(snapshot))
    (context,) = cachescope.read(tmp_path / "host.json").contexts.itertuples()
    assert json.loads(context.inductor_configs) == snapshot["context"]["runtime_context"]["inductor_configs"]
    assert context.torch_version_hash == snapshot["context"]["compile_context"]["torch_version_hash"]
    everything = {"runtime_context": True, "compile_context": True}
    assert cachescope.isolation_key(snapshot["context"]) == caching_context._isolation_key(everything)


def test_a_copy_of_a_trace_is_no_second_process(recording: Recording, tmp_path: Path) -> None:
    folder = recording("2.13.0", "config_flip") / "trace"
    for path in folder.iterdir():
        (tmp_path / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
    scope = cachescope.read(folder, tmp_path)
    assert len(scope.runs) == 3 and len(scope.lookups) == 6
    assert all(len(sources) == 2 for sources in scope.runs["sources"])


def test_ranks_that_share_a_pid_are_told_apart_by_their_moments(recording: Recording, tmp_path: Path) -> None:
    folder = recording("2.13.0", "four_processes")
    for kind in ("trace", "text"):
        for path in (folder / kind).iterdir():
            data = re.sub(rb"(?m)^([VIW]\d{4} \S+) \d+ ", rb"\1 17 ", path.read_bytes())
            (tmp_path / f"{kind}-{path.name}").write_bytes(data)
    scope = cachescope.read(tmp_path)
    assert len(scope.runs) == 8 and len(scope.lookups) == 16
    apart = cachescope.read(folder / "trace", folder / "text")
    for pairs in (scope.runs["sources"], apart.runs["sources"]):
        assert all(len(sources) == 2 for sources in pairs)
    names = [{Path(s).name.split("-")[-1] for s in sources} for sources in scope.runs["sources"]]
    assert names == [{Path(s).name for s in sources} for sources in apart.runs["sources"]]


def test_logs_written_into_the_cache_directory_are_read(recording: Recording, tmp_path: Path) -> None:
    folder = recording("2.13.0", "config_flip")
    cache = Path(shutil.copytree(folder / "cache", tmp_path / "cache"))
    shutil.copytree(folder / "trace", cache / "trace")
    shutil.copy(folder / "text" / "00_cold.log", cache / "train.log")
    scope = cachescope.read(cache)
    assert len(scope.lookups) == 6 and len(scope.runs["sources"].iloc[0]) == 2
    assert set(scope.entries["cache"]) >= {"fxgraph", "aotautograd", "code"}


def test_a_scope_goes_to_another_process_and_is_read_from_a_path_in_bytes() -> None:
    path = cachescope.sample("config_flip")
    scope = cachescope.read(os.fsencode(path))
    told = str(scope.explain()), str(scope.what_if(without="gm"))
    again = pickle.loads(pickle.dumps(scope))
    assert again.sources == scope.sources == (str(path),)
    assert (str(again.explain()), str(again.what_if(without="gm"))) == told
    pd.testing.assert_frame_equal(again.causes, scope.causes)


@pytest.mark.parametrize("source", [["a", "b"], 5, None])
def test_what_is_no_path_is_refused_with_how_to_give_paths(source: object) -> None:
    with pytest.raises(TypeError, match=r"its own argument: use read\(\*paths\) for a list \(.*not "):
        cachescope.read(source)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", cachescope.__all__)
def test_a_public_name_is_there_and_is_what_it_is_called(name: str) -> None:
    assert getattr(getattr(cachescope, name), "__name__", name) == name and name in dir(cachescope)


def test_what_is_no_name_is_refused_as_of_any_module() -> None:
    with pytest.raises(AttributeError, match="module 'cachescope' has no attribute 'raed'"):
        cachescope.raed  # type: ignore[attr-defined]  # noqa: B018 - asked for


@pytest.mark.slow
def test_a_module_of_the_package_is_there_without_an_import_of_its_own() -> None:
    program = "import cachescope; print(cachescope.figures.outcomes.__name__, cachescope.errors.SourceError.__name__)"
    assert subprocess.check_output([sys.executable, "-c", program], text=True) == "outcomes SourceError\n"
