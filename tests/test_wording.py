"""Texts made harmless: what is seen of them, what no runner obeys, and what stays as it was."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachescope.errors import RecordError, SourceError
from cachescope.wording import duration, function_name, harmless, harmless_line, without_commands
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
