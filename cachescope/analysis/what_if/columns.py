"""The lookups in time order as columns, which replays work on.

A number that no log has is -1, a time or duration `MISSING`. Texts are numbered.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
import numpy.typing as npt

from cachescope.analysis.history.history import History
from cachescope.terms import FXGRAPH, VLLM

Codes = npt.NDArray[np.int32]
Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

MISSING: Final = -(2**63)
"""The time, and the duration, that no log has."""
NONE: Final = -1


class Texts:
    """A column of texts: the number of each, -1 for a missing one, and the distinct texts by their numbers."""

    def __init__(self, values: Iterable[str | None]) -> None:
        numbers: dict[str, int] = {}
        codes = [NONE if text is None else numbers.setdefault(text, len(numbers)) for text in values]
        self.codes: Codes = np.array(codes, dtype=np.int32)
        self._number = numbers

    def are(self, *texts: str) -> Flags:
        """Which are one of some texts."""
        return np.isin(self.codes, [self._number[text] for text in texts if text in self._number])

    @property
    def is_known(self) -> Flags:
        """Which are not missing."""
        known: Flags = self.codes >= 0
        return known


class LookupColumns:
    """The lookups of a history, by column.

    Attributes
    ----------
    lookup, run : array of int
    time, time_taken_ns : array of int
    outcome, status_detailed : Texts
    aot : array of int
        The index of the AOTAutograd lookup that each was made under; -1 if there is none.
    key : array of int
        A number for the key of each in its cache; -1 for a lookup without a key.
    shows_guards : array of bool
        Which show the guards of an entry.
    is_hit, is_miss, is_fx, is_of_vllm : array of bool
    """

    def __init__(self, history: History) -> None:
        rows = history.lookups
        self._index_of = history.index_of
        self.lookup = _numbers(row.lookup for row in rows)
        self.run = _numbers(row.run for row in rows)
        self.time = _numbers((row.time for row in rows), MISSING)
        self.time_taken_ns = _numbers((row.time_taken_ns for row in rows), MISSING)
        self.outcome = Texts(row.outcome for row in rows)
        self.status_detailed = Texts(row.status_detailed for row in rows)
        self.aot = _numbers(history.aot)
        self.shows_guards: Flags = np.array([row.guards_expr is not None for row in rows], dtype=bool)
        self.is_fx: Flags = np.array([row.cache == FXGRAPH for row in rows], dtype=bool)
        self.is_of_vllm: Flags = np.array([row.cache == VLLM for row in rows], dtype=bool)
        self.is_hit = self.outcome.are("hit")
        self.is_miss = self.outcome.are("full_miss", "guard_miss")
        self.key = _numbers(history.key)

    def __len__(self) -> int:
        return len(self.lookup)

    def places_of(self, lookups: Iterable[int]) -> Numbers:
        """The indexes of lookups, given by their ids; -1 for an id that none has."""
        return _numbers(self._index_of.get(lookup) for lookup in lookups)


def _numbers(values: Iterable[int | None], missing: int = NONE) -> Numbers:
    return np.array([missing if value is None else value for value in values], dtype=np.int64)
