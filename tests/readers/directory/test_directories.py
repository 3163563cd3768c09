"""Whole directories that real torch and Triton left behind: every file is a row, and none is wrongly told; also while torch compiles into one."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import cachescope
from cachescope.frames.directory_rows import EntryRow
from cachescope.readers.directory.cache_dir import read_cache_dir, read_shipped_file
from cachescope.readers.directory.place_of import looks_like_cache_dir
from cachescope.readers.reading import Reading
from cachescope.terms import ENTRY_KINDS
from tests.conftest import DIRECTORIES, Directory
from tests.readings import read_by

NAMES = sorted(path.name.removesuffix(".tar.xz") for path in DIRECTORIES.glob("*.tar.xz"))
WITH_PGO = [name for name in NAMES if name.startswith("torch_") and name != "torch_2.6.0"]


def files_below(folder: Path) -> dict[str, int]:
    """Every file and link, and its size, as the file system says."""
    paths = [os.path.join(place, one) for place, inner, names in os.walk(folder) for one in (*inner, *names)]
    return {path: os.lstat(path).st_size for path in paths if os.path.islink(path) or not os.path.isdir(path)}


def caches_below(folder: Path) -> list[Path]:
    """The outermost folders that hold a cache."""
    if looks_like_cache_dir(str(folder)):
        return [folder]
    return [found for child in sorted(folder.iterdir()) if child.is_dir() for found in caches_below(child)]


def entries_of(folder: Path) -> tuple[list[EntryRow], Reading]:
    reading = Reading()
    for cache in caches_below(folder):
        read_cache_dir(str(cache), reading)
    return list(reading.entries), reading


def of_kind(folder: Path, cache: str) -> list[EntryRow]:
    return [entry for entry in entries_of(folder)[0] if entry.cache == cache]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_file_is_one_row_and_the_sizes_add_up(name: str, directory: Directory) -> None:
    caches = caches_below(directory(name))
    assert caches
    for cache in caches:
        reading = read_by(read_cache_dir, str(cache))
        assert {entry.path: entry.size_bytes for entry in reading.entries} == files_below(cache)
        assert len({entry.path for entry in reading.entries}) == len(reading.entries)


@pytest.mark.parametrize(
    "name", [name if "2.13" in name else pytest.param(name, marks=pytest.mark.slow) for name in NAMES]
)
def test_no_file_that_torch_wrote_is_foreign(name: str, directory: Directory) -> None:
    entries, reading = entries_of(directory(name))
    assert {entry.cache for entry in entries} <= set(ENTRY_KINDS)
    assert [entry.path for entry in entries if entry.status == "foreign"] == []
    # 2.10 leaves an empty file where a result cannot be pickled.
    damaged = [entry for entry in entries if entry.status == "damaged"]
    assert all("unpicklable_result" in entry.path and entry.damage == "empty file" for entry in damaged)
    assert len(reading.problems) == len(damaged)
    temporary = [entry for entry in entries if entry.status == "temporary"]
    assert all(entry.path.endswith(".tmp") for entry in temporary)


def test_the_files_of_a_triton_kernel_share_one_key(directory: Directory) -> None:
    versions = {}
    for cache in caches_below(directory("triton_cross")):
        reading = read_by(read_cache_dir, str(cache), strict=True)
        kernels = [one for one in reading.entries if one.path.endswith("_kernel.json") and one.device_types]
        assert kernels
        for entry in kernels:
            assert entry.cache == "triton"
            assert entry.name in ("add_kernel", "row_sum_kernel")
            assert entry.device_types == ("cuda",)
            assert entry.cache_key == json.loads(Path(entry.path).read_text())["hash"]
            assert entry.detail is not None
            versions[cache.name] = entry.detail
        assert len({entry.cache_key for entry in reading.entries}) == len(list(cache.iterdir()))
    assert {len(next(cache.iterdir()).name) for cache in caches_below(directory("triton_cross"))} == {43, 52}
    assert all("arch 80" in detail or "arch 90" in detail for detail in versions.values())
    assert all("num_warps 4" in detail or "num_warps 8" in detail for detail in versions.values())


def test_a_triton_group_that_was_moved_says_where_from(directory: Directory) -> None:
    entries, _ = entries_of(directory("triton_cross"))
    groups = [entry for entry in entries if "__grp__" in entry.path]
    assert groups
    assert all(entry.detail and "the directory was moved" in entry.detail for entry in groups)


def test_results_of_the_caching_package_are_shown(directory: Directory) -> None:
    entries, _ = entries_of(directory("caching_2.10.0"))
    results = [entry for entry in entries if entry.cache == "caching_package" and entry.status == "ok"]
    assert {entry.name for entry in results} == {"mixed", "plain", "squared", "tagged"}
    assert all(entry.detail and entry.cache_key and len(entry.cache_key) == 32 for entry in results)
    (dump,) = [entry for entry in entries if entry.cache == "imc"]
    assert dump.detail == "17 results"


def test_cutlass_configs_count_their_operations(directory: Directory) -> None:
    configs = of_kind(directory("cutlass_configs"), "cutlass_configs")
    assert configs
    for entry in configs:
        assert entry.detail == f"{len(json.loads(Path(entry.path).read_text()))} operations"
        assert Path(entry.path).name == f"configs_{entry.cache_key}.json"


@pytest.mark.parametrize("name", WITH_PGO)
def test_autotune_timings_become_a_frame(name: str, directory: Directory) -> None:
    scope = cachescope.read(*caches_below(directory(name)))
    timings = scope.autotune
    assert len(timings)
    groups = timings.groupby(["entry", "op", "inputs", "precision"])
    for _, group in groups:
        chosen = group[group["is_chosen"]]
        assert len(chosen) == 1
        assert chosen["time_ms"].iloc[0] == group["time_ms"].min()
        if len(group) > 1:
            second = group["time_ms"].sort_values().iloc[1]
            assert chosen["margin"].iloc[0] == pytest.approx(second / group["time_ms"].min())
    files = scope.entries.set_index("entry").loc[timings["entry"].unique()]
    assert (files["cache"] == "autotune").all()


@pytest.mark.parametrize("name", WITH_PGO)
def test_profile_guided_state_names_its_frames(name: str, directory: Directory) -> None:
    states = of_kind(directory(name), "pgo")
    assert any(entry.detail and "grows (" in entry.detail for entry in states)
    assert all(entry.cache_key for entry in states)


def test_a_job_id_with_a_slash_is_one_key(directory: Directory) -> None:
    (state,) = of_kind(directory("torch_2.6.0"), "pgo")
    assert state.cache_key == "cachescope:job/1:None:"
    assert state.detail is not None
    assert "grows (" in state.detail


def test_memoized_results_show_their_parameters(directory: Directory) -> None:
    entries, _ = entries_of(directory("torch_2.13.0"))
    memoized = [entry for entry in entries if entry.cache == "memoizer"]
    assert {entry.name for entry in memoized} == {"own_memoizer", "should_pad"}
    assert all(entry.detail and " -> " in entry.detail for entry in memoized)
    padded = [entry for entry in memoized if entry.name == "should_pad"]
    assert all(entry.detail and "mat1" in entry.detail for entry in padded)
    (dump,) = [entry for entry in entries if entry.cache == "memoizer_dump"]
    assert dump.detail is not None
    assert "should_pad" in dump.detail
    on_disk = [entry for entry in entries if entry.cache == "on_disk_cache"]
    assert len(on_disk) == 8
    assert all(entry.detail for entry in on_disk)


def test_a_cache_that_a_killed_process_left_in_a_cache_has_its_own_root(directory: Directory) -> None:
    entries, _ = entries_of(directory("torch_2.13.0"))
    nested = [entry for entry in entries if "/cache/tmp" in entry.path]
    assert {entry.cache for entry in nested} == {"code", "lock"}
    assert {Path(entry.root).name[:3] for entry in nested} == {"tmp"}
    assert any(entry.status == "temporary" and entry.cache == "fxgraph" for entry in entries)
    assert any(entry.status == "temporary" and entry.cache == "aotautograd" for entry in entries)
    assert any(entry.cache == "precompile" and entry.detail for entry in entries)
    assert any(entry.cache == "precompiled_header" for entry in entries)


@pytest.mark.slow
@pytest.mark.parametrize("name", WITH_PGO)
def test_a_mega_cache_is_counted(name: str, directory: Directory) -> None:
    for blob in directory(name).glob("*.bin"):
        reading = read_by(read_shipped_file, str(blob))
        (entry,) = reading.entries
        assert (entry.cache, entry.status) == ("mega_cache", "ok")
        assert entry.fx_keys
        assert entry.detail is not None
        assert "inductor" in entry.detail
        assert set(reading.details_of_key) >= set(entry.fx_keys)


def test_a_kernel_of_triton_without_its_group_is_damaged(directory: Directory, tmp_path: Path) -> None:
    """`FileCacheManager.get_group` looks for nothing else; the kernel beside it is as it was."""
    made = next(directory("triton_kernels").glob("cache_*"))
    cache = Path(shutil.copytree(made, tmp_path / "cache"))
    group, other = sorted(cache.rglob("__grp__*.json"))[:2]
    before = cachescope.read(cache)
    group.unlink()
    (other.parent / "tmp.pid_7_ab" / "deep").mkdir(parents=True)
    scope = cachescope.read(cache)
    kernel = group.with_name(group.name.removeprefix("__grp__"))
    (row,) = scope.entries[scope.entries["status"] == "damaged"].itertuples()
    assert (row.path, row.damage) == (str(kernel), f"without {group.name} Triton does not find it")
    # The folder that a process left behind is seen, and is no file that could go.
    (row,) = scope.entries[scope.entries["status"] == "temporary"].itertuples()
    assert (row.path, row.cache) == (str(other.parent / "tmp.pid_7_ab" / "deep"), "triton")
    assert set(scope.removable["path"]) == set(before.removable["path"])


PROGRAM = """
import sys, torch
scale = float(sys.argv[1])
torch.compile(lambda x: (x * scale).relu() + x)(torch.ones(4, 8))
"""
WRITERS = 4


def read(cache: Path) -> Reading:
    return read_by(read_cache_dir, str(cache))


@pytest.mark.torch
@pytest.mark.sweep
def test_four_writers_at_work_are_no_problem(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(cache), "TORCHINDUCTOR_COMPILE_THREADS": "1"}
    command = [sys.executable, "-c", PROGRAM]
    writers = [subprocess.Popen([*command, str(at)], env=environment) for at in range(WRITERS)]
    readings = []
    try:
        while any(writer.poll() is None for writer in writers):
            readings.append(read(cache))
    finally:
        for writer in writers:
            writer.kill()
            writer.wait()
    assert [writer.returncode for writer in writers] == [0] * WRITERS
    sizes = [len(reading.entries) for reading in readings]
    assert len(set(sizes)) > 3, "it was read while it grew"
    assert [problem for reading in readings for problem in reading.problems] == []
    statuses = {entry.status for reading in readings for entry in reading.entries}
    assert statuses <= {"ok", "temporary"}
    found = read(cache)
    assert {entry.status for entry in found.entries} == {"ok"}
    on_disk = [path for path in cache.rglob("*") if path.is_file()]
    sizes = [path.stat().st_size for path in on_disk]
    assert sum(entry.size_bytes or 0 for entry in found.entries) == sum(sizes)
    assert sum(entry.cache == "fxgraph" for entry in found.entries) == WRITERS
