"""Folders and paths equal torch's on random input, and none is made; where a file of vLLM is follows from its path."""

from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachescope.keys import get_path
from cachescope.keys.paths import is_in_remote_cache
from cachescope.keys.vllm import PlaceInTree, place_in_tree

NAME = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


@given(
    basename=NAME,
    extension=NAME,
    folder=st.sampled_from(["", "relative", "two/levels", "/absolute", "/", "."]) | NAME,
)
def test_get_path_is_torchs(
    codecache: ModuleType, cache_root: Path, basename: str, extension: str, folder: str
) -> None:
    expected = codecache.get_path(basename, extension, folder)
    assert get_path(basename, extension, folder, cache_root=str(cache_root)) == expected


def test_asking_for_a_path_makes_no_directory(tmp_path: Path) -> None:
    root = tmp_path / "not there"
    key = "c" + "a" * 51
    get_path(key, "py", cache_root=str(root))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("extension", ["py", "main.cpp", "so.load_ok"])
def test_an_extension_may_hold_dots(extension: str) -> None:
    assert get_path("cabc", extension, cache_root="/r")[2] == f"/r/ab/cabc.{extension}"


@pytest.mark.parametrize(("path", "wanted"), [
    ("/c/abc/rank_0_1/backbone/file", ("abc", 0, 1, "backbone")),
    ("/c/abc/rank_12_3/eagle/head/file", ("abc", 12, 3, "eagle/head")),
    ("/c/abc/rank_2_0/file", ("abc", 2, 0, None)),
    ("abc/rank_2_0/file", ("abc", 2, 0, None)),
    # Of two folders with ranks, the inner one.
    ("/c/old/rank_8_8/abc/rank_2_0/backbone/file", ("abc", 2, 0, "backbone")),
    # Without a folder of a rank, only the part of the model is known.
    ("/c/abc/backbone/file", (None, None, None, "backbone")),
    ("rank_2_0/backbone/file", (None, None, None, "backbone")),
    ("backbone/rank_2_0", (None, None, None, "backbone")),
    ("file", (None, None, None, None)),
])  # fmt: skip
def test_the_place_of_a_file(path: str, wanted: tuple[object, ...]) -> None:
    assert place_in_tree(path) == PlaceInTree(*wanted)  # type: ignore[arg-type]


@pytest.mark.parametrize(("path", "is_one"), [
    ("dump.rdb/pt2:fxgraph::f1::c0:c1", True),
    ("dump.rdb/pt2:fxgraph::f1::c0:cache", False),
    ("dump.rdb/pt2:fxgraph:c1", False),
    ("/tmp/pt2/fxgraph/f1::c0:c1", False),
])  # fmt: skip
def test_what_is_a_key_of_a_remote_cache(path: str, is_one: bool) -> None:
    assert is_in_remote_cache(path) == is_one
