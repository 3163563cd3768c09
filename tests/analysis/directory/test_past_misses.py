"""Past misses read from a directory: the fields that made each further entry, against what the log said."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pandas as pd
import pytest

import cachescope
from cachescope.analysis.directory.equal_code import KernelBinaries
from cachescope.answers.directory import past_misses
from cachescope.keys.hashing import entry_name
from cachescope.readers.directory.file_contents import content_hash
from cachescope.report.why_missed import past_lines
from tests.conftest import Directory, Recording


@pytest.mark.slow
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


def test_a_flag_of_the_compiler_leaves_the_source_and_changes_the_kernel(directory: Directory) -> None:
    scope = cachescope.read(directory("compile_flags") / "cache")
    past = scope.past_misses.set_index(scope.past_misses["changed"].map(lambda changed: changed[0]))
    assert set(past["verdict"]) == {"key_changed"}
    assert past["same_code"].tolist() == [True, True]
    tagged = past.loc["cache_key_tag"]
    assert tagged["same_binaries"]
    (one,) = (directory("compile_flags") / "cache").glob("??/cys*.main.so")
    assert tagged["same_code_known_by"] == f"equal code keys; one compiled file for both: {one.name}"
    flagged = past.loc["inductor_config[cpp.enable_unsafe_math_opt_flag]"]
    assert not flagged["same_binaries"]
    assert flagged["same_code_known_by"].startswith("equal code keys; compiled files that differ: ")
    assert one.name in flagged["same_code_known_by"]


def test_two_compiled_files_of_the_same_bytes_are_the_same(directory: Directory, tmp_path: Path) -> None:
    cache = Path(shutil.copytree(directory("compile_flags") / "cache", tmp_path / "cache"))
    one, other = sorted(cache.glob("??/*.main.so"))
    times = other.stat()
    other.write_bytes(one.read_bytes())
    os.utime(other, ns=(times.st_atime_ns, times.st_mtime_ns))
    past = cachescope.read(cache).past_misses
    assert past["same_binaries"].tolist() == [True, True]
    assert "compiled files of the same bytes" in past["same_code_known_by"].iloc[1]


def test_nothing_is_said_of_kernels_that_are_not_there(directory: Directory, tmp_path: Path) -> None:
    cache = Path(shutil.copytree(directory("compile_flags") / "cache", tmp_path / "cache"))
    for file in cache.glob("??/*.main.so"):
        file.unlink()
    past = cachescope.read(cache).past_misses
    assert past["same_code"].tolist() == [True, True]
    assert past["same_binaries"].isna().all()
    for file in cache.glob("??/*.main.cpp"):
        file.unlink()
    told = set(cachescope.read(cache).past_misses["same_code_known_by"])
    assert told == {"equal code keys; no compiled kernel is there to compare"}


def test_times_that_a_copy_lost_are_no_evidence(directory: Directory, tmp_path: Path) -> None:
    cache = Path(shutil.copytree(directory("compile_flags") / "cache", tmp_path / "cache"))
    for file in cache.rglob("*"):
        os.utime(file, ns=(1, 1))
    past = cachescope.read(cache).past_misses
    assert past["same_binaries"].isna().all()
    assert all("several compiled files" in known_by for known_by in past["same_code_known_by"])


def test_a_file_is_read_only_where_one_source_has_several(directory: Directory) -> None:
    asked: list[str] = []
    scope = cachescope.read(directory("compile_flags") / "cache")
    binaries = KernelBinaries(
        scope.tables.entries.rows, scope.linked.rows, lambda path: asked.append(path) or content_hash(path)
    )
    by_flag = {miss.changed[0]: miss for miss in scope.past_misses.itertuples()}
    tagged = by_flag["cache_key_tag"]
    assert binaries.compare(tagged.entry, tagged.baseline_entry, "source").same
    assert asked == []
    flagged = by_flag["inductor_config[cpp.enable_unsafe_math_opt_flag]"]
    assert binaries.compare(flagged.entry, flagged.baseline_entry, "source").same is False
    assert binaries.compare(flagged.entry, flagged.baseline_entry, "source").same is False
    assert sorted(Path(path).name for path in asked) == sorted(
        path.name for path in (directory("compile_flags") / "cache").glob("??/*.main.so")
    )


@pytest.mark.parametrize("venv", ["t2150", "t260"])
def test_equal_bundles_are_equal_kernels(venv: str, directory: Directory) -> None:
    past = cachescope.read(directory("triton_kernels") / f"cache_{venv}").past_misses
    # Before 2.8 entries hold no hash details, and so no past misses.
    assert len(past) == (0 if venv == "t260" else 2)
    assert past["same_binaries"].all()
    assert all("Triton kernels bundled in both" in known_by for known_by in past["same_code_known_by"])


@pytest.mark.slow
def test_what_was_compared_survives_saving(directory: Directory, tmp_path: Path) -> None:
    scope = cachescope.read(directory("compile_flags") / "cache")
    scope.save(tmp_path / "saved")
    pd.testing.assert_frame_equal(cachescope.read(tmp_path / "saved").past_misses, scope.past_misses)
    pd.testing.assert_frame_equal(cachescope.read(tmp_path / "saved").links, scope.links)


def test_another_key_of_equal_fields_is_told_as_such(recording: Recording, tmp_path: Path) -> None:
    """torch hashes one pickle of everything: rarely two keys differ, and no field does."""
    cache = shutil.copytree(recording("2.13.0", "cold_warm") / "cache", tmp_path / "cache")
    (path,) = (path for path in cache.glob("fxgraph/??/*/*") if path.is_file())
    key = path.parent.name
    other = key[0] + "abcd" + key[5:]
    data = path.read_bytes().replace(key.encode(), other.encode())
    folder = cache / "fxgraph" / other[1:3] / other
    folder.mkdir(parents=True)
    (folder / entry_name(data)).write_bytes(data)
    scope = cachescope.read(cache)
    assert scope.past_misses[["verdict", "changed"]].values.tolist() == [["no_detail_differs", ()]]
    assert any("no recorded field does" in line.text for line in past_lines(past_misses(scope)))
    (made,) = scope.past_misses["entry"]
    assert "the graph had been stored under another key: fxgraph" in repr(scope.entry(made))
