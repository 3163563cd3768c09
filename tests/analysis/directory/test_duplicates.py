"""Duplicates told by names, sizes and guards, against the bytes of the files."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import cachescope
from cachescope.analysis.directory.same_key import BY_CONTENT, BY_KEY, BY_SOURCE
from tests.conftest import Directory, Recording


def files_of(scope: cachescope.Scope, group: tuple[int, ...]) -> list[Path]:
    return [Path(path) for path in scope.entries.set_index("entry").loc[list(group), "path"]]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["torch_2.10.0", "torch_2.13.0", "torch_2.15.0"])
def test_what_is_said_to_be_equal_is_equal_byte_for_byte_and_nothing_is_missed(
    name: str, directory: Directory
) -> None:
    scope = cachescope.read(directory(name))
    duplicates = scope.duplicates
    # A mega-cache was saved from one directory and loaded into another.
    assert set(duplicates["known_by"]) == {BY_CONTENT, BY_SOURCE}
    for group in duplicates[duplicates["known_by"] != BY_KEY].itertuples():
        contents = {path.read_bytes() for path in files_of(scope, group.entries)}
        assert len(contents) == 1
        assert group.saved_bytes == (group.copies - 1) * group.size_bytes
    told = {entry for group in duplicates["entries"] for entry in group}
    graphs = scope.entries[
        scope.entries["cache"].isin(["fxgraph", "aotautograd"]) & (scope.entries["status"] == "ok")
    ]
    contents_of: dict[bytes, list[int]] = {}
    for row in graphs.itertuples():
        contents_of.setdefault(Path(row.path).read_bytes(), []).append(row.entry)
    equal = {entry for group in contents_of.values() if len(group) > 1 for entry in group}
    assert equal <= told


def test_entries_raced_for_are_told_by_key_and_guards(recording: Recording) -> None:
    scope = cachescope.read(recording("2.13.0", "four_processes") / "cache")
    assert set(scope.duplicates["known_by"]) == {BY_KEY}
    assert scope.duplicates["copies"].tolist() == [4, 4]
    for group in scope.duplicates.itertuples():
        sizes = [path.stat().st_size for path in files_of(scope, group.entries)]
        assert group.saved_bytes == sum(sizes[1:])
        assert group.size_bytes == sizes[0]


def test_other_guards_under_one_key_are_no_duplicates(recording: Recording) -> None:
    assert cachescope.read(recording("2.13.0", "dynamic_guards") / "cache").duplicates.empty


def test_a_copied_directory_is_found_whole(recording: Recording, tmp_path: Path) -> None:
    cache = recording("2.13.0", "config_flip") / "cache"
    copy = shutil.copytree(cache, tmp_path / "copy")
    scope = cachescope.read(cache, copy)
    # Compiled libraries and locks are not told by their names.
    hashed = scope.entries[scope.entries["path"].map(lambda path: Path(path).suffix in ("", ".py", ".cpp"))]
    assert scope.duplicates["copies"].tolist() == [2] * (len(hashed) // 2)
    assert scope.duplicates["saved_bytes"].is_monotonic_decreasing
    assert scope.duplicates["saved_bytes"].sum() == hashed["size_bytes"].sum() // 2


def test_entries_of_2_6_have_no_name_that_says_what_is_in_them(recording: Recording, tmp_path: Path) -> None:
    cache = recording("2.6.0", "cold_warm") / "cache"
    entry = next(cache.glob("aotautograd/*/entry"))
    other = tmp_path / "copy" / "aotautograd" / f"a{'b' * 51}"
    other.mkdir(parents=True)
    shutil.copy(entry, other)
    assert cachescope.read(cache, tmp_path / "copy").duplicates.empty
