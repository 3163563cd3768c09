"""What a file is called in a line: its name, and as much of its path as it takes."""

from __future__ import annotations

import pytest

from cachescope.wording import short_names


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ([], []),
        (["/a/b/train.py"], ["train.py"]),
        (["/a/x.py", "/b/x.py", "/c/y.py"], ["a/x.py", "b/x.py", "y.py"]),
        (["/x.py", "/a/x.py"], ["/x.py", "a/x.py"]),
        (["C:\\work\\x.py", "/work/y.py"], ["x.py", "y.py"]),
        (["/one/a/x.py", "/two/a/x.py"], ["one/a/x.py", "two/a/x.py"]),
        (["<string>", ""], ["<string>", ""]),
    ],
)
def test_the_end_of_a_path_that_no_other_has(files: list[str], expected: list[str]) -> None:
    assert list(short_names(files).values()) == expected
    assert list(short_names([*files, *files])) == files
