"""Texts that are not separated into words, such as paths with blanks: found literally, the longest first."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

_BEGINNING: Final = 6


class Phrases:
    """Finds any of many texts: by their beginnings, which are few, because files of one folder begin alike.

    Parameters
    ----------
    texts : iterable of str
    """

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
