"""What is said at the end: a change that could not be tried is no change that a test noticed."""

from __future__ import annotations

from pathlib import Path

import pytest

from cachescope import wording
from mutants.__main__ import told
from mutants.changes import changes_of
from mutants.trial import NOT_TRIED, Outcome

CHANGE = changes_of(Path(wording.__file__))[0]


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["noticed"] * 9 + ["survived"], 0, "9 of 10 died, 90.0%"),
        (["noticed"] * 8 + ["survived"] * 2, 1, "8 of 10 died, 80.0%"),
        (["noticed"] * 9 + [NOT_TRIED], 2, "only 9 of 10 were tried"),
        (["noticed"] * 9, 2, "only 9 of 10 were tried"),
    ],
)
def test_only_what_was_tried_has_died(
    words: list[str], status: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert told([Outcome(CHANGE, word, 1) for word in words], 10) == status
    assert said in capsys.readouterr().out
