"""How texts are taken apart: into runs between blanks and brackets, and runs into words.

The words that are known to be harmless are cut out of cachescope's own texts by the same rules, so that those stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

# What is no ASCII belongs to words, so that no name is cut at an accent, but for the signs of our own texts.
_SIGN: Final = "…–—·×→←≤≥•‘’“”"
_LETTER: Final = rf"(?:\w|(?![{_SIGN}\s])[^\x00-\x7f])"
_ENTITY: Final = r"&#?\w{1,10};"

RUN: Final = rf"(?:{_ENTITY}|[^\s'\"`,;(){{}}\[\]<>|={_SIGN}])+"
WORD: Final = re.compile(rf"{_LETTER}+(?:[.\-]+{_LETTER}+)*")
_RUN: Final = re.compile(RUN)
_BEFORE: Final = "!?*"
_AFTER: Final = ".:!?*"


def trimmed(run: str) -> str:
    """A run without the signs of a sentence around it."""
    return run.lstrip(_BEFORE).rstrip(_AFTER)


def words_of(text: str) -> Iterator[str]:
    """What of a text is known where the text is: its words, and its runs with slashes, colons and the like."""
    for run in _RUN.findall(text):
        yield trimmed(run)
        yield from WORD.findall(run)
