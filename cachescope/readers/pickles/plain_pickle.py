"""Tell pickles of the plain form that picklers write, which the C unpickler cannot be hurt by.

Only where opcodes begin and end is followed, and some are counted; no stack and no memo are kept. That is
enough where each value is used once: strings, lists, dicts, and tuples that are not fetched from the memo
again. Whatever is of another form is left to `pickle_check`, which follows every value.
"""

from __future__ import annotations

from cachescope.readers.pickles.pickle_limits import Limits
from cachescope.readers.pickles.pickle_runs import KEY_BYTES, KnownRuns, Run

# Opcodes that push something new, and their bytes: no tuple but (), no int beyond 32 bits.
_PUSH = {
    **dict.fromkeys(b"N\x88\x89]}\x8f)\x93", 1),
    **{ord("K"): 2, ord("M"): 3, ord("J"): 5, ord("G"): 9},
}
_CALL = frozenset(b"R\x81")
_FILL = frozenset(b"aesub\x90")
_TUPLE = frozenset(b"\x85\x86\x87t")
_LENGTH_BYTES = {0x58: 4, 0x43: 1, 0x42: 4}

KNOWN_RUNS = KnownRuns()


def is_plain(data: bytes, limits: Limits) -> bool:
    """Whether a pickle is of the plain form and within the limits, so that it needs no other check.

    Then it has its STOP inside the bytes, its frames end between opcodes, and it declares no length beyond
    them. It names no memo index but to fetch from it, and MEMOIZE follows what was pushed just before. So it
    is known which slots hold tuples; where none of these is fetched, and nothing is doubled by DUP, every
    tuple is a tree of its own. All of them together then have no more parts than there are opcodes, and keys
    that all collide compare at most ``tuples * opcodes`` parts.
    """
    known = KNOWN_RUNS if len(data) <= KnownRuns.LARGEST_PICKLE else None
    program = Plain(data, limits, known)
    try:
        if not program.follow():
            return False
    except IndexError:  # the bytes end
        return False
    if known is not None:
        known.met(data, program.strings, end_in_run, run_of)
    return program.is_within(limits)


class Plain:
    """A pickle that is looked through, with the runs known or without.

    Attributes
    ----------
    steps, memo, tuples, nested : int
        How many opcodes, filled slots of the memo, tuples and large ints, and opcodes that put values into
        one that is there.
    tuple_slots, fetched : list of int
        Slots of the memo that hold tuples, and slots that are fetched.
    strings : list of int
        Where the SHORT_BINUNICODE opcodes are that begin no known run.
    """

    def __init__(self, data: bytes, limits: Limits, known: KnownRuns | None = None) -> None:
        self.data = data
        self.limits = limits
        self.runs: dict[bytes, tuple[Run, ...]] = {} if known is None else known.by_key
        self.steps = self.memo = self.tuples = self.nested = 0
        self.tuple_slots: list[int] = []
        self.fetched: list[int] = []
        self.strings: list[int] = []

    def follow(self) -> bool:
        """Follow the opcodes up to STOP; False at the first of another form, IndexError at the end."""
        data, known_runs, met = self.data, self.runs.get, self.strings.append
        tuple_slots, fetched = self.tuple_slots, self.fetched
        pos = memo = nested = in_runs = frame_end = 0
        for step in range(self.limits.opcodes):
            op = data[pos]
            if op == 0x8C:  # SHORT_BINUNICODE
                for run in known_runs(data[pos : pos + KEY_BYTES], ()):  # the longest first
                    if data.startswith(run.code, pos):
                        pos += len(run.code)
                        in_runs += run.steps - 1
                        nested += run.nested
                        if run.tuples:
                            self.tuples += run.tuples
                            tuple_slots += [memo + slot for slot in run.tuple_slots]
                        if run.fetched:
                            fetched += run.fetched
                        memo += run.memo
                        break
                else:
                    met(pos)
                    pos += 2 + data[pos + 1]
                    if data[pos] == 0x94:
                        memo += 1
                        pos += 1
            elif op in _PUSH:
                pos += _PUSH[op]
                if data[pos] == 0x94:
                    memo += 1
                    pos += 1
            elif op in _LENGTH_BYTES:
                start = pos + 1 + _LENGTH_BYTES[op]
                pos = start + int.from_bytes(data[pos + 1 : start], "little")
                if data[pos] == 0x94:
                    memo += 1
                    pos += 1
            elif op in _FILL:
                nested += 1
                pos += 1
            elif op == 0x28:  # MARK
                pos += 1
            elif op in _CALL:
                pos += 1
                if data[pos] == 0x94:
                    memo += 1
                    pos += 1
            elif op == 0x6A:  # LONG_BINGET
                fetched.append(int.from_bytes(data[pos + 1 : pos + 5], "little"))
                pos += 5
            elif op == 0x68:  # BINGET
                fetched.append(data[pos + 1])
                pos += 2
            elif op in _TUPLE:
                self.tuples += 1
                pos += 1
                if data[pos] == 0x94:
                    tuple_slots.append(memo)
                    memo += 1
                    pos += 1
            elif op == 0x8A:  # LONG1
                self.tuples += 1 + data[pos + 1] // 8
                pos += 2 + data[pos + 1]
            elif op == 0x95:  # FRAME
                if frame_end not in (0, pos):
                    return False
                pos += 9
                frame_end = pos + int.from_bytes(data[pos - 8 : pos], "little")
            elif op == 0x80:  # PROTO
                pos += 2
            elif op == 0x2E:  # STOP
                self.memo, self.nested, self.steps = memo, nested, step + in_runs
                return frame_end in (0, pos + 1)
            else:
                return False
        return False

    def is_within(self, limits: Limits) -> bool:
        """Whether the counts are within the limits."""
        # A tuple is one level, and a call of it another one.
        deepest = 2 + self.nested + 2 * self.tuples
        # In `Limits.work`, 1,000 stand for a key, and 4,000 keys compare 8,000,000 times.
        compared = self.tuples * (self.steps + self.tuples)
        return (
            self.steps <= limits.opcodes
            and deepest <= limits.depth
            and compared <= 2 * limits.work
            and (not self.tuple_slots or set(self.tuple_slots).isdisjoint(self.fetched))
        )


def end_in_run(data: bytes, pos: int) -> int:
    """Where the opcode at a place ends, and the MEMOIZE after it; 0 where a run may not go on."""
    op = data[pos] if pos < len(data) else 0x2E
    is_new = True
    if op == 0x8C:
        pos += 2 + data[pos + 1]
    elif op in _PUSH:
        pos += _PUSH[op]
    elif op in _TUPLE or op in _CALL:
        pos += 1
    elif op in _LENGTH_BYTES:
        start = pos + 1 + _LENGTH_BYTES[op]
        pos = start + int.from_bytes(data[pos + 1 : start], "little")
    else:
        is_new = False
        if op in _FILL or op == 0x28:
            pos += 1
        elif op == 0x6A:
            pos += 5
        elif op == 0x68:
            pos += 2
        else:
            return 0
    return pos + (is_new and data[pos : pos + 1] == b"\x94")


def run_of(code: bytes) -> Run:
    """What there is to count in a run of opcodes that `end_in_run` went over."""
    alone = Plain(code + b".", Limits())
    alone.follow()
    return Run(
        code,
        alone.steps,
        alone.memo,
        alone.tuples,
        alone.nested,
        tuple(alone.tuple_slots),
        tuple(alone.fetched),
    )
