"""The sets of hash details of all candidates of one graph, and which of them is the nearest to a lookup."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from cachescope.analysis.field_differences import FieldDifferences
from cachescope.analysis.fields import is_input
from cachescope.analysis.grouped import Numbers
from cachescope.details import HashDetails


class CandidateSets:
    """Lookups and entries by their sets.

    Parameters
    ----------
    details : HashDetails
    lookups, entries : mapping
        The set of each lookup, by its place, in the order of time; and of each entry.
    """

    def __init__(self, details: HashDetails, lookups: Mapping[int, int], entries: Mapping[int, int]) -> None:
        self._details = details
        self._places: Numbers = np.fromiter(lookups, dtype=np.int64)
        sets = np.array([*lookups.values(), *entries.values()], dtype=np.int64)
        self._sets, numbers = np.unique(sets, return_inverse=True)
        self._of_place: Numbers = numbers[: len(lookups)]
        self._of_entry = dict(zip(entries, numbers[len(lookups) :].tolist(), strict=True))

    def nearest(self, at: int, lookups: Numbers, entries: Sequence[int]) -> tuple[int | None, int | None]:
        """The place of a lookup, or an entry, with the fewest changed fields; of equals the latest, lookups first."""
        if not len(lookups) and not entries:
            return None, None
        sets = self._of_places(lookups)
        if not entries and (len(sets) == 1 or (sets == sets[0]).all()):
            return int(lookups[-1]), None
        changed, _ = self._differences.counts(self._of(at))
        best = None if not len(lookups) else _last_smallest(changed[sets])
        if entries:
            stored = changed[[self._of_entry[entry] for entry in entries]]
            nearest = _last_smallest(stored)
            if best is None or stored[nearest] < changed[sets[best]]:
                return None, entries[nearest]
        return (None if best is None else int(lookups[best])), None

    def nearest_within(self, at: int, lookups: Numbers, fields: Sequence[str]) -> int | None:
        """The place of the lookup with the fewest changed fields, if all of them are among some and fewer."""
        if not len(lookups):
            return None
        changed, is_within = self._differences.counts_within(self._of(at), self._of_places(lookups), fields)
        chosen = np.flatnonzero(is_within & (changed > 0) & (changed < len(fields)))
        return int(lookups[chosen[np.argmin(changed[chosen])]]) if len(chosen) else None

    def nearest_below(self, at: int, lookups: Numbers, most: int) -> int | None:
        """The place of the lookup with the fewest changed fields, of these the latest, if they are fewer than `most`."""
        if not len(lookups):
            return None
        changed, _ = self._differences.counts(self._of(at))
        counts = changed[self._of_places(lookups)]
        nearest = _last_smallest(np.where(counts > 0, counts, most))
        return int(lookups[nearest]) if 0 < counts[nearest] < most else None

    def only_inputs_differ(self, at: int, lookups: Numbers) -> npt.NDArray[np.bool_]:
        """Which lookups differ, and in fields alone that describe the inputs."""
        changed, others = self._differences.counts(self._of(at))
        only_inputs: npt.NDArray[np.bool_] = (changed > 0) & (others == 0)
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
