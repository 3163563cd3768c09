"""One pass over a pickle's opcodes that refuses a harmful program before the C unpickler runs it.

The unpickler trusts its input: it allocates any declared length, grows its memo to any index, and hashes keys
however nested they are. So a program is first followed with numbers in place of objects.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from cachescope.readers.pickles.machine import STEPS, Machine, Step, UnreadablePickle

# An object is represented by its depth in units of _LEVEL, plus the number of parts that its hash visits. Strings and
# numbers are 0. Lists and dicts have no hash and therefore only a depth.
_LEVEL: Final = 1 << 40
_PARTS: Final = _LEVEL - 1
# Hashes of ints and tuples are not seeded: a hostile pickle can make all keys collide. Then n keys
# are compared n * n / 2 times, each up to the last part. So a key with parts costs at least this much of
# `Limits.work`, which allows 4,000 keys, plus parts ** 2, which allows no key of more than 2,000 parts.
_KEY_COST: Final = 1_000
_KIB: Final = 10
# The bytes of opcodes that push a value without parts, and what is pushed by those that push an empty container.
_SIZE = [0] * 256
for _code, _bytes in {b"N": 1, b"\x88": 1, b"\x89": 1, b"K": 2, b"M": 3, b"J": 5, b"G": 9}.items():
    _SIZE[_code[0]] = _bytes
_EMPTY: Final = {**dict.fromkeys(b"]}\x8f", _LEVEL), ord(")"): _LEVEL + 1}


class NotRead(UnreadablePickle):
    """A pickle that may be valid: it exceeds `Limits`, or contains something unknown here.

    Nothing is wrong with the bytes, so torch may well load them.
    """


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a pickle may use.

    One opcode allocates at most about 240 bytes beyond its own (an empty set), so `opcodes` bounds the
    memory. Real entries have some 2,000 opcodes per 80 kB, and nest about ten levels.
    """

    size_bytes: int = 256 << 20
    opcodes: int = 1_000_000
    depth: int = 2_000
    line_bytes: int = 4_000
    """One line of a text opcode: a number, a name, a memo index. Strings may be longer."""
    int_bytes: int = 4_096
    work: int = 4_000_000
    """The budget for keys and for copies of arguments, where one byte can cause much work."""
    stand_ins: int = 2_000
    persistent_ids: bool = False
    """Whether values from outside of the pickle are read, as in a ``torch.save``; each becomes what the unpickler makes of it."""


def check_program(data: bytes, limits: Limits) -> list[int]:
    """Follow the opcodes of a pickle; raise `UnreadablePickle` at the first that must not run.

    A pickle that passes has its STOP inside the bytes, declares no length beyond them, keeps memo indexes dense,
    and neither hashes nor copies more than `limits`. Returned are the offsets of the FRAME opcodes, or none if each
    frame ends where the next begins. Faults that the unpickler itself refuses without harm (bad UTF-8) are not
    checked here.
    """
    cost = Cost(data, limits)
    try:
        cost.run()
    except LookupError:
        if cost.at >= len(data) or data[cost.at :] == b"\x8c":
            raise cost.truncated() from None
        raise UnreadablePickle("not a pickle: takes what is not there", cost.at) from None
    return [] if frames_fit(data, cost.frames, cost.at + 1) else cost.frames


def frames_fit(data: bytes, frames: list[int], end: int) -> bool:
    """Whether each frame ends where the next one begins, and the last at the end, as picklers write them."""
    return all(
        int.from_bytes(data[at + 1 : at + 9], "little") == after - at - 9
        for at, after in zip(frames, [*frames[1:], end], strict=False)
    )


def _has_parts(values: list[int]) -> bool:
    """Whether any value in a list, often hundreds of strings, is not 0: a faster `any`."""
    return values.count(0) != len(values)


def _frame(cost: Cost) -> None:
    cost.frames.append(cost.op_at)
    # Like `pickle.loads`, which torch calls: it only requires that the whole frame is there.
    if cost.number(8) > len(cost.data) - cost.at:
        raise cost.truncated()


def _refused(what: str) -> Step:
    def step(cost: Machine) -> None:
        raise UnreadablePickle(what, cost.op_at)

    return step


def _persistent(cost: Cost) -> None:
    if not cost.limits.persistent_ids:
        raise UnreadablePickle("persistent id", cost.op_at)
    if cost.data[cost.op_at] == ord("P"):
        cost.line()
    else:
        cost.stack.pop()
    cost.stack.append(0)


