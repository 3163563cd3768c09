"""Earlier compiles of the same function in the same process: torch numbers them 0/0, 0/1, 0/2 and so on."""

from __future__ import annotations

import re
from functools import cached_property, lru_cache
from typing import Final

import numpy as np

from cachescope.analysis.history.lookups import Lookups
from cachescope.analysis.history.places_by_group import NONE, Grouped, Numbers, numbered, paired
from cachescope.analysis.history.rows import LookupRow
from cachescope.analysis.verdicts.nearness import Nearness

# torch/_guards.py, `CompileId.__str__`: frame / compile of that frame, and the attempt of `TraceId.__str__`.
_COMPILE_ID: Final = re.compile(r"(?P<frame>.*)/(?P<compile>\d+)(?:_\d+)?")

# torch recompiles one function 8 times by default: torch/_dynamo/config.py, `recompile_limit`.
_MOST_TRIED: Final = 32

_Frame = tuple[int, str, str]


class Recompiles:
    """The lookups of each frame of each process; lookups are named by their place in time order."""

    def __init__(self, lookups: Lookups, nearness: Nearness) -> None:
        self._rows = lookups
        self._nearness = nearness

    def before(self, at: int) -> LookupRow | None:
        """The nearest lookup of an earlier compile of the same function, the latest among equals; None for the first compile."""
        row = self._rows[at]
        if not _compile_of(row):
            return None
        frames, of_frame = self._frames
        latest = of_frame.before(int(frames[at]), at)[: -_MOST_TRIED - 1 : -1].tolist()
        before = []
        number = _compile_of(row)
        for other in (self._rows[place] for place in latest):
            # Compile ids begin again after torch._dynamo.reset(), and then mean other functions.
            if _compile_of(other) > number:
                break
            number = _compile_of(other)
            if self.is_before(other, row) and _may_be_one(other, row):
                before.append(other)
        return min(before, key=lambda other: self._nearness.between(other, row), default=None)

    @cached_property
    def _frames(self) -> tuple[Numbers, Grouped]:
        """The number of the frame of each lookup; and the lookups with hash details of each frame."""
        rows = self._rows
        in_run = paired(rows.run_number, rows.cache.codes.astype(np.int64))
        names = numbered([_parts(compile_id)[0] for compile_id in [*rows.compile_id.distinct, None]])
        name = names[rows.compile_id.codes]
        frames = np.where(name == NONE, NONE, paired(in_run, name))
        return frames, Grouped(np.where(rows.detail_set == NONE, NONE, frames))

    def is_before(self, other: LookupRow, row: LookupRow) -> bool:
        """Whether one lookup is from an earlier compile of the same frame of the same process."""
        return _frame_of(other) == _frame_of(row) is not None and _compile_of(other) < _compile_of(row)


def _may_be_one(other: LookupRow, row: LookupRow) -> bool:
    """Whether two graphs of one function may be forms of each other: never a forward and a backward graph."""
    return (other.direction == "backward") == (row.direction == "backward")


def _frame_of(row: LookupRow) -> _Frame | None:
    frame, _ = _parts(row.compile_id)
    return None if frame is None else (row.run, row.cache, frame)


def _compile_of(row: LookupRow) -> int:
    return _parts(row.compile_id)[1]


# All processes of a fleet share the same compile ids.
@lru_cache(maxsize=4096)
def _parts(compile_id: str | None) -> tuple[str | None, int]:
    match = _COMPILE_ID.fullmatch(compile_id or "")
    return (None, 0) if match is None else (match["frame"], int(match["compile"]))
