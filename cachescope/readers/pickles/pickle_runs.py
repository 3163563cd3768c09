"""Runs of opcodes that were looked through before, so that they need not be again.

The entries of a cache say mostly the same: hundreds of lines of hash details, the same names around them.
Where the very same bytes stand again, what was counted in them is added. The bytes are compared, never a
hash of them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

KEY_BYTES: Final = 32  # that a run is found by: in a line of hash details, the most of its hash
_OBJECTS = 400  # what Python takes for a run besides its bytes


@dataclass(frozen=True, slots=True)
class Run:
    """What is counted in a run of opcodes, as `Plain` counts it.

    Attributes
    ----------
    code : bytes
        The opcodes, the first a SHORT_BINUNICODE.
    steps, memo, tuples, nested : int
        The counts.
    tuple_slots : tuple of int
        Slots of the memo that hold tuples, counted from the first that the run fills.
    fetched : tuple of int
        Slots of the memo that are fetched.
    """

    code: bytes
    steps: int
    memo: int
    tuples: int
    nested: int
    tuple_slots: tuple[int, ...]
    fetched: tuple[int, ...]


class KnownRuns:
    """A bounded store of runs, found by their first bytes; emptied when it is full.

    It learns what a pickle has in common with the one before it, outside of the runs it knows, whole and in
    pieces: from the first ones, and then where so much was unknown since that learning will have paid.
    """

    LARGEST_PICKLE = 1 << 20
    """Larger ones are followed opcode by opcode, so that a hostile one cannot repeat long comparisons."""
    BYTES = 4 << 20
    RUN_BYTES = 8 << 10
    """Short enough that an entry with a line of its own still has most runs in common with others."""
    PIECE_BYTES = 2 << 10
    """A run is kept in such pieces too, for entries that have a line of their own in the midst of it."""
    VARIANTS = 3
    """How many runs, and how many pieces, may begin with the same bytes."""
    STRINGS = 4_096
    """How many strings of one pickle are learned from."""
    LEAST_STEPS = 4
    WORTH_LEARNING = 1_500
    """Learning from a pickle takes about as long as it does to follow so many strings that are in no known run."""

    def __init__(self) -> None:
        self.by_key: dict[bytes, tuple[Run, ...]] = {}
        self._bytes = 0
        self._previous: tuple[bytes, list[int]] = (b"", [])
        self._unknown = self._enough = 0
        self._lock = threading.Lock()

    def met(
        self,
        data: bytes,
        strings: list[int],
        end_of: Callable[[bytes, int], int],
        run_of: Callable[[bytes], Run],
    ) -> None:
        """Learn from a pickle of the plain form.

        Parameters
        ----------
        data : bytes
            The pickle.
        strings : list of int
            Where its SHORT_BINUNICODE opcodes are, without those in known runs.
        end_of : callable
            Where the opcode at a place ends; 0 where no run may go on over it.
        run_of : callable
            Counts a run.
        """
        (other, others), self._previous = self._previous, (data, strings)
        self._unknown += len(strings)
        if self._unknown < self._enough or not self._lock.acquire(blocking=False):
            return
        try:
            self._unknown, self._enough = 0, min(2 * self._enough + 100, self.WORTH_LEARNING)
            self._learn(data, strings[: self.STRINGS], other, others[: self.STRINGS], end_of, run_of)
        finally:
            self._lock.release()

    def _learn(
        self,
        data: bytes,
        strings: list[int],
        other: bytes,
        others: list[int],
        end_of: Callable[[bytes, int], int],
        run_of: Callable[[bytes], Run],
    ) -> None:
        where = {other[at : at + KEY_BYTES]: at for at in others}
        # Runs that are given up early overlap, and a hostile pickle could have thousands of those.
        done, walked = 0, 0
        for start in strings:
            if walked > len(data):
                break
            key = data[start : start + KEY_BYTES]
            if start < done or key not in where:
                continue
            shift = where[key] - start
            pos, limit, steps, pieces = start, start + self.RUN_BYTES, 0, [start]
            while (
                (end := end_of(data, pos)) and end <= limit and other.startswith(data[pos:end], pos + shift)
            ):
                if end - pieces[-1] > self.PIECE_BYTES and data[pos] == 0x8C:  # SHORT_BINUNICODE
                    pieces.append(pos)
                pos = end
                steps += 1
            walked += pos - start
            if steps >= self.LEAST_STEPS:
                done = pos
                self._keep(data[start:pos], run_of)
                for piece, end in zip(pieces, [*pieces[1:], pos], strict=True):
                    self._keep(data[piece:end], run_of)

    def _keep(self, code: bytes, run_of: Callable[[bytes], Run]) -> None:
        """Store a run, the longer ones before the pieces, the newest of each first."""
        key = code[:KEY_BYTES]
        known = self.by_key.get(key, ())
        if len(code) < KEY_BYTES or any(run.code == code for run in known):
            return
        run = run_of(code)
        size = _OBJECTS + KEY_BYTES + len(code) + 36 * (len(run.tuple_slots) + len(run.fetched))
        self._bytes += size
        if self._bytes > self.BYTES:
            self.by_key.clear()
            self._bytes, known = size, ()
        whole = [run for run in known if len(run.code) > self.PIECE_BYTES]
        pieces = [run for run in known if len(run.code) <= self.PIECE_BYTES]
        newest = whole if len(code) > self.PIECE_BYTES else pieces
        newest[:] = [run, *newest[: self.VARIANTS - 1]]
        self.by_key[key] = (*whole, *pieces)
