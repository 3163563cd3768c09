"""Pre-flights held against a lock and against a mega-cache, and what torch then really did; and runs, against what was shipped to them or baked."""

import json
import shutil
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import cachescope
from cachescope.keys.key_fields import is_of_the_program
from cachescope.locking.lock import looks_like_lock
from cachescope.scope.preflight import read_preflight
from cachescope.verdict_kinds import ELSEWHERE, OTHER_KEY
from tests.capture.preflights import (
    assert_came_true,
    copied,
    entries_of,
    environment,
    predicted,
    preflown,
    program,
    really,
    told_by,
    traces_in,
)
from tests.programs import ran

pytestmark = [pytest.mark.torch, pytest.mark.sweep]
MEGA = Path(__file__).with_name("mega_program.py")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a cache that a run of `training` made, its lock, and the traces of a pre-flight."""
    folder = tmp_path_factory.mktemp("trained")
    really(program("training"), folder / "cache", folder / "cold")
    # With the variables of the run, which a lock holds.
    told_by(["lock", folder / "cache", "-o", folder / "cache.lock"], environment(folder / "other"))
    preflown(program("training"), folder / "cache", folder / "preflight")
    return folder


def test_what_a_lock_lists_would_hit(trained: Path, tmp_path: Path) -> None:
    assert looks_like_lock(trained / "cache.lock")
    told = predicted(traces_in(trained), trained / "cache.lock")
    assert [way for *_, way in told] == ["hit"] * 5
    cache = copied(trained / "cache", tmp_path / "cache")
    assert_came_true(told, really(program("training"), cache, tmp_path / "real"))
    scope = read_preflight(str(traces_in(trained)), [str(trained / "cache.lock")])
    assert all("cache.lock" in why for why in scope.lookups["prediction"])


@pytest.mark.parametrize("which", ["fxgraph", "aotautograd"])
def test_what_a_lock_does_not_list_would_miss(trained: Path, tmp_path: Path, which: str) -> None:
    cache = copied(trained / "cache", tmp_path / "cache")
    entries_of(cache, which)[0].unlink()
    cachescope.lock(cache, tmp_path / "cache.lock")
    told = predicted(traces_in(trained), tmp_path / "cache.lock")
    assert {way for *_, way in told} == {"hit", "miss"}
    assert_came_true(told, really(program("training"), cache, tmp_path / "real"))


def test_a_changed_config_is_in_no_key_of_the_lock(trained: Path, tmp_path: Path) -> None:
    changed = {"PREFLIGHT_PROGRAM_CONFIG": "epilogue_fusion"}
    traces = preflown(program("training"), trained / "cache", tmp_path / "preflight", **changed)
    assert {way for *_, way in predicted(traces, trained / "cache.lock")} == {"miss"}


@pytest.mark.models
def test_what_guards_a_locked_entry_has_is_not_known(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    really(program("guarded_size"), cache, tmp_path / "first")
    cachescope.lock(cache, tmp_path / "cache.lock")
    traces = preflown(program("guarded_size"), cache, tmp_path / "preflight")
    assert "not_known" in {way for *_, way in predicted(traces, tmp_path / "cache.lock")}
    scope = read_preflight(str(traces), [str(tmp_path / "cache.lock")])
    why = scope.lookups.loc[scope.lookups["outcome"] == "not_known", "prediction"]
    assert all("guards" in one for one in why)


def test_the_command_takes_a_lock(trained: Path) -> None:
    words = [
        "preflight", "--min-hit-rate", "1", "--against", trained / "cache.lock", "--", *program("training"),
    ]  # fmt: skip
    done = told_by(words, environment(trained / "other"))
    assert done.stdout.startswith("a real run would make 5 lookups: 5 would hit, 0 would miss")
    assert f"checked against {trained / 'cache.lock'}" in done.stdout


def ran_mega(how: str, file: Path, cache: Path, **more: str) -> dict[str, int]:
    done = ran([sys.executable, MEGA, how, file], environment(cache, **more))
    found: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    return found


def told_of_mega(traces: Path, file: Path) -> dict[str, int]:
    return dict(Counter(f"{cache} {way}" for cache, _, way in predicted(traces, file)))


def test_what_a_mega_cache_holds_would_hit_once_it_is_loaded(tmp_path: Path) -> None:
    file = tmp_path / "mega.bin"
    assert ran_mega("save", file, tmp_path / "made") == {"fxgraph miss": 2, "aotautograd miss": 1}
    plain = [sys.executable, str(MEGA), "plain", str(file)]
    traces = preflown(plain, tmp_path / "none", tmp_path / "preflight")
    assert told_of_mega(traces, file) == ran_mega("load", file, tmp_path / "loaded")
    assert told_of_mega(traces, file) == {"fxgraph hit": 2, "aotautograd hit": 1}
    assert all(str(file) in why for why in read_preflight(str(traces), [str(file)]).lookups["prediction"])


def test_what_was_shipped_and_not_found_is_told_as_what_it_is(tmp_path: Path) -> None:
    """A mega-cache that was not loaded, one that was loaded beside another option, and a copy of the directory beside that."""
    file, all_missed = tmp_path / "mega.bin", {"fxgraph miss": 2, "aotautograd miss": 1}
    assert ran_mega("save", file, tmp_path / "made") == all_missed

    traces = tmp_path / "not loaded"
    assert ran_mega("plain", file, tmp_path / "plain", TORCH_TRACE=str(traces)) == all_missed
    misses = cachescope.read(file, traces).misses
    assert [*misses["kind"]] == [ELSEWHERE] * 3
    assert all(f"{file} holds what was missed" in reason for reason in misses["reason"])
    assert set(cachescope.read(traces).misses["kind"]) == {""}

    traces, otherwise = tmp_path / "loaded", {"TORCHINDUCTOR_LAYOUT_OPTIMIZATION": "0"}
    assert ran_mega("load", file, tmp_path / "loads", TORCH_TRACE=str(traces), **otherwise) == all_missed
    shutil.copytree(tmp_path / "made", tmp_path / "copy", copy_function=shutil.copyfile)
    for place in (file, tmp_path / "copy"):
        misses = cachescope.read(place, traces).misses
        assert [*misses["kind"]] == [OTHER_KEY] * 3
        assert {*misses["evidence"]} == {"not_known"}
        said = f"{place} holds a key of the same graph that differs in inductor_config[layout_optimization]"
        assert {*misses["reason"]} == {said}
    assert "holds 0 of the 2 FX keys that missed" in str(cachescope.read(file, traces))


def test_a_recorded_run_is_compared_with_what_lay_in_its_directory(tmp_path: Path) -> None:
    file, cache = tmp_path / "mega.bin", tmp_path / "cache"
    ran_mega("save", file, cache)
    words = ["record", "-o", tmp_path / "runs", "--", sys.executable, MEGA, "plain", file]
    told = told_by(words, environment(cache, TORCHINDUCTOR_LAYOUT_OPTIMIZATION="0")).stdout
    assert json.loads(told.splitlines()[0]) == {"fxgraph miss": 2, "aotautograd miss": 1}
    assert "avoidable, by layout_optimization" in told.splitlines()[1]
    joined = " ".join(told.split())
    assert (
        f"compared with what lay in {cache}: cachescope explain {tmp_path / 'runs'} {cache} shows" in joined
    )
    # Without the directory it is said that there was one; with it there is nothing to add.
    for places, is_said in (([tmp_path / "runs"], True), ([tmp_path / "runs", cache], False)):
        joined = " ".join(told_by(["explain", *places], environment(cache)).stdout.split())
        assert (f"not compared with what lay in {cache} before: cachescope explain" in joined) is is_said
    # What lies there by now is not what the run found.
    told = told_by(["record", "-o", tmp_path / "others", *words[3:]], environment(tmp_path / "empty")).stdout
    assert "nothing was recorded before: run it again to have something to compare" in told
    assert "not compared with" not in told


def verified(folder: Path, cache: Path, *more: str, status: int) -> str:
    words = ["verify", folder / "cache.lock", cache, *more, "--preflight", "--", *program("training")]
    return told_by(words, environment(folder / "other"), status).stdout


def test_verify_runs_the_command_against_the_directory(trained: Path, tmp_path: Path) -> None:
    whole = verified(trained, trained / "cache", status=0)
    assert whole.startswith("as locked: ")
    assert "a real run would make 5 lookups: 5 would hit, 0 would miss" in whole

    cache = copied(trained / "cache", tmp_path / "cache")
    entry = entries_of(cache, "fxgraph")[0]
    entry.unlink()
    found = json.loads(verified(trained, cache, "--json", status=3))
    assert [one["kind"] for one in found["findings"]] == ["missing"]
    keys = {(one["cache"], one["cache_key"]) for one in found["preflight"]["missing_keys"]}
    assert ("fxgraph", entry.parent.name) in keys
    went = really(program("training"), cache, tmp_path / "real")
    assert keys == {(cache, key) for cache, key, way in went.lookups if way == "miss"}


def test_what_a_mega_cache_adds_that_the_program_itself_loads_is_not_known(tmp_path: Path) -> None:
    file = tmp_path / "mega.bin"
    ran_mega("save", file, tmp_path / "made")
    loading = [sys.executable, str(MEGA), "load", str(file)]
    traces = preflown(loading, tmp_path / "none", tmp_path / "preflight")
    assert told_of_mega(traces, tmp_path / "none") == {"fxgraph not_known": 2, "aotautograd not_known": 1}
    assert ran_mega("load", file, tmp_path / "none") == {"fxgraph hit": 2, "aotautograd hit": 1}


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
