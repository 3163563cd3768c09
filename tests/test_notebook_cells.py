"""What files are called in a line, cells of notebooks among them, and what is the same of a cell in all processes."""

import pytest

from cachescope.notebook_cells import cell_names, code_file, is_cell
from cachescope.wording import short_names

MAC = "/var/folders/1x/T/ipykernel_88/77.py"
WINDOWS = "C:\\Users\\Ann Lee\\AppData\\Local\\Temp\\ipykernel_31\\77.py"


@pytest.mark.parametrize(("files", "names"), [
    ([MAC, WINDOWS, "/tmp/ipykernel_9/78.py"], ["cell 77", "cell 77", "cell 78"]),
    (["/tmp/ipython-input-3599295627.py", "/tmp/ipython-input-4-2084266668.py"], ["cell 3599295627", "cell 2084266668"]),
    (["<ipython-input-4-ff17e79e8559>", "/a/model.py"], ["In [4]", "model.py"]),
    # Two shells, each with a fourth cell; and one cell that was run twice.
    (["<ipython-input-4-ff17e79e8559>", "<ipython-input-4-533cef76fffc>"], ["cell ff17e79e8559", "cell 533cef76fffc"]),
    (["<ipython-input-4-ff17e79e8559>", "<ipython-input-5-ff17e79e8559>"], ["cell ff17e79e8559"] * 2),
    # Files of a program: as much of each path as no other has.
    ([], []),
    (["/a/b/train.py"], ["train.py"]),
    (["/a/x.py", "/b/x.py", "/c/y.py"], ["a/x.py", "b/x.py", "y.py"]),
    (["/x.py", "/a/x.py"], ["/x.py", "a/x.py"]),
    (["C:\\work\\x.py", "/work/y.py"], ["x.py", "y.py"]),
    (["/one/a/x.py", "/two/a/x.py"], ["one/a/x.py", "two/a/x.py"]),
    (["<string>", ""], ["<string>", ""]),
    (["/a/ipykernel_1/model.py", "/b/model.py"], ["ipykernel_1/model.py", "b/model.py"]),
    (["<timed exec>", "/site-packages/ipykernel_launcher.py"], ["<timed exec>", "ipykernel_launcher.py"]),
])  # fmt: skip
def test_each_file_has_a_name_of_its_own(files: list[str], names: list[str]) -> None:
    assert list(short_names(files).values()) == names
    assert list(short_names([*files, *files])) == files
    assert list(cell_names(files)) == [file for file in files if is_cell(file)]


def test_one_cell_is_one_file_in_all_processes() -> None:
    files = (MAC, WINDOWS, "/tmp/ipykernel_9/78.py", "<ipython-input-4-ff1>", "<ipython-input-5-ff1>")
    assert [code_file(file) for file in files] == ["cell 77", "cell 77", "cell 78", "cell ff1", "cell ff1"]
    same = ("/a/model.py", "/a/x.py:3: in /tmp/ipykernel_9/78.py", "/tmp/ipykernel_x/78.py", None)
    assert [code_file(file) for file in same] == list(same)
