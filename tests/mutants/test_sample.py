"""Which changes are drawn for a seed, and what is printed of them: one that could not be tried is not one that a test noticed."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from cachescope import wording
from cachescope.readers import cache_file
from cachescope.readers.cache_file import DamagedContent
from mutants.__main__ import print_outcomes, sampled
from mutants.changes import changes_of
from mutants.trial import NOT_TRIED, Outcome, _places

CHANGES = changes_of(Path(wording.__file__))


@pytest.mark.parametrize(("words", "status", "said"), [
    (["noticed"] * 9 + ["survived"], 0, "9 of 10 died, 90.0%"),
    (["noticed"] * 8 + ["survived"] * 2, 1, "8 of 10 died, 80.0%"),
    (["noticed"] * 9 + [NOT_TRIED], 2, "only 9 of 10 were tried"),
    (["noticed"] * 9, 2, "only 9 of 10 were tried"),
])  # fmt: skip
def test_only_what_was_tried_has_died(
    words: list[str], status: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert print_outcomes([Outcome(CHANGES[0], word, 1) for word in words], 10) == status
    assert said in capsys.readouterr().out


def test_an_edit_moves_no_other_change_in_or_out() -> None:
    often = Counter((one.function, one.before, one.after) for one in CHANGES)
    before = sampled(CHANGES, 1, 5)
    gone = next(one for one in before if often[one.function, one.before, one.after] == 1)
    moved = [replace(one, line=one.line + 2, place=one.place + 7) for one in CHANGES if one is not gone]
    wanted = [(one.function, one.before) for one in before if one is not gone]
    assert [(one.function, one.before) for one in sampled(moved, 1, 4)] == wanted


def test_a_smaller_sample_is_a_part_of_a_larger_one_and_another_seed_is_another_sample() -> None:
    assert set(sampled(CHANGES, 1, 5)) < set(sampled(CHANGES, 1, 10))
    assert sampled(CHANGES, 1, 10) != sampled(CHANGES, 2, 10)


def test_without_a_call_of_super_a_function_closes_over_as_much() -> None:
    """Else it could not take the changed code."""
    (change,) = [one for one in changes_of(Path(cache_file.__file__)) if one.after == "__class__"]
    (code,) = [code for (_, name, _), code in _places(change.code()) if name == "DamagedContent.__init__"]
    assert code.co_freevars == DamagedContent.__init__.__code__.co_freevars != ()
    assert "super" not in code.co_names
