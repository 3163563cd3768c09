"""The rows that answers are made of, as objects: missing values None, times in nanoseconds."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from cachescope.answers.frames import Frames
from cachescope.answers.rows import Places, PlacesOf, Rows
from cachescope.columns import rows_of
from cachescope.frames.answer_rows import CauseRow, MissRow
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.recorded_rows import LookupRow, ProblemRow, RunRow
from cachescope.wording import short_names

Flags = npt.NDArray[np.bool_]


class Facts:
    """The frames by id; misses by the lookup that missed."""

    def __init__(self, frames: Frames) -> None:
        self.runs = Rows(frames.runs, RunRow, "run")
        self.lookups = Rows(frames.lookups, LookupRow, "lookup")
        self.misses = Rows(frames.misses, MissRow, "lookup")
        self.causes = rows_of(frames.causes, CauseRow)
        self.entries = Rows(frames.entries, EntryRow, "entry")
        self.contexts = len(frames.tables.contexts)
        self.problems = rows_of(frames.problems, ProblemRow)

    @cached_property
    def files(self) -> dict[str, str]:
        """What each file of the program is called in a line."""
        return short_names(self.lookups.frame["file"].dropna().unique())

    def misses_of(self, cause: int, among: Flags | None = None) -> Sequence[MissRow]:
        """The misses of one cause, in the order of the lookups; of all misses, or among some of them."""
        return self.misses.at(self._places_of(cause, among))

    def roots_of(self, cause: int, among: Flags | None = None) -> Sequence[MissRow]:
        """Those of them that do not follow from another one."""
        places = self._places_of(cause, among)
        return self.misses.at(places[self._is_root[places]])

    def followers_of(self, root: MissRow) -> list[LookupRow]:
        """The lookups that missed because of a root miss: those of its cause in the same compile."""
        row = self.lookups[root.lookup]
        places = self._places_of(root.cause)
        mine = places[~self._is_root[places] & (self._run[places] == row.run)]
        others = [self.lookups[miss.lookup] for miss in self.misses.at(mine)]
        place = row.compile_id, row.segment
        return [other for other in others if (other.compile_id, other.segment) == place]

    def below(self, lookup: int) -> Sequence[LookupRow]:
        """The lookups that an AOTAutograd lookup made."""
        return self.lookups.at(self._by_above[lookup])

    def _places_of(self, cause: int, among: Flags | None = None) -> Places:
        places = self._by_cause[cause]
        return places if among is None else places[among[places]]

    @cached_property
    def missed(self) -> Places:
        """Where in ``lookups`` each miss is."""
        return self.lookups.places(self.misses.frame["lookup"].to_numpy(dtype=np.int64))

    @cached_property
    def _by_cause(self) -> PlacesOf:
        return PlacesOf(self.misses.frame["cause"].to_numpy(dtype=np.int64))

    @cached_property
    def _by_above(self) -> PlacesOf:
        return PlacesOf(self.lookups.frame["aot_lookup"].to_numpy(dtype=np.int64, na_value=-1))

    @cached_property
    def _is_root(self) -> Flags:
        return self.misses.frame["root"].to_numpy(dtype=bool)

    @cached_property
    def _run(self) -> Places:
        """The run of each miss."""
        runs: Places = self.lookups.frame["run"].to_numpy(dtype=np.intp)[self.missed]
        return runs
