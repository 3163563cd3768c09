"""The self times of events: each moment counts for the open event that began last.

So self times add up to the time in which any event was open, and nothing counts twice. Events almost always nest.
Events of torch's pools may overlap: an end closes the latest open event of its name, wherever it is on the stack.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from cachescope.readers.json_record import MOST_NS_OF_A_DURATION
from cachescope.readers.logs.trace_events import TraceEvent

FRAME_COMPILE: Final = "dynamo"
"""torch/_dynamo/convert_frame.py: the event that each compile of a frame begins with."""
# Threads write their events a little later than they take the time. A clock that ran back further was set.
_SET_BACK_NS: Final = 10**9


class Place(NamedTuple):
    """An event by its name, and the compile it is of."""

    compile_id: str | None
    segment: int
    event: str


@dataclass(slots=True)
class Spent:
    """The events of one name in one compile.

    Attributes
    ----------
    count : int
        How many began.
    unended : int
        How many of them the trace has no end of.
    time_ns : int
        The time in which at least one of them was open.
    self_time_ns : int
        The part of it in which no later event was open.
    """

    count: int = 0
    unended: int = 0
    time_ns: int = 0
    self_time_ns: int = 0


@dataclass(slots=True, eq=False)
class _Open:
    place: Place
    is_ended: bool = False


class Sweep:
    """Goes through the events of one process.

    Attributes
    ----------
    spent : dict
        What was spent, by place.
    """

    def __init__(self) -> None:
        self.spent: dict[Place, Spent] = {}
        self._segments: Counter[str] = Counter()
        self._forget()

    def _forget(self) -> None:
        self._open: list[_Open] = []
        """In the order in which they began; one that ended stays until it is the last. The first has not ended."""
        self._of_name: dict[str, list[_Open]] = {}
        self._times_open: Counter[Place] = Counter()
        self._since: dict[Place, int] = {}
        self._now: int | None = None
        self._passed = 0

    def run(self, events: Iterable[TraceEvent]) -> None:
        """Take the events of one trace in their order; those that are open at its end have no end."""
        for event in events:
            self._advance(event.time_ns)
            if event.is_begin:
                self._begin(event)
            else:
                self._end(event.name)
        self._end_all()
        self._forget()

    def _advance(self, now: int) -> None:
        before = now if self._now is None else self._now
        passed = now - before
        self._now = now if passed >= 0 or passed < -_SET_BACK_NS else before
        if 0 < passed <= MOST_NS_OF_A_DURATION and self._open:
            self._passed += passed
            self.spent[self._open[-1].place].self_time_ns += passed

    def _begin(self, event: TraceEvent) -> None:
        if event.name == FRAME_COMPILE and event.compile_id is not None:
            self._segments[event.compile_id] += 1
        if event.compile_id is not None:
            place = Place(event.compile_id, self._segments[event.compile_id], event.name)
        elif self._open:
            # A thread of the pool knows of no compile.
            place = self._open[-1].place._replace(event=event.name)
        else:
            place = Place(None, 0, event.name)
        self.spent.setdefault(place, Spent()).count += 1
        if not self._times_open[place]:
            self._since[place] = self._passed
        self._times_open[place] += 1
        one = _Open(place)
        self._open.append(one)
        self._of_name.setdefault(event.name, []).append(one)

    def _end(self, name: str) -> None:
        if not (of_name := self._of_name.get(name)):
            return
        one = of_name.pop()
        self._close(one)
        if one is self._open[0]:
            # With the outermost event ends all that began in it, whatever the trace lost.
            self._end_all()
            return
        while self._open[-1].is_ended:
            self._open.pop()

    def _close(self, one: _Open) -> None:
        one.is_ended = True
        self._times_open[one.place] -= 1
        if not self._times_open[one.place]:
            self.spent[one.place].time_ns += self._passed - self._since[one.place]

    def _end_all(self) -> None:
        for one in self._open:
            if not one.is_ended:
                self.spent[one.place].unended += 1
                self._close(one)
        self._open.clear()
        self._of_name.clear()
