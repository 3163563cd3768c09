"""Earlier compiles of the same function in the same process: torch numbers them 0/0, 0/1, 0/2 and so on."""

from __future__ import annotations

import re
from bisect import bisect_left
from functools import cache, cached_property
from typing import Final

from cachescope.analysis.history.history import History
from cachescope.frames.recorded_rows import LookupRow
from cachescope.grouping import by_key

# torch/_guards.py, `CompileId.__str__`: frame / compile of that frame, and the attempt of `TraceId.__str__`.
_COMPILE_ID: Final = re.compile(r"(?P<frame>.*)/(?P<compile>\d+)(?:_\d+)?")

# torch recompiles one function 8 times by default: torch/_dynamo/config.py, `recompile_limit`.
_MOST_TRIED: Final = 32

_Frame = tuple[int, str, str]


class Recompiles:
    """The lookups of each frame of each process; lookups are named by their index in time order."""

    def __init__(self, history: History) -> None:
        self._history = history

    def before(self, at: int) -> int | None:
        """The nearest lookup of an earlier compile of the same function, the latest among equals; None for the first compile."""
        row = self._history.lookups[at]
        number = _compile_of(row)
        if not number:
            return None
        of_frame = self._of_frame.get(_frame_of(row), ())
        end = bisect_left(of_frame, at)
        before = []
        for one in reversed(of_frame[max(end - _MOST_TRIED, 0) : end]):
            other = self._history.lookups[one]
            # Compile ids begin again after torch._dynamo.reset(), and then mean other functions.
            if _compile_of(other) > number:
                break
            number = _compile_of(other)
            # A forward and a backward graph are never forms of each other.
            if is_recompiled(other, row) and (other.direction == "backward") == (row.direction == "backward"):
                before.append(one)
        return min(before, key=lambda one: self._history.distance(one, at), default=None)

    @cached_property
    def _of_frame(self) -> dict[_Frame | None, list[int]]:
        """The lookups with hash details of each frame."""
        described = ((at, row) for at, row in enumerate(self._history.lookups) if row.detail_set is not None)
        return by_key((frame, at) for at, row in described if (frame := _frame_of(row)) is not None)


def is_recompiled(other: LookupRow, row: LookupRow) -> bool:
    """Whether one lookup is from an earlier compile of the same frame of the same process."""
    if other.run != row.run:
        return False
    return _frame_of(other) == _frame_of(row) is not None and _compile_of(other) < _compile_of(row)


def _frame_of(row: LookupRow) -> _Frame | None:
    frame, _ = _parts(row.compile_id)
    return None if frame is None else (row.run, row.cache, frame)


def _compile_of(row: LookupRow) -> int:
    return _parts(row.compile_id)[1]


# All processes of a fleet share the same compile ids.
@cache
def _parts(compile_id: str | None) -> tuple[str | None, int]:
    match = _COMPILE_ID.fullmatch(compile_id or "")
    return (None, 0) if match is None else (match["frame"], int(match["compile"]))
