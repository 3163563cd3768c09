"""Follows the sources of a scope while a job writes them: checks sizes and times, and reads again if they changed."""

from __future__ import annotations

import time
from typing import Final

from cachescope.answers.read import Read
from cachescope.errors import SourceError
from cachescope.readers.stamps import Stamps, stamps

SHORTEST_PAUSE_S: Final = 2.0
PAUSES_PER_WORK: Final = 5
"""A pause is this many times as long as the last look: following takes a sixth of one core at most."""


class Following:
    """The newest reading of the sources of a scope.

    Parameters
    ----------
    scope : Read

    Attributes
    ----------
    scope : Read
        The last reading.
    pause_s : float
        The wait before the next look, in seconds.

    Raises
    ------
    SourceError
        If the scope was recorded in this process and not read.
    """

    def __init__(self, scope: Read) -> None:
        if not scope.sources:
            raise SourceError("this process", "there is no file to follow: it was recorded as it ran")
        self.scope = scope
        self.pause_s = SHORTEST_PAUSE_S
        # No stamps yet: what was written after the first reading must not be missed.
        self._stamps: Stamps | None = None

    def look(self) -> bool:
        """Look once, in any thread; return whether something changed and `scope` is new.

        Raises
        ------
        CachescopeError
            If the sources cannot be read now; the next look tries again.
        """
        began = time.monotonic()
        try:
            now = stamps(self.scope.sources)
            if now == self._stamps:
                return False
            scope = self.scope.read_again()
            # Computed here, where nobody waits for it.
            _ = scope.facts
            self.scope, self._stamps = scope, now
            return True
        finally:
            self.pause_s = max(SHORTEST_PAUSE_S, PAUSES_PER_WORK * (time.monotonic() - began))
