"""What is predicted for the entries of a baked cache, and what a process then really finds."""

import json
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import cachescope
from cachescope.keys.key_fields import is_of_the_program
from tests.capture.preflights import environment
from tests.programs import ran

pytestmark = [pytest.mark.torch, pytest.mark.sweep]
PROGRAM = Path(__file__).with_name("baked_program.py")
ROOT = PROGRAM.parents[2]
Others = dict[tuple[str, int], Path]


def run(folder: Path, variant: str, cache: Path, threads: int = 2) -> Path:
    """Run the program on a cache; its snapshot and its trace lie in the folder."""
    folder.mkdir()
    traced = {"TORCH_TRACE": str(folder / "trace"), "OMP_NUM_THREADS": str(threads)}
    ran([sys.executable, PROGRAM, folder / "host.json", variant], environment(cache, **traced))
    return folder


@pytest.fixture(scope="module")
def baked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the cache that one process made."""
    folder = tmp_path_factory.mktemp("baked")
    run(folder / "baker", "same", folder / "cache")
    return folder


@pytest.fixture(scope="module")
def others(baked: Path, tmp_path_factory: pytest.TempPathFactory) -> Others:
    """What other processes did, by variant and threads, each on a copy of the cache; two run at a time."""
    runs = [*{(variant, threads) for variant, threads, _ in VARIANTS.values()}]
    runs += [(variant, 2) for variant in (*OFF, "donated")]
    folder = tmp_path_factory.mktemp("others")

    def one(number: int, variant: str, threads: int) -> Path:
        cache = shutil.copytree(baked / "cache", folder / f"cache{number}")
        return run(folder / f"run{number}", variant, cache, threads)

    with ThreadPoolExecutor(2) as pool:
        found = [pool.submit(one, number, *asked) for number, asked in enumerate(runs)]
        return {asked: future.result() for asked, future in zip(runs, found, strict=True)}


VARIANTS = {
    "same": ("same", 2, set()),
    "config": ("config", 2, {"inductor_config[epilogue_fusion]"}),
    "torch_key": ("torch_key", 2, {"torch_version"}),
    "threads": ("same", 1, {"cpp_runtime_thread_count"}),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_what_is_predicted_is_what_the_process_finds(baked: Path, others: Others, name: str) -> None:
    variant, threads, expected_fields = VARIANTS[name]
    before = cachescope.read(baked / "cache")
    other = others[variant, threads]
    predicted = cachescope.will_hit(before, other / "host.json")
    lookups = cachescope.read(other / "trace").lookups
    hit = set(lookups.loc[lookups["outcome"] == "hit", "cache_key"])
    assert len(predicted) == len(before.guards) > 8
    wrong = predicted[predicted["will_hit"] != found_in(predicted, hit)]
    open_ = wrong["will_hit"] == "unknown"
    # Only what was compiled with options of its own is left open, and only where nothing else refuses it.
    assert wrong[~open_].empty, wrong.to_string()
    assert set(wrong["fields"]) <= {("inductor_config[max_fusion_size]",)}
    assert len(wrong) == (2 if not expected_fields else 0)
    refused = predicted[predicted["will_hit"] == "no"]
    assert all(expected_fields <= set(fields) for fields in refused["fields"])
    assert len(refused) == (len(predicted) if expected_fields else 0)
    # The trace of the same process knows which keys were looked up, and with what options.
    assert_agrees_with(cachescope.will_hit(before, other / "trace"), hit)


def found_in(predicted: pd.DataFrame, hit: set[Any]) -> pd.Series:
    return predicted["cache_key"].isin(hit).map({True: "yes", False: "no"})


def assert_agrees_with(predicted: pd.DataFrame, hit: set[Any]) -> None:
    assert (predicted["will_hit"] == found_in(predicted, hit)).all(), predicted.to_string()


# Caches that each variant does not look into, whatever its keys are.
OFF = {
    "force_disabled": {"fxgraph", "aotautograd"}, "fx_off": {"fxgraph", "aotautograd"},
    "aot_off": {"aotautograd"}, "custom_pass": {"fxgraph", "aotautograd"}, "precompile": {"aotautograd"},
}  # fmt: skip


@pytest.mark.parametrize("variant", OFF)
def test_what_is_switched_off_finds_nothing(baked: Path, others: Others, variant: str) -> None:
    before = cachescope.read(baked / "cache")
    other = others[variant, 2]
    lookups = cachescope.read(other / "trace").lookups
    looked_up = lookups.loc[lookups["outcome"] == "hit", "cache"]
    assert set(looked_up) == {"fxgraph", "aotautograd"} - OFF[variant]
    for process in (other / "host.json", other / "trace"):
        predicted = cachescope.will_hit(before, process)
        of_off = predicted[predicted["cache"].isin(OFF[variant])]
        # A trace of bypasses alone does not tell that the next graph will be bypassed as well.
        is_open = process.name == "trace" and variant in ("aot_off", "custom_pass")
        assert set(of_off["will_hit"]) == {"unknown" if is_open else "no"}


def test_options_of_the_only_compile_are_not_taken_for_another_process(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    baker = run(tmp_path / "baker", "one", cache)
    predicted = cachescope.will_hit(cachescope.read(cache), baker / "host.json")
    assert set(predicted["will_hit"]) == {"unknown"}
    assert set(predicted["fields"]) == {
        ("inductor_config[max_autotune]", "inductor_config[coordinate_descent_tuning]")
    }
    other = run(tmp_path / "other", "one", cache)
    assert set(cachescope.read(other / "trace").lookups["outcome"]) == {"hit"}


def test_an_entry_whose_graphs_have_another_key_is_not_found(baked: Path, others: Others) -> None:
    before = cachescope.read(baked / "cache")
    other = others["donated", 2]
    lookups = cachescope.read(other / "trace").lookups
    hit = set(lookups.loc[lookups["outcome"] == "hit", "cache_key"])
    assert set(lookups.loc[lookups["outcome"] == "hit", "cache"]) == {"fxgraph"}
    assert_agrees_with(cachescope.will_hit(before, other / "trace"), hit)
    # A snapshot cannot tell: entries do not store what only AOTAutograd's key has.
    by_snapshot = cachescope.will_hit(before, other / "host.json")
    taken_for_found = by_snapshot.query("will_hit == 'yes' and cache == 'aotautograd'")
    assert all("AOTAutograd fields" in assuming[-1] for assuming in taken_for_found["assuming"])


def test_the_snapshot_has_the_fields_that_the_lookups_of_its_process_have(baked: Path) -> None:
    snapshot = json.loads((baked / "baker" / "host.json").read_text())
    scope = cachescope.read(baked / "baker" / "trace")
    for lookup in scope.lookups[scope.lookups["cache"] == "fxgraph"]["lookup"]:
        details = scope.hash_details(lookup=lookup).set_index("field")["detail_hash"]
        own = {field: hash_ for field, hash_ in details.items() if not is_of_the_program(field)}
        own.pop("inductor_config[max_fusion_size]")
        assert {field: snapshot["key_fields"].get(field) for field in own} == own


def test_a_snapshot_without_fields_is_refused_in_one_line(baked: Path) -> None:
    with pytest.raises(cachescope.CachescopeError, match="does not hold the fields of the keys"):
        cachescope.will_hit(baked / "cache", {"context": {}})


def test_torch_loads_an_entry_under_another_name(baked: Path, tmp_path: Path) -> None:
    cache = shutil.copytree(baked / "cache", tmp_path / "cache")
    files = sorted(path for path in (cache / "fxgraph").rglob("*") if path.is_file())
    files[0].rename(files[0].parent / ("z" * 51))
    files[1].unlink()
    before = cachescope.read(cache)
    renamed, deleted = (path.parent.name for path in files[:2])
    assert renamed not in set(before.removable["path"].str.split("/").str[-2])
    other = run(tmp_path / "other", "same", cache)
    lookups = cachescope.read(other / "trace").lookups
    hit = set(lookups.loc[lookups["outcome"] == "hit", "cache_key"])
    assert renamed in hit and deleted not in hit
    by_snapshot = cachescope.will_hit(before, other / "host.json").set_index("cache_key")["will_hit"]
    assert by_snapshot[renamed] == "unknown"
    # What points to an entry that is gone is not found, although its key was looked up.
    predicted = cachescope.will_hit(before, other / "trace")
    known = predicted[predicted["will_hit"] != "unknown"]
    assert_agrees_with(known, hit)
    assert (known["reason"] == "the FX entry it points to is gone").any()


def test_a_directory_is_no_process(baked: Path) -> None:
    with pytest.raises(cachescope.NotFoundError, match="no run in what was read"):
        cachescope.will_hit(baked / "cache", baked / "cache")


def test_an_unknown_run_is_named(baked: Path) -> None:
    with pytest.raises(cachescope.NotFoundError, match="no run 7"):
        cachescope.will_hit(baked / "cache", baked / "baker" / "trace", run=7)
