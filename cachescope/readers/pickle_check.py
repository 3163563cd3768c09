"""One pass over a pickle's opcodes that refuses, before it runs, what could hurt the C unpickler.

The unpickler trusts its input: it allocates a declared length, grows its memo to any index, hashes keys
however nested they are. So the program is first followed with a stack of numbers in place of objects.
Opcodes as in CPython's Modules/_pickle.c and Lib/pickletools.py, protocols 0 to 5.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cachescope.errors import CachescopeError


class UnreadablePickle(CachescopeError):  # noqa: N818 - what it is, as callers say it
    """A pickle that was not read: damaged, hostile, or over a limit.

    Attributes
    ----------
    what : str
        What is wrong.
    offset : int or None
        The byte where it was found, where that is known.
    is_truncated : bool
        True where the bytes end before the pickle does.
    """

    def __init__(self, what: str, offset: int | None = None, *, is_truncated: bool = False) -> None:
        super().__init__(what if offset is None else f"{what} (byte {offset})")
        self.what = what
        self.offset = offset
        self.is_truncated = is_truncated


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a pickle may ask for.

    One opcode claims at most about 240 bytes beyond its own (an empty set), so `opcodes` bounds the
    memory. Real entries have some 2,000 opcodes per 80 kB, and nest about ten levels.
    """

    size_bytes: int = 256 << 20
    opcodes: int = 1_000_000
    depth: int = 2_000
    line_bytes: int = 4_000
    """One line of a text opcode: a number, a name, a memo index. Strings may be longer."""
    int_bytes: int = 4_096
    work: int = 4_000_000
    """What may be spent on keys and on copies of arguments, where one byte can ask for much."""
    stand_ins: int = 2_000


# What stands for an object: its depth in units of _LEVEL, plus how many parts its hash visits. Strings and
# numbers are 0, lists and dicts, which have no hash, only their depth.
_LEVEL = 1 << 40
_PARTS = _LEVEL - 1
# Hashes of ints and tuples are not seeded: a hostile pickle can make every key collide, and n keys then
# compare n * n / 2 times, each up to the last part. So a key with parts costs at least this much of
# `Limits.work`, which allows 4,000 of them, and parts ** 2, which allows none of more than 2,000 parts.
_KEY_COST = 1_000
_KIB = 10

_SIZE = [0] * 256
for _code, _bytes in {b"N": 1, b"\x88": 1, b"\x89": 1, b"K": 2, b"M": 3, b"J": 5, b"G": 9}.items():
    _SIZE[_code[0]] = _bytes
_EMPTY = frozenset(b"]}\x8f")
_LENGTH_BYTES = {0x8C: 1, 0x58: 4, 0x8D: 8, 0x43: 1, 0x42: 4, 0x8E: 8, 0x96: 8}
_REFUSED = {
    **dict.fromkeys(b"PQ", "persistent id"),
    **dict.fromkeys(b"\x82\x83\x84", "extension code"),
    **dict.fromkeys(b"\x97\x98", "buffer from outside the pickle"),
    **dict.fromkeys(b"STU", "string of Python 2"),
}


def check_program(data: bytes, limits: Limits) -> list[int]:
    """Follow the opcodes of a pickle; raise `UnreadablePickle` at the first that may not run.

    What passes has its STOP inside the bytes, declares no length beyond them, keeps memo indexes dense,
    and neither hashes nor copies more than `limits`. What the unpickler itself refuses without harm (an
    item taken below a mark, bad UTF-8) is left to it.

    Returns
    -------
    frames : list of int
        Where the FRAME opcodes are.
    """
    program = _Program(data, limits)
    try:
        program.run()
    except IndexError:
        if program.pos >= len(data) or data[program.pos :] == b"\x8c":
            raise UnreadablePickle("truncated", len(data), is_truncated=True) from None
        raise UnreadablePickle("not a pickle: takes what is not there", program.pos) from None
    return program.frames


