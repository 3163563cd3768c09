"""Follows the opcodes of a pickle with values in place of objects: nothing is resolved, made or called.

What stands for an object is decided by `pickle_check`. Opcodes as in CPython's Modules/_pickle.c, Lib/pickle.py and
Lib/pickletools.py, protocols 0 to 5.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final, TypeAlias

from cachescope.errors import CachescopeError


class UnreadablePickle(CachescopeError):  # noqa: N818 - what it is, as callers say it
    """A pickle that was not read: damaged, hostile, or over a limit."""

    def __init__(self, what: str, offset: int | None = None) -> None:
        super().__init__(what if offset is None else f"{what} (byte {offset})")
        self.what = what
        self.offset = offset


class Machine:
    """The stack, the marks and the memo of an unpickler, and what a domain puts there: None for what does not matter to it."""

    steps: ClassVar[Mapping[int, Step]]
    """What each opcode does: `STEPS`, and what the domain does in its own way."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0  # the offset of the next byte to read
        self.op_at = 0  # the offset of the opcode that is followed
        self.stack: list[Any] = []
        self.below: list[list[Any]] = []  # the stacks below each mark
        self.memo: Any = {}  # by index

    def get(self, index: int) -> None:
        """Push what is in the memo."""
        self.stack.append(self.memo[index])

    def pop(self, count: int) -> list[Any]:
        """Remove and return the items on top of the stack."""
        stack = self.stack
        first = len(stack) - count
        if first < 0:
            raise IndexError(count)
        taken = stack[first:]
        del stack[first:]
        return taken

    def pop_mark(self) -> list[Any]:
        """Remove and return the items above the last mark."""
        taken, self.stack = self.stack, self.below.pop()
        return taken

    def skip(self, count: int) -> int:
        """Pass over bytes, and return the offset of the first."""
        start = self.at
        if start + count > len(self.data):
            raise self.truncated()
        self.at += count
        return start

    def number(self, size: int) -> int:
        """Read an unsigned number of `size` bytes."""
        start = self.skip(size)
        return int.from_bytes(self.data[start : self.at], "little")

    def counted(self, size: int) -> tuple[int, int]:
        """The start and end of an argument that is preceded by its length."""
        start = self.at + size
        end = start + int.from_bytes(self.data[self.at : start], "little")
        if end > len(self.data):
            raise self.truncated()
        self.at = end
        return start, end

    def line_at(self) -> tuple[int, int]:
        """The start and end of the line that a text opcode has as its argument."""
        start, end = self.at, self.data.find(b"\n", self.at)
        if end < 0:
            raise self.truncated()
        self.at = end + 1
        return start, end

    def line(self) -> bytes:
        """The argument of a text opcode that is a number or a name."""
        start, end = self.line_at()
        return self.data[start:end]

    def truncated(self) -> UnreadablePickle:
        """An error because the bytes end within an opcode or before STOP."""
        return UnreadablePickle("truncated", len(self.data))


Step: TypeAlias = Callable[[Any], object]


def _pop(machine: Any) -> None:
    if machine.stack:
        machine.stack.pop()
    else:
        machine.pop_mark()


def _mark(machine: Any) -> None:
    machine.below.append(machine.stack)
    machine.stack = []


def _fixed(size: int) -> Step:
    def step(machine: Any) -> None:
        machine.skip(size)
        machine.stack.append(machine.plain())

    return step


def _long(size: int) -> Step:
    def step(machine: Any) -> None:
        length = machine.number(size)
        machine.stack.append(machine.long(length))
        machine.skip(length)

    return step


def text(size: int) -> Step:
    """The step of a text that is preceded by its length, a number of `size` bytes."""
    return lambda machine: machine.stack.append(machine.text(*machine.counted(size)))


def _raw(size: int) -> Step:
    return lambda machine: machine.stack.append(machine.raw(*machine.counted(size)))


def _tuple_of(count: int) -> Step:
    return lambda machine: machine.stack.append(machine.tuple_of(machine.pop(count)))


def _of_mark(make: Callable[[Any, list[Any]], Any]) -> Step:
    def step(machine: Any) -> None:
        made = make(machine, machine.pop_mark())  # replaces the stack
        machine.stack.append(made)

    return step


def _inst(machine: Any) -> None:
    target = machine.named(machine.line(), machine.line())
    made = machine.made(target, machine.pop_mark())
    machine.stack.append(made)


STEPS: Final[dict[int, Step]] = {
    ord(code): step
    for code, step in {
        "\x80": lambda machine: machine.number(1),
        **dict.fromkeys("N\x88\x89", _fixed(0)),
        "K": _fixed(1),
        "M": _fixed(2),
        "J": _fixed(4),
        "G": _fixed(8),
        **dict.fromkeys(
            "FIL", lambda machine: machine.stack.append(machine.plain(len(machine.line()) // 20))
        ),
        "\x8a": _long(1),
        "\x8b": _long(4),
        "\x8c": text(1),
        "X": text(4),
        "\x8d": text(8),
        "V": lambda machine: machine.stack.append(machine.text(*machine.line_at(), is_line=True)),
        "C": _raw(1),
        "B": _raw(4),
        "\x8e": _raw(8),
        "\x96": _raw(8),
        "(": _mark,
        "0": _pop,
        "1": lambda machine: machine.pop_mark(),
        "2": lambda machine: machine.stack.append(machine.stack[-1]),
        ")": _tuple_of(0),
        "\x85": _tuple_of(1),
        "\x86": _tuple_of(2),
        "\x87": _tuple_of(3),
        "t": _of_mark(lambda machine, parts: machine.tuple_of(parts)),
        "]": lambda machine: machine.stack.append(machine.list_of([])),
        "l": _of_mark(lambda machine, parts: machine.list_of(parts)),
        "\x8f": lambda machine: machine.stack.append(machine.set_of([])),
        "\x91": _of_mark(lambda machine, parts: machine.set_of(parts)),
        "}": lambda machine: machine.stack.append(machine.dict_of([])),
        "d": _of_mark(lambda machine, pairs: machine.dict_of(pairs)),
        "a": lambda machine: machine.add(machine.pop(1)),
        "e": lambda machine: machine.add(machine.pop_mark()),
        "\x90": lambda machine: machine.add(machine.pop_mark(), is_set=True),
        "s": lambda machine: machine.set_items(machine.pop(2)),
        "u": lambda machine: machine.set_items(machine.pop_mark()),
        "b": lambda machine: machine.build(machine.stack.pop()),
        "c": lambda machine: machine.stack.append(machine.named(machine.line(), machine.line())),
        "\x93": lambda machine: machine.stack.append(machine.named(*machine.pop(2))),
        **dict.fromkeys("R\x81", lambda machine: machine.stack.append(machine.called(*machine.pop(2)))),
        "\x92": lambda machine: machine.stack.append(machine.called_with_keywords(*machine.pop(3))),
        "i": _inst,
        "o": _of_mark(lambda machine, parts: machine.made(parts[0], parts[1:])),
        "\x94": lambda machine: machine.put(len(machine.memo)),
        "q": lambda machine: machine.put(machine.number(1)),
        "r": lambda machine: machine.put(machine.number(4)),
        "p": lambda machine: machine.put(machine.memo_index(machine.line())),
        "h": lambda machine: machine.get(machine.number(1)),
        "j": lambda machine: machine.get(machine.number(4)),
        "g": lambda machine: machine.get(machine.memo_index(machine.line())),
    }.items()
}
