"""Which fields would help: for each field and each small set of fields, the misses that only these keep from hitting.

Every field that differs between keys is tried alone, then the sets of fields that separate keys of one graph
(`field_sets`). Each gets a whole replay.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Final

import numpy as np
import pandas as pd

from cachescope.analysis.what_if.evidence import SafetyOfFields
from cachescope.analysis.what_if.field_sets import Fields, field_sets
from cachescope.analysis.what_if.frames import Times
from cachescope.analysis.what_if.recorded import UNKNOWN, Positions
from cachescope.analysis.what_if.replay import Replay
from cachescope.frames.replay import SENSITIVITY
from cachescope.keys.key_fields import Removed

# Up to this many fields, each is put back in turn to see whether all of them are needed.
_PUT_BACK: Final = 8


@dataclass(frozen=True, slots=True)
class _Helps:
    """What some fields keep from hitting: a row of the frame, but for what is known of leaving them out."""

    fields: tuple[str, ...]
    misses_alone: int
    time_alone_ns: int | None
    misses_together: int
    needs_all: bool
    unknown: int
    example_lookup: int


def sensitivity_frame(replay: Replay, times: Times, evidence: pd.DataFrame, largest: int = 2) -> pd.DataFrame:
    """The frame ``sensitivity``; the most compile time first.

    Parameters
    ----------
    replay : Replay
    times : Times
    evidence : DataFrame
        The frame evidence.
    largest : int
        Sets of up to this many fields are tried wherever two keys differ in them. Of larger sets, only the
        smallest that separates a key from the others of its graph is tried.
    """
    trial = _Trial(replay, times)
    tried = [frozenset([field]) for field in replay.table.varying] + field_sets(replay, largest)
    found = [row for row in map(trial.row, tried) if row is not None]
    found.sort(key=lambda row: (-(row.time_alone_ns or 0), -row.misses_alone, len(row.fields), row.fields))
    spoken = SafetyOfFields(evidence)
    return SENSITIVITY.build(asdict(row) | asdict(spoken.on(row.fields)) for row in found)


@dataclass(frozen=True, slots=True)
class _Result:
    turned: Positions
    unknown: int


class _Trial:
    """Replays without some fields, each made once."""

    def __init__(self, replay: Replay, times: Times) -> None:
        self._replay = replay
        self._times = times
        self._known: dict[Fields, _Result] = {}

    def row(self, fields: Fields) -> _Helps | None:
        """What some fields keep from hitting; None if it is nothing, or smaller parts keep all of it."""
        result = self._without(fields)
        together = result.turned
        if len(fields) > 1:
            for part in self._known_parts(fields):
                together = np.setdiff1d(together, self._without(part).turned, assume_unique=True)
        if not len(together):
            return None
        costliest = int(result.turned[np.argmax(self._times.taken[result.turned])])
        return _Helps(
            tuple(sorted(fields)),
            len(result.turned),
            self._times.total(result.turned),
            len(together),
            len(fields) > 1 and len(together) == len(result.turned),
            result.unknown,
            int(self._replay.recorded.lookups.lookup[costliest]),
        )

    def _without(self, fields: Fields) -> _Result:
        """What turns into hits without some fields."""
        if fields not in self._known:
            self._known[fields] = self._replayed(Removed(fields))
        return self._known[fields]

    def _replayed(self, removed: Removed) -> _Result:
        joined = self._replay.table.joined(removed)
        if not len(joined.sets):
            return _Result(joined.sets, 0)
        after = self._replay.outcomes(removed, joined)
        turned = np.flatnonzero(self._times.turned(after))
        return _Result(turned, int(np.count_nonzero(after == UNKNOWN)))

    def _known_parts(self, fields: Fields) -> Iterator[Fields]:
        """The proper subsets of a set that can have turned some of its misses."""
        if len(fields) <= _PUT_BACK:
            yield from (fields - {field} for field in fields)
        else:
            yield from [other for other in self._known if other < fields]
