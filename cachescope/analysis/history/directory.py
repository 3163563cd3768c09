"""What lies in a cache directory under keys that count as one, as lookups are played into it in time order."""

from __future__ import annotations

from collections import Counter
from heapq import heappop, heappush
from typing import Final, Literal

NEVER: Final = 2**31 - 1
"""The time of what does not happen."""
NO_GUARDS: Final = 0
"""The number of the guards of an entry that has none."""
NOT_KNOWN: Final = -1
"""For an entry of unknown guards, or one that may not exist."""
_ANY: Final = -2

Found = Literal["hit", "miss", "unknown"]


class Directory:
    """The entries that exist at one time, under keys that differed when they were recorded.

    Guards are numbers. Whether the guards of an entry hold is known if the entry has none, or if the lookup compiled the same
    guards itself. In all other cases it depends on sizes, which no log has.
    """

    def __init__(self) -> None:
        # How many entries there are: by guards, and by guards and key.
        self._count: Counter[tuple[int, int | None]] = Counter()
        self._going: list[tuple[int, int, int]] = []

    def store(self, key: int, guards: int, gone: int = NEVER) -> None:
        """Store an entry under a key, which is there until something from outside removes it."""
        self._change(key, guards, 1)
        if gone < NEVER:
            heappush(self._going, (gone, key, guards))

    def would_find(self, key: int, at: int, guards: int) -> Found:
        """What a lookup that missed its own key finds among the entries of the others.

        Parameters
        ----------
        key : int
            Its own key: the entries under it did not serve, as was recorded.
        at : int
            When it is made; not before any lookup made earlier.
        guards : int
            The guards that it compiled itself.
        """
        while self._going and self._going[0][0] <= at:
            _, of_key, of_entry = heappop(self._going)
            self._change(of_key, of_entry, -1)
        if self._has_other(key, NO_GUARDS) or (guards != NOT_KNOWN and self._has_other(key, guards)):
            return "hit"
        return "unknown" if self._has_other(key, _ANY) else "miss"

    def _has_other(self, key: int, guards: int) -> bool:
        count = self._count
        return count[guards, None] > count[guards, key]

    def _change(self, key: int, guards: int, more: int) -> None:
        for kind in (_ANY,) if guards == NOT_KNOWN else (_ANY, guards):
            self._count[kind, None] += more
            self._count[kind, key] += more
