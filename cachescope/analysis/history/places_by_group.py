"""Places in time order, grouped by a shared number: answers what came before without a list per group."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

Numbers = npt.NDArray[np.int64]
NONE = -1


def numbered(values: Sequence[Hashable] | Numbers) -> Numbers:
    """A number for each value, from 0: equal values get equal numbers, None gets -1."""
    column = np.empty(len(values), dtype=values.dtype if isinstance(values, np.ndarray) else object)
    column[:] = values
    numbers: Numbers = pd.factorize(column)[0].astype(np.int64)
    return numbers


def paired(first: Numbers, second: Numbers) -> Numbers:
    """One number for each pair, from 0; -1 if the first is -1. A second of -1 is a value like any other."""
    both = first * (int(second.max(initial=0)) + 2) + second + 1
    numbers = np.full(len(first), NONE, dtype=np.int64)
    numbers[first != NONE] = pd.factorize(both[first != NONE])[0]
    return numbers


def firsts(numbers: Numbers) -> Numbers:
    """The first place of each number that counts from 0."""
    found = np.zeros(int(numbers.max(initial=NONE)) + 1, dtype=np.int64)
    found[numbers[::-1]] = np.arange(len(numbers))[::-1]
    return found


def same_before(numbers: Numbers) -> Numbers:
    """For each place, the latest place before it with the same number; -1 if there is none."""
    found = np.full(len(numbers), NONE, dtype=np.int64)
    order = np.argsort(numbers, kind="stable")
    is_same = numbers[order][1:] == numbers[order][:-1]
    found[order[1:][is_same]] = order[:-1][is_same]
    return found


class Grouped:
    """The places 0, 1, 2, … by group; a place whose group is -1 belongs to none.

    Parameters
    ----------
    group : array of int
        The group of each place.
    """

    def __init__(self, group: Numbers) -> None:
        self.group = group
        order = np.argsort(group, kind="stable")
        ends = np.searchsorted(group[order], np.arange(-1, int(group.max(initial=NONE)) + 1), side="right")
        self._places: Numbers = order[ends[0] :]
        self._bounds: list[int] = (ends - ends[0]).tolist()

    def of(self, group: int) -> Numbers:
        """The places of a group, in order."""
        if not 0 <= group < len(self._bounds) - 1:
            return self._places[:0]
        return self._places[self._bounds[group] : self._bounds[group + 1]]

    def before(self, group: int, place: int) -> Numbers:
        """The places of a group that come before a given place."""
        places = self.of(group)
        return places[: places.searchsorted(place)]

    def first(self, groups: Numbers) -> Numbers:
        """The first place of each of the given groups that exists."""
        found: Numbers = self._places[np.array(self._bounds)[groups]]
        return found

    def how_many_before(self, groups: Numbers) -> Numbers:
        """For every place, how many places of the group given for it come before it."""
        count = len(groups)
        keys = self.group[self._places] * count + self._places
        ends = np.searchsorted(keys, groups * count + np.arange(count))
        starts = np.array(self._bounds)[np.clip(groups, 0, len(self._bounds) - 1)]
        found: Numbers = ends - starts
        return found

    def greatest_other_before(self, values: Numbers) -> Numbers:
        """For every place, the greatest earlier value in its group that differs from its own; -1 if there is none.

        Parameters
        ----------
        values : array of int
            The value of each place, from 0.
        """
        found = np.full(len(values), NONE, dtype=np.int64)
        if not len(self._places):
            return found
        mine = values[self._places]
        segment = np.zeros(len(mine), dtype=np.int64)
        segment[self._bounds[1:-1]] = 1
        # Each group is lifted above the one before it, so one running maximum serves all of them.
        floor = np.cumsum(segment) * (int(values.max()) + 2)
        greatest = _before(np.maximum.accumulate(mine + 1 + floor), floor) - floor
        # Values that had been the greatest until then, or did not become it.
        less = np.where(mine + 1 == greatest, 0, np.minimum(mine + 1, greatest))
        second = _before(np.maximum.accumulate(less + floor), floor) - floor
        found[self._places] = np.where(greatest == mine + 1, second, greatest) - 1
        return found


def _before(running: Numbers, floor: Numbers) -> Numbers:
    """A running maximum that excludes the place itself."""
    before: Numbers = np.maximum(np.concatenate([floor[:1], running[:-1]]), floor)
    return before
