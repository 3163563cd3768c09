"""Starts of vLLM in the order of time: which ended before which, and which made a folder."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Final, Literal, NamedTuple

from cachescope.analysis.history.lookups import MISSING
from cachescope.analysis.vllm.factors import ENVIRONMENT, HASHES
from cachescope.analysis.vllm.parts import Part, part_of
from cachescope.frames.vllm import StartRow

_SECOND_NS: Final = 1_000_000_000
_QUARTER_NS: Final = 15 * 60 * _SECOND_NS
_MOST_OFF_NS: Final = 23 * 3600 * _SECOND_NS
LOGGED: Final = (ENVIRONMENT, *HASHES)
"""The hashes that vLLM logs at the level DEBUG, in the order in which changes are named."""

Made = Literal["by it", "before", "after", "not known"]


class Started(NamedTuple):
    """One start of one part of a model; vLLM's clock is in whole seconds.

    Attributes
    ----------
    at : int
        The place of its lookup in time order.
    row : StartRow
    part : Part
    run : int
        Its process.
    began, ended : int
        The times of its first and of its last message; `MISSING` where no clock says.
    hashes : tuple of str or None
        What its key was made of, as `LOGGED` names it; None if it was not logged.
    off : int
        By how much the times of files are ahead of its clock; see `clock_off`.
    """

    at: int
    row: StartRow
    part: Part
    run: int
    began: int
    ended: int
    hashes: tuple[str, ...] | None = None
    off: int = 0

    @classmethod
    def of(cls, at: int, row: StartRow, run: int, began: int, ended: int) -> Started:
        """One start, from its row and what its lookup has."""
        hashes = tuple(getattr(row, name) for name in LOGGED)
        return cls(at, row, part_of(row), run, began, ended, None if None in hashes else hashes)

    @property
    def is_stored(self) -> bool:
        """Whether the part is in its folder afterwards, as far as its log says."""
        return self.row.outcome in ("loaded", "compiled") and not self.row.is_disabled

    @property
    def has_times(self) -> bool:
        """Whether its log has times."""
        return MISSING not in (self.began, self.ended)

    def ended_before(self, other: Started) -> bool:
        """Whether it had ended when another began."""
        return self.at < other.at and self.has_times and other.has_times and self.ended <= other.began

    def was_running_at(self, other: Started) -> bool:
        """Whether it was compiling when another began."""
        is_known = self.at < other.at and self.has_times and other.has_times
        return is_known and self.row.outcome == "compiled" and self.began <= other.began <= self.ended

    def made(self, written: int | None) -> Made:
        """Whether it wrote the factors of a folder, which vLLM writes only where they are not there yet.

        Parameters
        ----------
        written : int or None
            When they were written. A copy of a folder has a later time, and so has one that another start made again.
        """
        if written is None or not self.has_times:
            return "not known"
        if written - self.off < self.began:
            return "before"
        return "by it" if written - self.off < self.ended + _SECOND_NS else "after"


def clock_off(made: Iterable[tuple[Started, int]]) -> int:
    """By how much the times of files are ahead of the clock of logs, which have no time zone: 0 unless folders show another.

    Parameters
    ----------
    made : iterable of (Started, int)
        Starts that compiled, each with the time at which the factors of its folder were written.

    Returns
    -------
    int
        Whole quarters of an hour, as time zones differ. Two starts at least must have made two folders by it, and none without it.
    """
    folders: dict[int, set[str | None]] = defaultdict(set)
    for start, written in made:
        if start.made(written) == "by it":
            return 0
        off = (written - start.began) // _QUARTER_NS * _QUARTER_NS
        if abs(off) <= _MOST_OFF_NS and start._replace(off=off).made(written) == "by it":
            folders[off].add(start.row.folder)
    most = max(folders, key=lambda off: len(folders[off]), default=0)
    return most if len(folders[most]) > 1 else 0
