"""One pass over a pickle's opcodes that refuses a harmful program before the C unpickler runs it.

The unpickler trusts its input: it allocates any declared length, grows its memo to any index, and hashes keys
however nested they are. So a program is first followed with numbers in place of objects. Opcodes as in CPython's
Modules/_pickle.c, Lib/pickle.py and Lib/pickletools.py, protocols 0 to 5.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from cachescope.errors import CachescopeError

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


class UnreadablePickle(CachescopeError):  # noqa: N818 - what it is, as callers say it
    """A pickle that was not read: damaged, hostile, or over a limit."""

    def __init__(self, what: str, offset: int | None = None) -> None:
        super().__init__(what if offset is None else f"{what} (byte {offset})")
        self.what = what
        self.offset = offset
        self.frames: list[int] = []  # the offsets of the FRAME opcodes before
        self.op_at = 0  # the offset of the last opcode that was followed, but for frequent ones


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
    except (LookupError, UnreadablePickle) as error:
        if isinstance(error, UnreadablePickle):
            failed = error
        elif cost.at >= len(data) or data[cost.at :] == b"\x8c":
            failed = cost.truncated()
        else:
            failed = UnreadablePickle("not a pickle: takes what is not there", cost.at)
        failed.frames, failed.op_at = cost.frames, cost.op_at
        raise failed from None
    return [] if frames_fit(data, cost.frames, cost.at + 1) else cost.frames


def frames_fit(data: bytes, frames: list[int], end: int) -> bool:
    """Whether each frame ends where the next one begins, and the last at the end, as picklers write them."""
    pairs = zip(frames, [*frames[1:], end], strict=False)
    return all(int.from_bytes(data[at + 1 : at + 9], "little") == after - at - 9 for at, after in pairs)


def _has_parts(values: list[int]) -> bool:
    """Whether any value in a list, often hundreds of strings, is not 0: a faster `any`."""
    return values.count(0) != len(values)


class Cost:
    """What loading a pickle costs, and the limits of it; the numbers on the stack are explained at the top."""

    def __init__(self, data: bytes, limits: Limits) -> None:
        self.data = data
        self.limits = limits
        self.at = 0  # the offset of the next byte to read
        self.op_at = 0  # the offset of the opcode that is followed
        self.stack: list[int] = []
        self.below: list[list[int]] = []  # the stacks below each mark
        self.memo: list[int] = []
        self.frames: list[int] = []  # the offsets of the FRAME opcodes
        self.work = 0

    def run(self) -> None:
        """Follow the opcodes up to STOP; raise LookupError if one takes an item that does not exist."""
        # Eight of ten opcodes are strings and their MEMOIZE, so these and other frequent ones are followed here.
        data, pos, sizes, steps = self.data, 0, _SIZE, _STEPS
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

    def truncated(self) -> UnreadablePickle:
        """An error because the bytes end within an opcode or before STOP."""
        return UnreadablePickle("truncated", len(self.data))

    # The arguments of opcodes.

    def skip(self, count: int) -> int:
        """Pass over bytes, and return the offset of the first."""
        start = self.at
        if start + count > len(self.data):
            raise self.truncated()
        self.at += count
        return start

    def number(self, size: int) -> int:
        """Read an unsigned number of `size` bytes."""
        return int.from_bytes(self.data[self.skip(size) : self.at], "little")

    def text_line(self) -> bytes:
        """The line that a text opcode has as its argument."""
        start, end = self.at, self.data.find(b"\n", self.at)
        if end < 0:
            raise self.truncated()
        self.at = end + 1
        return self.data[start:end]

    def line(self) -> bytes:
        """The same of a number or a name, up to a limit."""
        line = self.text_line()
        if len(line) > self.limits.line_bytes:
            raise self.beyond(f"a line of {len(line)} bytes")
        return line

    def memo_index(self) -> int:
        """A line that is an index, of digits only."""
        line = self.line()
        if not line.isdigit() or len(line) > 10:
            raise UnreadablePickle("a memo index that is no number", self.op_at)
        return int(line)

    # The stack and the memo.

    def pop(self, count: int) -> list[int]:
        """Remove and return the items on top of the stack."""
        first = len(self.stack) - count
        if first < 0:
            raise IndexError(count)
        taken = self.stack[first:]
        del self.stack[first:]
        return taken

    def pop_mark(self) -> list[int]:
        """Remove and return the items above the last mark."""
        taken, self.stack = self.stack, self.below.pop()
        return taken

    def put(self, index: int) -> None:
        """Store the top of the stack in the memo, at the next index or one in use."""
        # The unpickler's memo is an array as long as the largest index. Every pickler uses indexes in order.
        if index > len(self.memo):
            raise self.beyond(f"memo index {index} where {len(self.memo)} are in use")
        self.memo[index : index + 1] = [self.stack[-1]]

    # What hashing and copying costs, and how deep what is made nests.

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

    def called(self, target: int, arguments: int, keywords: int | None = None) -> int:
        """Spend the copies that REDUCE and NEWOBJ make of arguments: the memo can supply the same ones again and again."""
        if keywords is not None:
            self.spend(_KEY_COST)
        self.spend(arguments & _PARTS)
        return self.list_of([arguments, target] if keywords is None else [arguments, target, keywords])


Step: TypeAlias = Callable[[Cost], object]


def _frame(cost: Cost) -> None:
    # Like `pickle.loads`, which torch calls: it only requires that the whole frame is there.
    if cost.number(8) > len(cost.data) - cost.at:
        raise cost.truncated()
    cost.frames.append(cost.op_at)


def _refused(what: str) -> Step:
    def step(cost: Cost) -> None:
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


def _pop(cost: Cost) -> None:
    if cost.stack:
        cost.stack.pop()
    else:
        cost.pop_mark()


def _mark(cost: Cost) -> None:
    # What is above a mark becomes one container, so containers that nest have marks that nest.
    if len(cost.below) > cost.limits.depth:
        raise cost.beyond(f"marks nested deeper than {cost.limits.depth} levels")
    cost.below.append(cost.stack)
    cost.stack = []


def _long(size: int) -> Step:
    def step(cost: Cost) -> None:
        length = cost.number(size)
        if length > cost.limits.int_bytes:
            raise cost.beyond(f"an int of {length} bytes")
        cost.stack.append(length // 8)
        cost.skip(length)

    return step


def _counted(size: int) -> Step:
    """The step of a text or bytes that are preceded by their length, a number of `size` bytes; only long ones have parts."""

    def step(cost: Cost) -> None:
        start = cost.at + size
        length = int.from_bytes(cost.data[cost.at : start], "little")
        cost.at = start + length
        if cost.at > len(cost.data):
            raise cost.truncated()
        cost.stack.append(length >> _KIB)

    return step


def _of_top(count: int, make: Callable[..., int]) -> Step:
    return lambda cost: cost.stack.append(make(cost, *cost.pop(count)))


def _of_mark(make: Callable[[Cost, list[int]], int]) -> Step:
    def step(cost: Cost) -> None:
        made = make(cost, cost.pop_mark())  # replaces the stack
        cost.stack.append(made)

    return step


def _global(cost: Cost) -> None:
    cost.line()
    cost.line()
    cost.stack.append(0)


def _inst(cost: Cost) -> None:
    _global(cost)
    target = cost.stack.pop()
    made = cost.list_of([target, *cost.pop_mark()])
    cost.stack.append(made)


# What each opcode does that `Cost.run` does not follow by itself.
_STEPS: Final[dict[int, Step]] = {
    ord(code): step
    for code, step in {
        "\x80": lambda cost: cost.skip(1),
        "\x95": _frame,
        **dict.fromkeys("FIL", lambda cost: cost.stack.append(len(cost.line()) // 20)),
        "\x8a": _long(1),
        "\x8b": _long(4),
        "C": _counted(1),
        **dict.fromkeys("XB", _counted(4)),
        **dict.fromkeys("\x8d\x8e\x96", _counted(8)),
        "V": lambda cost: cost.stack.append(len(cost.text_line()) >> _KIB),
        "(": _mark,
        "0": _pop,
        "1": Cost.pop_mark,
        "2": lambda cost: cost.stack.append(cost.stack[-1]),
        "\x85": lambda cost: cost.stack.append(cost.tuple_of(cost.pop(1))),
        "\x86": lambda cost: cost.stack.append(cost.tuple_of(cost.pop(2))),
        "\x87": lambda cost: cost.stack.append(cost.tuple_of(cost.pop(3))),
        "t": _of_mark(Cost.tuple_of),
        "l": _of_mark(Cost.list_of),
        "\x91": _of_mark(Cost.set_of),
        "d": _of_mark(Cost.dict_of),
        "a": lambda cost: cost.add(cost.pop(1)),
        "e": lambda cost: cost.add(cost.pop_mark()),
        "\x90": lambda cost: cost.add(cost.pop_mark(), is_set=True),
        "s": lambda cost: cost.set_items(cost.pop(2)),
        "u": lambda cost: cost.set_items(cost.pop_mark()),
        "b": lambda cost: cost.add([cost.stack.pop()]),
        "c": _global,
        "\x93": _of_top(2, lambda cost, module, name: 0),
        **dict.fromkeys("R\x81", _of_top(2, Cost.called)),
        "\x92": _of_top(3, Cost.called),
        "i": _inst,
        "o": _of_mark(lambda cost, parts: cost.list_of([parts[0], *parts[1:]])),
        "q": lambda cost: cost.put(cost.number(1)),
        "r": lambda cost: cost.put(cost.number(4)),
        "p": lambda cost: cost.put(cost.memo_index()),
        "h": lambda cost: cost.stack.append(cost.memo[cost.number(1)]),
        "j": lambda cost: cost.stack.append(cost.memo[cost.number(4)]),
        "g": lambda cost: cost.stack.append(cost.memo[cost.memo_index()]),
        **dict.fromkeys("PQ", _persistent),
        **dict.fromkeys("\x82\x83\x84", _refused("extension code")),
        **dict.fromkeys("\x97\x98", _refused("buffer from outside the pickle")),
        **dict.fromkeys("STU", _refused("string of Python 2")),
    }.items()
}
