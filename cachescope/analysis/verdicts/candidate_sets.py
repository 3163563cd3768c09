"""The sets of hash details of all candidates of one graph, and which of them is nearest to a lookup."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from cachescope.analysis.fields import is_input
from cachescope.analysis.history.places_by_group import NONE, Numbers, same_before
from cachescope.analysis.verdicts.field_differences import FieldDifferences, Flags
from cachescope.details import HashDetails


class CandidateSets:
    """Lookups and entries with their sets.

    Parameters
    ----------
    details : HashDetails
    places, sets : array of int
        The lookups, in time order, and the set of each.
    entries : mapping
        The set of each entry.
    """

    def __init__(
        self, details: HashDetails, places: Numbers, sets: Numbers, entries: Mapping[int, int]
    ) -> None:
        self._details = details
        self._places = places
        every = np.concatenate([sets, np.array(list(entries.values()), dtype=np.int64)])
        self._sets, numbers = np.unique(every, return_inverse=True)
        self._of_place: Numbers = numbers[: len(places)]
        self._of_entry = dict(zip(entries, numbers[len(places) :].tolist(), strict=True))

    def near(self, lookups: Numbers) -> Numbers:
        """For each lookup, the place of the latest before it with the same set, or else with one other field; -1 if none."""
        found = self._near[self._places.searchsorted(lookups)]
        return np.where(found == NONE, NONE, self._places[found])

    @cached_property
    def _near(self) -> Numbers:
        latest = np.full(len(self._places), NONE, dtype=np.int64)
        for numbers in self._differences.without_each():
            latest = np.maximum(latest, same_before(numbers[self._of_place]))
        equal = same_before(self._of_place)
        return np.where(equal == NONE, latest, equal)

    def nearest(self, at: int, lookups: Numbers, entries: Sequence[int]) -> tuple[int, int]:
        """The place of a lookup, or an entry, with the fewest changed fields; among equals the latest, lookups first.

        Of the two numbers one is -1, and both are if there are no candidates.
        """
        if not len(lookups) and not entries:
            return NONE, NONE
        end = int(self._places.searchsorted(at))
        sets = self._of_place[:end] if len(lookups) == end else self._of_places(lookups)
        if not entries and (len(sets) == 1 or (sets == sets[0]).all()):
            return int(lookups[-1]), NONE
        changed, _ = self._differences.counts(int(self._of_place[end]))
        best = None if not len(lookups) else _last_smallest(changed[sets])
        if entries:
            stored = changed[[self._of_entry[entry] for entry in entries]]
            nearest = _last_smallest(stored)
            if best is None or stored[nearest] < changed[sets[best]]:
                return NONE, entries[nearest]
        return (NONE if best is None else int(lookups[best])), NONE

    def nearer(
        self, lookups: Numbers, baselines: Numbers, may_be: Flags, is_other_call: Flags, is_of_run: Flags
    ) -> tuple[Numbers, Numbers]:
        """For each lookup, one of those right before it that differs from it in fewer fields than its baseline does.

        Parameters
        ----------
        lookups : array of int
            Their places.
        baselines : array of int
            The set of the baseline of each.
        may_be, is_other_call, is_of_run : array of bool
            For each lookup, one flag for each of the lookups right before it, the nearest last: whether that one may be
            chosen, whether it may not if only inputs differ, and whether it is of the same run. What another call of the
            same run has otherwise is no change since the run before: such a key is nearer only by changes of the baseline.

        Returns
        -------
        nearer, apart : array of int
            The place of the nearer one (-1 if none), and how many fields separate each lookup from its baseline.
        """
        at = self._places.searchsorted(lookups)
        numbers = self._sets.searchsorted(baselines)
        nearer, apart = self._differences.nearer(
            self._of_place, at, numbers, may_be, ~is_other_call, is_of_run
        )
        return np.where(nearer == NONE, NONE, self._places[nearer]), apart

    def before(self, lookups: Numbers, count: int) -> Numbers:
        """The places of the `count` lookups right before each lookup; arbitrary places if there are fewer."""
        at = self._places.searchsorted(lookups)[:, None] + np.arange(-count, 0)
        found: Numbers = self._places[np.maximum(at, 0)]
        return found

    def only_inputs_differ(self, at: int, lookups: Numbers) -> Flags:
        """Which lookups differ only in fields that describe the inputs, and in at least one."""
        changed, others = self._differences.counts(self._of(at))
        only_inputs: Flags = (changed > 0) & (others == 0)
        return only_inputs[self._of_places(lookups)]

    @cached_property
    def _differences(self) -> FieldDifferences:
        return FieldDifferences(self._details, self._sets.tolist(), is_input)

    def _of(self, at: int) -> int:
        return int(self._of_place[self._places.searchsorted(at)])

    def _of_places(self, lookups: Numbers) -> Numbers:
        return self._of_place[self._places.searchsorted(lookups)]


def _last_smallest(values: Numbers) -> int:
    return len(values) - 1 - int(np.argmin(values[::-1]))
