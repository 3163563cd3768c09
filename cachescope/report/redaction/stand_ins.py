"""Stand-ins: numbered in order of appearance, one for each text, and the same one at every occurrence."""

from __future__ import annotations

import re
from typing import Final

KINDS: Final = (
    "path",
    "url",
    "user",
    "host",
    "uuid",
    "bus",
    "address",
    "key",
    "secret",
    "function",
    "name",
    "value",
)
STAND_IN: Final = rf"<(?:{'|'.join(KINDS)})-\d{{1,9}}>"
_STAND_IN: Final = re.compile(STAND_IN)


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
