"""The limits of a pickle, and the errors if it exceeds them."""

from __future__ import annotations

from dataclasses import dataclass

from cachescope.errors import CachescopeError


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
