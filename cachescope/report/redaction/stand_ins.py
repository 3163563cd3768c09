"""Stand-ins: numbered in order of appearance, one for each text, and the same one at every occurrence, in phrases too."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

KINDS: Final = "path|url|user|host|uuid|bus|address|key|secret|function|name|value"
STAND_IN: Final = rf"<(?:{KINDS})-\d{{1,9}}>"
_STAND_IN: Final = re.compile(STAND_IN)

_BEGINNING: Final = 6


class StandIns:
    """Maps texts to stand-ins. A number shows only which text came first."""

    def __init__(self) -> None:
        self._of: dict[str, str] = {}
        self._count: dict[str, int] = {}
        self._taken: set[str] = set()

    def of(self, kind: str, text: str) -> str:
        """The stand-in of a text; its kind is that of the first occurrence."""
        if _STAND_IN.fullmatch(text):
            return text
        made = self._of.get(text)
        if made is None:
            made = self._of[text] = self._next(kind)
        return made

    def keep(self, text: str) -> str:
        """Keep a text that a source wrote like a stand-in: no other text gets that name."""
        self._taken.add(text)
        return text

    def _next(self, kind: str) -> str:
        while True:
            number = self._count[kind] = self._count.get(kind, 0) + 1
            if (made := f"<{kind}-{number}>") not in self._taken:
                return made


class Phrases:
    """Finds any of many texts: by their beginnings, which are few, because files of one folder begin alike."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = frozenset(texts)
        lengths: dict[str, set[int]] = {}
        for text in self._texts:
            lengths.setdefault(text[:_BEGINNING], set()).add(len(text))
        # Many texts have few lengths: they are looked up, not tried one by one.
        self._lengths = {start: sorted(found, reverse=True) for start, found in lengths.items()}
        longest_first = sorted(lengths, key=len, reverse=True)
        self._beginnings = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def replaced(self, text: str, replace: Callable[[str], str]) -> str:
        """A text with every occurrence of one of them replaced."""
        if self._beginnings is None:
            return text
        parts, done, at = [], 0, 0
        while match := self._beginnings.search(text, at):
            at = match.start()
            ends = (text[at : at + length] for length in self._lengths[match[0]])
            found = next((one for one in ends if one in self._texts), None)
            if found is None:
                at += 1
                continue
            parts += [text[done:at], replace(found)]
            done = at = at + len(found)
        return "".join([*parts, text[done:]])