class Cost(Machine):
    """What loading a pickle costs, and the limits of it; the numbers on the stack are explained at the top."""

    steps: ClassVar[Mapping[int, Step]] = {
        **STEPS,
        0x95: _frame,
        **dict.fromkeys(b"PQ", _persistent),
        **dict.fromkeys(b"\x82\x83\x84", _refused("extension code")),
        **dict.fromkeys(b"\x97\x98", _refused("buffer from outside the pickle")),
        **dict.fromkeys(b"STU", _refused("string of Python 2")),
    }

    def __init__(self, data: bytes, limits: Limits) -> None:
        super().__init__(data)
        self.limits = limits
        self.memo: list[int] = []
        self.frames: list[int] = []  # the offsets of the FRAME opcodes
        self.work = 0

    def run(self) -> None:
        """Follow the opcodes up to STOP; raise LookupError if one takes an item that does not exist."""
        # Eight of ten opcodes are strings and their MEMOIZE, so these and other frequent ones are followed here.
        data, pos, sizes, steps = self.data, 0, _SIZE, self.steps
        stack, memo, size_of_all = self.stack, self.memo, len(data)
        push, remember = stack.append, memo.append
        try:
            for _ in range(self.limits.opcodes):
                op = data[pos]
                if op == 0x8C:  # SHORT_BINUNICODE
                    pos += 2 + data[pos + 1]
                    push(0)
                    if data[pos] == 0x94:
                        remember(0)
                        pos += 1
                elif op == 0x94:  # MEMOIZE
                    remember(stack[-1])
                    pos += 1
                elif size := sizes[op]:
                    push(0)
                    pos += size
                elif op in _EMPTY:
                    push(_EMPTY[op])
                    pos += 1
                elif op == 0x6A and pos + 5 <= size_of_all:  # LONG_BINGET
                    push(memo[int.from_bytes(data[pos + 1 : pos + 5], "little")])
                    pos += 5
                elif op in steps:
                    self.op_at = pos
                    self.at = pos + 1
                    steps[op](self)
                    pos, stack = self.at, self.stack
                    push = stack.append
                elif op == 0x2E:  # STOP
                    stack[-1]
                    return
                else:
                    raise UnreadablePickle(f"not a pickle: no opcode 0x{op:02x}", pos)
        finally:
            self.at = pos
        raise NotRead(f"more than {self.limits.opcodes} opcodes", pos)

    def beyond(self, what: str) -> NotRead:
        """An error because the current opcode exceeds a limit; an unpickler without limits might run it."""
        return NotRead(what, self.op_at)

    def put(self, index: int) -> None:
        """Store the top of the stack in the memo, at the next index or one in use."""
        # The unpickler's memo is an array as long as the largest index. Every pickler uses indexes in order.
        if index > len(self.memo):
            raise self.beyond(f"memo index {index} where {len(self.memo)} are in use")
        self.memo[index : index + 1] = [self.stack[-1]]

    def spend(self, amount: int) -> None:
        """Use up some of `Limits.work`."""
        self.work += amount
        if self.work > self.limits.work:
            raise self.beyond("hashes or copies too much")

    def hash_keys(self, keys: list[int]) -> None:
        """Spend the worst cost of hashing and comparing keys."""
        if _has_parts(keys):
            for key in keys:
                if parts := key & _PARTS:
                    self.spend(_KEY_COST + parts * parts)

    def list_of(self, parts: list[int]) -> int:
        """The depth of a container of these parts."""
        deepest = max(parts) // _LEVEL + 1 if parts else 1
        if deepest > self.limits.depth:
            raise self.beyond(f"nested deeper than {self.limits.depth} levels")
        return deepest * _LEVEL

    def tuple_of(self, parts: list[int]) -> int:
        """The depth of a tuple, and what its hash visits."""
        visited = 1 + len(parts)
        if _has_parts(parts):
            visited += sum(part & _PARTS for part in parts)
            return self.list_of(parts) + min(visited, _PARTS)
        return _LEVEL + visited

    def set_of(self, parts: list[int]) -> int:
        """Like a tuple of its items, which are hashed now."""
        self.hash_keys(parts)
        return self.tuple_of(parts)

    def dict_of(self, pairs: list[int]) -> int:
        """The depth of a dict, whose keys are hashed now."""
        self.hash_keys(pairs[::2])
        return self.list_of(pairs)

    def add(self, items: list[int], *, is_set: bool = False) -> None:
        """Make the container on top of the stack as deep as its items ask for."""
        if is_set:
            self.hash_keys(items)
        if _has_parts(items):
            self.stack[-1] = max(self.stack[-1], self.list_of(items))
        else:
            self.stack[-1]

    def set_items(self, pairs: list[int]) -> None:
        """Add keys and values, and hash the keys."""
        self.hash_keys(pairs[::2])
        self.add(pairs)

    def build(self, state: int) -> None:
        """Add the state to the object."""
        self.add([state])

    def called(self, target: int, arguments: int) -> int:
        """Spend the copy that REDUCE and NEWOBJ make of arguments: the memo can supply the same ones again and again."""
        self.spend(arguments & _PARTS)
        return self.list_of([arguments, target])

    def called_with_keywords(self, target: int, arguments: int, keywords: int) -> int:
        """Spend a copy of the keywords as well."""
        self.spend(_KEY_COST)
        made = self.called(target, arguments)
        return max(made, self.list_of([keywords])) if keywords else made

    def made(self, target: int, arguments: list[int]) -> int:
        """The depth of the object."""
        return self.list_of([target, *arguments])

    def named(self, module: int | bytes, name: int | bytes) -> int:
        """Globals have no parts."""
        return 0

    def plain(self, parts: int = 0) -> int:
        """Only a long number has parts."""
        return parts

    def long(self, length: int) -> int:
        """A long number, up to a limit."""
        if length > self.limits.int_bytes:
            raise self.beyond(f"an int of {length} bytes")
        return length // 8

    def text(self, start: int, end: int, *, is_line: bool = False) -> int:
        """Only a long text has parts."""
        return (end - start) >> _KIB

    def raw(self, start: int, end: int) -> int:
        """Only long bytes have parts."""
        return (end - start) >> _KIB

    def line(self) -> bytes:
        """The line, up to a limit."""
        line = super().line()
        if len(line) > self.limits.line_bytes:
            raise self.beyond(f"a line of {len(line)} bytes")
        return line

    def memo_index(self, line: bytes) -> int:
        """The index, of digits only."""
        if not line.isdigit() or len(line) > 10:
            raise UnreadablePickle("a memo index that is no number", self.op_at)
        return int(line)
