"""How texts are split: into runs between blanks and brackets, and runs into words.

The words known to be harmless are extracted from cachescope's own texts by the same rules, and so are recognised.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

# Non-ASCII characters belong to words, so no name is cut at an accent; the signs of our own texts are excepted.
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
    """The known parts of a text: its words, and its runs with slashes, colons and the like."""
    for run in _RUN.findall(text):
        yield trimmed(run)
        yield from WORD.findall(run)
