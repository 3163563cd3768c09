"""Texts made harmless: what is seen of them, what no runner obeys, and what stays as it was; and what files are called in a line, cells of notebooks among them."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachescope.errors import RecordError, SourceError
from cachescope.notebook_cells import cell_names, code_file, is_cell
from cachescope.wording import duration, function_name, harmless, harmless_line, short_names, without_commands
from tests.hostile_texts import TEXTS
from tests.output_gates import acting_in, commands_in, unseen_in

ANY = st.text(alphabet=st.characters(codec=None, exclude_categories=()), max_size=60)
PIECES = [
    "::", "##", "[", "vso", "[x]", "---", "+++", "~~~", "^^^ +++", "section_start:1", "teamcity[",
    "travis_fold:", " ",
]  # fmt: skip
PIECES += [
    "\n", "\r", "\t", "\u2028", "\x85", "\x1b[0K", "\u200b", "\xa0", "\u3000", "a", "error", "\ud800",
    "\u202e",
]  # fmt: skip
MADE = st.lists(st.sampled_from(PIECES), max_size=20).map("".join)


@given(ANY | MADE)
def test_nothing_in_any_text_is_unseen(text: str) -> None:
    shown = harmless(text)
    assert unseen_in(shown) == [] and harmless(shown) == shown
    shown.encode("utf-8")


@given(ANY | MADE)
def test_no_line_of_any_text_acts(text: str) -> None:
    line = harmless_line(text)
    assert acting_in(line) == [] and "\n" not in line
    assert harmless_line(line) == line
    lines = without_commands(harmless(text))
    assert commands_in(lines) == []
    # As many lines as before: nothing was joined.
    assert lines.count("\n") == text.count("\n")


@pytest.mark.parametrize("name", TEXTS)
def test_every_hostile_text_is_shown_as_one_line(name: str) -> None:
    assert acting_in(harmless_line(TEXTS[name])) == []
    assert acting_in(without_commands("\n".join(map(harmless_line, TEXTS[name].split("\n"))))) == []


@pytest.mark.parametrize(
    "text", ["", "a: b, c::d", "# 1 [x]", "--with", "naïve 日本語 🙂 x ± 1 €", "a\tb", "a\xa0b"]
)
def test_other_texts_stay_as_they_are(text: str) -> None:
    assert harmless_line(text) == text


def test_a_megabyte_is_cut_and_its_length_told() -> None:
    line = harmless_line("é" * 1_000_000)
    assert len(line) < 21_000 and line.endswith("… (2.0 MB)")


def test_an_exception_is_one_harmless_line_and_keeps_what_was_read() -> None:
    for text in TEXTS.values():
        for error in (SourceError(text, text), RecordError(text, text, "kind", text)):
            assert acting_in(str(error)) == [] and "\n" not in str(error)
            assert error.source == text


@pytest.mark.parametrize(("ns", "text"), [
    (0, "0 ms"), (999_400_000, "999 ms"), (999_500_000, "1.0 s"), (59_949_000_000, "59.9 s"),
    (59_950_000_000, "1 min"), (113_500_000_000, "1 min 54 s"), (3_599_400_000_000, "59 min 59 s"),
    (3_599_500_000_000, "1 h"), (100 * 3600 * 10**9 + 60 * 10**9, "100 h 1 min"),
])  # fmt: skip
def test_a_duration_never_says_60_of_a_unit(ns: int, text: str) -> None:
    assert duration(ns) == text


@pytest.mark.parametrize(("classes", "named"), [
    (["Net"], "Net.forward"),
    # A compile that did not end has written no guards.
    ([None, "Net", "Net"], "Net.forward"),
    # A method that subclasses share.
    (["Net", "Other"], "forward"),
    ([None], "forward"),
])  # fmt: skip
def test_a_method_is_named_with_the_one_class_that_is_known(classes: list[str | None], named: str) -> None:
    assert function_name(*(SimpleNamespace(function="forward", class_name=one) for one in classes)) == named
    assert function_name(SimpleNamespace(function="of_a_symbol")) == "of_a_symbol"
    assert function_name(*(SimpleNamespace(function=None, class_name=one) for one in classes)) is None


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
