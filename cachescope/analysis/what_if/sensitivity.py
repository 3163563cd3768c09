"""Which fields would help: for each field and each small set of fields, the misses that only these keep from hitting.

Every field that differs between keys is tried alone, then the sets of fields that separate keys of one graph
(`field_sets`). Each gets a whole replay. Misses that only the simultaneous start of their runs keeps from hitting then are counted apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Final

import numpy as np
import pandas as pd

from cachescope.analysis.what_if.evidence import SAFETIES, SafetyOfFields
from cachescope.analysis.what_if.field_sets import Fields, field_sets
from cachescope.analysis.what_if.frames import Times
from cachescope.analysis.what_if.recorded import UNKNOWN, Positions
from cachescope.analysis.what_if.replay import Replay
from cachescope.analysis.what_if.still_missing import concurrent_misses
from cachescope.columns import frame_of
from cachescope.frames.replay_rows import SensitivityRow
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
    staggered: int
    staggered_time_ns: int | None
    needs_all: bool
    unknown: int
    example_lookup: int


def sensitivity_frame(
    replay: Replay,
    times: Times,
    evidence: pd.DataFrame,
    largest: int = 2,
    of_causes: Iterable[tuple[str, ...]] = (),
) -> pd.DataFrame:
    """The frame ``sensitivity``: by safety, what is compiled last; then the most compile time first."""
    trial = _Trial(replay, times)
    alone = [frozenset([field]) for field in replay.table.varying]
    tried = dict.fromkeys([*alone, *field_sets(replay, largest), *map(frozenset, of_causes)])
    spoken = SafetyOfFields(evidence)
    found = [(row, spoken.on(row.fields)) for row in map(trial.row, tried) if row is not None]
    found.sort(key=lambda one: (SAFETIES.index(one[1].safety), *_rank(one[0])))
    return frame_of(
        (SensitivityRow(**(asdict(row) | asdict(safety))) for row, safety in found), SensitivityRow
    )


def _rank(row: _Helps) -> tuple[object, ...]:
    """The most compile time first."""
    saved = -(row.time_alone_ns or 0), -row.misses_alone
    later = -(row.staggered_time_ns or 0), -row.staggered
    return *saved, *later, len(row.fields), row.fields


@dataclass(frozen=True, slots=True)
class _Result:
    turned: Positions
    staggered: Positions
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
        together, staggered = result.turned, result.staggered
        for part in self._known_parts(fields):
            known = self._without(part)
            together = np.setdiff1d(together, known.turned, assume_unique=True)
            staggered = np.setdiff1d(staggered, known.staggered, assume_unique=True)
        if not len(together) and not len(staggered):
            return None
        helped = result.turned if len(result.turned) else result.staggered
        costliest = int(helped[np.argmax(self._times.taken[helped])])
        return _Helps(
            fields=tuple(sorted(fields, key=_by_number)),
            misses_alone=len(result.turned),
            time_alone_ns=self._times.total(result.turned),
            misses_together=len(together),
            staggered=len(result.staggered),
            staggered_time_ns=self._times.total(result.staggered),
            needs_all=len(fields) > 1
            and len(together) == len(result.turned)
            and len(staggered) == len(result.staggered),
            unknown=result.unknown,
            example_lookup=int(self._replay.recorded.lookups.lookup[costliest]),
        )

    def _without(self, fields: Fields) -> _Result:
        """What turns into hits without some fields."""
        if fields not in self._known:
            self._known[fields] = self._replayed(Removed(fields))
        return self._known[fields]

    def _replayed(self, removed: Removed) -> _Result:
        joined = self._replay.table.joined(removed)
        if not len(joined.sets):
            return _Result(joined.sets, joined.sets, 0)
        after = self._replay.outcomes(removed, joined)
        turned = np.flatnonzero(self._times.turned(after))
        staggered = concurrent_misses(self._replay, joined, after)
        return _Result(turned, staggered, int(np.count_nonzero(after == UNKNOWN)))

    def _known_parts(self, fields: Fields) -> Iterator[Fields]:
        """The proper subsets of a set that can have turned some of its misses."""
        if len(fields) <= _PUT_BACK:
            yield from (fields - {field} for field in fields)
        else:
            yield from [other for other in self._known if other < fields]


def _by_number(field: str) -> list[tuple[int, str]]:
    """The order of names that puts ``example_inputs[2]`` before ``example_inputs[10]``."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"([0-9]+)", field)]
