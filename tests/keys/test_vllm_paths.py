"""Where a file of vLLM is, by its path alone."""

from __future__ import annotations

import pytest

from cachescope.keys.vllm import PlaceInTree, place_in_tree


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
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
    ],
)
def test_the_place_of_a_file(path: str, wanted: tuple[object, ...]) -> None:
    assert place_in_tree(path) == PlaceInTree(*wanted)  # type: ignore[arg-type]