class _Program:
    def __init__(self, data: bytes, limits: Limits) -> None:
        self.data = data
        self.limits = limits
        self.pos = 0
        self.frames: list[int] = []
        self.stack: list[int] = []
        self.marks: list[int] = []
        self.memo: list[int] = []
        self.work = 0

    def run(self) -> None:
        # Strings and their memo are eight opcodes in ten, so the loop is written for them.
        data, pos, sizes, steps = self.data, 0, _SIZE, _STEPS
        stack, memo = self.stack, self.memo
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
                    push(_LEVEL)
                    pos += 1
                elif op == 0x2E:  # STOP
                    stack[-1]
                    return
                elif op in steps:
                    self.pos = pos
                    steps[op](self)
                    pos += 1
                else:
                    self.pos = pos
                    pos = self.argument(op, pos + 1)
        finally:
            self.pos = pos
        raise self.refuse(f"more than {self.limits.opcodes} opcodes")

    def refuse(self, what: str) -> UnreadablePickle:
        return UnreadablePickle(what, self.pos)

    def argument(self, op: int, pos: int) -> int:
        """An opcode with an argument behind it; gives where the next one begins."""
        data, push = self.data, self.stack.append
        if op in _LENGTH_BYTES:
            start = pos + _LENGTH_BYTES[op]
            end = start + self.number(pos, start)
            if end > len(data):
                self.pos = len(data)
                raise UnreadablePickle("truncated", len(data), is_truncated=True)
            push((end - start) >> _KIB)
            return end
        if op in b"hj":  # BINGET, LONG_BINGET
            end = pos + (1 if op == 0x68 else 4)
            push(self.memo[self.number(pos, end)])
            return end
        if op in b"qr":  # BINPUT, LONG_BINPUT
            end = pos + (1 if op == 0x71 else 4)
            self.put(self.number(pos, end))
            return end
        if op in b"\x8a\x8b":  # LONG1, LONG4
            start = pos + (1 if op == 0x8A else 4)
            length = self.number(pos, start)
            if length > self.limits.int_bytes:
                raise self.refuse(f"an int of {length} bytes")
            push(length // 8)
            return start + length
        if op == 0x95:  # FRAME
            self.frames.append(pos - 1)
            return pos + 8
        if op == 0x80:  # PROTO
            return pos + 1
        if op in b"VFILgpci":
            return self.line(op, pos)
        if op in _REFUSED:
            raise self.refuse(_REFUSED[op])
        raise self.refuse(f"not a pickle: no opcode 0x{op:02x}")

    def number(self, start: int, end: int) -> int:
        if end > len(self.data):
            raise UnreadablePickle("truncated", len(self.data), is_truncated=True)
        return int.from_bytes(self.data[start:end], "little")

    def line(self, op: int, pos: int) -> int:
        """A text opcode, whose argument ends with the line; GLOBAL and INST take two."""
        end = self.end_of_line(pos)
        length = end - pos
        if op == 0x56:  # UNICODE
            self.stack.append(length >> _KIB)
        elif length > self.limits.line_bytes:
            raise self.refuse(f"a line of {length} bytes")
        elif op in b"gp":  # GET, PUT
            digits = self.data[pos:end]
            if not digits.isdigit() or length > 10:
                raise self.refuse("a memo index that is no number")
            if op == 0x67:
                self.stack.append(self.memo[int(digits)])
            else:
                self.put(int(digits))
        elif op in b"FIL":
            self.stack.append(length // 20)
        else:
            second = self.end_of_line(end + 1)
            if second - end > self.limits.line_bytes:
                raise self.refuse(f"a line of {second - end} bytes")
            self.stack.append(0) if op == 0x63 else _inst(self)
            end = second
        return end + 1

    def end_of_line(self, pos: int) -> int:
        end = self.data.find(b"\n", pos)
        if end < 0:
            raise UnreadablePickle("truncated", len(self.data), is_truncated=True)
        return end

    def put(self, index: int) -> None:
        # The unpickler's memo is an array as long as the largest index. Every pickler counts up.
        if index > len(self.memo):
            raise self.refuse(f"memo index {index} where {len(self.memo)} are in use")
        self.memo[index : index + 1] = [self.stack[-1]]

    def take(self) -> list[int]:
        """What lies above the last mark."""
        mark = self.marks.pop()
        taken = self.stack[mark:]
        del self.stack[mark:]
        return taken

    def spend(self, amount: int) -> None:
        self.work += amount
        if self.work > self.limits.work:
            raise self.refuse("hashes or copies too much")

    def hash_keys(self, keys: list[int]) -> None:
        if any(keys):
            for key in keys:
                if parts := key & _PARTS:
                    self.spend(_KEY_COST + parts * parts)

    def above(self, parts: list[int]) -> int:
        """The depth of a container of these parts."""
        deepest = max(parts, default=0) // _LEVEL + 1
        if deepest > self.limits.depth:
            raise self.refuse(f"nested deeper than {self.limits.depth} levels")
        return deepest * _LEVEL

    def fill(self, parts: list[int]) -> None:
        """Put parts into the container on top of the stack."""
        if any(parts):
            self.stack[-1] = max(self.stack[-1], self.above(parts))
        else:
            self.stack[-1]

    def push_hashable(self, parts: list[int]) -> None:
        visited = 1 + len(parts)
        if any(parts):
            visited += sum(part & _PARTS for part in parts)
            self.stack.append(self.above(parts) + min(visited, _PARTS))
        else:
            self.stack.append(_LEVEL + visited)


def _mark(program: _Program) -> None:
    program.marks.append(len(program.stack))


def _pop(program: _Program) -> None:
    if program.marks and program.marks[-1] == len(program.stack):
        program.marks.pop()
    else:
        program.stack.pop()


def _pop_mark(program: _Program) -> None:
    program.take()


def _dup(program: _Program) -> None:
    program.stack.append(program.stack[-1])


def _tuple_of(count: int) -> Callable[[_Program], None]:
    def step(program: _Program) -> None:
        program.push_hashable([program.stack.pop() for _ in range(count)])

    return step


def _tuple(program: _Program) -> None:
    program.push_hashable(program.take())


def _frozenset(program: _Program) -> None:
    parts = program.take()
    program.hash_keys(parts)
    program.push_hashable(parts)


def _list(program: _Program) -> None:
    program.stack.append(program.above(program.take()))


def _dict(program: _Program) -> None:
    parts = program.take()
    program.hash_keys(parts[::2])
    program.stack.append(program.above(parts))


def _append_or_build(program: _Program) -> None:
    program.fill([program.stack.pop()])


def _appends(program: _Program) -> None:
    program.fill(program.take())


def _setitem(program: _Program) -> None:
    value, key = program.stack.pop(), program.stack.pop()
    program.hash_keys([key])
    program.fill([key, value])


def _setitems(program: _Program) -> None:
    parts = program.take()
    program.hash_keys(parts[::2])
    program.fill(parts)


def _additems(program: _Program) -> None:
    parts = program.take()
    program.hash_keys(parts)
    program.fill(parts)


def _stack_global(program: _Program) -> None:
    del program.stack[-2:]
    program.stack.append(0)


def _call(program: _Program) -> None:
    # REDUCE and NEWOBJ copy the arguments, and the memo can give the same ones again and again.
    arguments, called = program.stack.pop(), program.stack.pop()
    program.spend(arguments & _PARTS)
    program.stack.append(program.above([arguments, called]))


def _call_with_keywords(program: _Program) -> None:
    keywords = program.stack.pop()
    program.spend(_KEY_COST)
    _call(program)
    program.fill([keywords])


def _inst(program: _Program) -> None:
    program.stack.append(program.above(program.take()))


# Opcodes without an argument that change more than the top of the stack.
_STEPS: dict[int, Callable[[_Program], None]] = {
    ord(code): step
    for code, step in {
        "(": _mark,
        "0": _pop,
        "1": _pop_mark,
        "2": _dup,
        ")": _tuple_of(0),
        "\x85": _tuple_of(1),
        "\x86": _tuple_of(2),
        "\x87": _tuple_of(3),
        "t": _tuple,
        "\x91": _frozenset,
        "l": _list,
        "d": _dict,
        "a": _append_or_build,
        "b": _append_or_build,
        "e": _appends,
        "s": _setitem,
        "u": _setitems,
        "\x90": _additems,
        "\x93": _stack_global,
        "R": _call,
        "\x81": _call,
        "\x92": _call_with_keywords,
        "o": _inst,
    }.items()
}
