"""The effect of a pickle's opcodes on the stack and the memo, with numbers in place of objects, and the limits of both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cachescope.errors import CachescopeError

# An object is represented by its depth in units of LEVEL, plus the number of parts that its hash visits. Strings and
# numbers are 0. Lists and dicts have no hash and therefore only a depth.
LEVEL = 1 << 40
PARTS = LEVEL - 1
# Hashes of ints and tuples are not seeded: a hostile pickle can make all keys collide. Then n keys
# are compared n * n / 2 times, each up to the last part. So a key with parts costs at least this much of
# `Limits.work`, which allows 4,000 keys, plus parts ** 2, which allows no key of more than 2,000 parts.
_KEY_COST = 1_000


class UnreadablePickle(CachescopeError):  # noqa: N818 - what it is, as callers say it
    """A pickle that was not read: damaged, hostile, or over a limit.

    Attributes
    ----------
    what : str
        What is wrong.
    offset : int or None
        The offset of the fault, if known.
    is_truncated : bool
        Whether the bytes end before the pickle does.
    """

    def __init__(self, what: str, offset: int | None = None, *, is_truncated: bool = False) -> None:
        super().__init__(what if offset is None else f"{what} (byte {offset})")
        self.what = what
        self.offset = offset
        self.is_truncated = is_truncated


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


def has_parts(values: list[int]) -> bool:
    """Whether any value in a list, often hundreds of strings, is not 0: a faster `any`."""
    return values.count(0) != len(values)


class State:
    """The stack, the marks and the memo of an unpickler, and the work spent so far."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.pos = 0
        self.stack: list[int] = []
        self.marks: list[int] = []
        self.memo: list[int] = []
        self.work = 0

    def refuse(self, what: str) -> UnreadablePickle:
        """An error about the current opcode."""
        return UnreadablePickle(what, self.pos)

    def beyond(self, what: str) -> NotRead:
        """An error because the current opcode exceeds a limit; an unpickler without limits might run it."""
        return NotRead(what, self.pos)

    def put(self, index: int) -> None:
        """Store the top of the stack in the memo at an index."""
        # The unpickler's memo is an array as long as the largest index. Every pickler uses indexes in order.
        if index > len(self.memo):
            raise self.beyond(f"memo index {index} where {len(self.memo)} are in use")
        self.memo[index : index + 1] = [self.stack[-1]]

    def take(self) -> list[int]:
        """Remove and return the items above the last mark."""
        mark = self.marks.pop()
        taken = self.stack[mark:]
        del self.stack[mark:]
        return taken

    def spend(self, amount: int) -> None:
        """Use up some of `Limits.work`."""
        self.work += amount
        if self.work > self.limits.work:
            raise self.beyond("hashes or copies too much")

    def hash_keys(self, keys: list[int]) -> None:
        """Spend the worst cost of hashing and comparing keys."""
        if has_parts(keys):
            for key in keys:
                if parts := key & PARTS:
                    self.spend(_KEY_COST + parts * parts)

    def above(self, parts: list[int]) -> int:
        """The depth of a container of these parts."""
        deepest = max(parts) // LEVEL + 1 if parts else 1
        if deepest > self.limits.depth:
            raise self.beyond(f"nested deeper than {self.limits.depth} levels")
        return deepest * LEVEL

    def fill(self, parts: list[int]) -> None:
        """Put parts into the container on top of the stack."""
        if has_parts(parts):
            self.stack[-1] = max(self.stack[-1], self.above(parts))
        else:
            self.stack[-1]

    def push_hashable(self, parts: list[int]) -> None:
        """Push a tuple or a frozenset."""
        visited = 1 + len(parts)
        if has_parts(parts):
            visited += sum(part & PARTS for part in parts)
            self.stack.append(self.above(parts) + min(visited, PARTS))
        else:
            self.stack.append(LEVEL + visited)


def _pop(state: State) -> None:
    if state.marks and state.marks[-1] == len(state.stack):
        state.marks.pop()
    else:
        state.stack.pop()


def _pop_mark(state: State) -> None:
    state.take()


def _dup(state: State) -> None:
    state.stack.append(state.stack[-1])


def _tuple_of_1(state: State) -> None:
    state.push_hashable([state.stack.pop()])


def _tuple_of_2(state: State) -> None:
    state.push_hashable([state.stack.pop(), state.stack.pop()])


def _tuple_of_3(state: State) -> None:
    state.push_hashable([state.stack.pop(), state.stack.pop(), state.stack.pop()])


def _tuple(state: State) -> None:
    state.push_hashable(state.take())


def _frozenset(state: State) -> None:
    parts = state.take()
    state.hash_keys(parts)
    state.push_hashable(parts)


def _list(state: State) -> None:
    state.stack.append(state.above(state.take()))


def _dict(state: State) -> None:
    parts = state.take()
    state.hash_keys(parts[::2])
    state.stack.append(state.above(parts))


def _append_or_build(state: State) -> None:
    if part := state.stack.pop():
        state.fill([part])
    else:
        state.stack[-1]


def _appends(state: State) -> None:
    state.fill(state.take())


def _setitem(state: State) -> None:
    value, key = state.stack.pop(), state.stack.pop()
    state.hash_keys([key])
    state.fill([key, value])


def _setitems(state: State) -> None:
    parts = state.take()
    state.hash_keys(parts[::2])
    state.fill(parts)


def _additems(state: State) -> None:
    parts = state.take()
    state.hash_keys(parts)
    state.fill(parts)


def _stack_global(state: State) -> None:
    state.stack.pop()
    state.stack[-1] = 0


def _call(state: State) -> None:
    # REDUCE and NEWOBJ copy the arguments, and the memo can supply the same ones again and again.
    arguments, called = state.stack.pop(), state.stack.pop()
    state.spend(arguments & PARTS)
    state.stack.append(state.above([arguments, called]))


def _call_with_keywords(state: State) -> None:
    keywords = state.stack.pop()
    state.spend(_KEY_COST)
    _call(state)
    state.fill([keywords])


def inst(state: State) -> None:
    """Push the object that INST and OBJ make from the items above the mark."""
    state.stack.append(state.above(state.take()))


# Opcodes without an argument that change more than the top of the stack.
STEPS: dict[int, Callable[[State], None]] = {
    ord(code): step
    for code, step in {
        "0": _pop,
        "1": _pop_mark,
        "2": _dup,
        "\x85": _tuple_of_1,
        "\x86": _tuple_of_2,
        "\x87": _tuple_of_3,
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
        "o": inst,
    }.items()
}
