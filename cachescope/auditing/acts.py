"""What a pickle would do when it is loaded, and the stack and the memo with which that is followed.

Names stand in place of objects; nothing is resolved or called.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

_MOST_ACTS: Final = 2_000
LONGEST_NAME: Final = 4_000
_LONGEST_TABLE: Final = 1_000


@dataclass(frozen=True, slots=True)
class Global:
    """What ``module`` and ``name`` stand for, as the pickle spells them."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


class Made:
    """Something that a call gave."""


class Encoded:
    """Bytes that were made of a text."""


class Table:
    """A dict: only its keys that are text are kept."""

    def __init__(self) -> None:
        self.keys: set[str] = set()

    def add(self, key: Any) -> None:
        """Keep a key."""
        if isinstance(key, str) and len(self.keys) < _LONGEST_TABLE:
            self.keys.add(key)


class _Other:
    """Any other value."""


OTHER: Final = _Other()


@dataclass(frozen=True, slots=True)
class Bytes:
    """Bytes in the pickle, or a text too long for a name, by their place in it."""

    start: int
    end: int
    is_text: bool = False


@dataclass(frozen=True, slots=True)
class Act:
    """Something that the pickle does: ``name``, ``computed`` or ``odd``."""

    what: str
    target: Global | None
    offset: int
    text: str = ""


@dataclass(slots=True)
class Program:
    """What was found in one pickle.

    Attributes
    ----------
    acts : list of Act
        What it does, each once, in order.
    bytes_inside : list of Bytes
        Bytes that may be pickles themselves.
    texts_inside : list of (bytes, int)
        Bytes that the pickle writes as text, as protocols 0 to 2 do, and where.
    end : int
        Behind its last opcode.
    damage : str or None
        Why it cannot be loaded further.
    is_cut : bool
        Whether more would have come than is followed.
    """

    acts: list[Act] = field(default_factory=list)
    bytes_inside: list[Bytes] = field(default_factory=list)
    texts_inside: list[tuple[bytes, int]] = field(default_factory=list)
    end: int = 0
    damage: str | None = None
    is_cut: bool = False


class Broken(Exception):  # noqa: N818 - what it is
    """A pickle that cannot be loaded further."""


class Run:
    """One pickle while it is followed."""

    def __init__(self, data: bytes, start: int) -> None:
        self.data = data
        self.at = start
        self.op_at = start
        self.stack: list[Any] = []
        self.below: list[list[Any]] = []
        self.memo: dict[int, Any] = {}
        self.program = Program()
        self.frame_end = 0
        self._known: set[tuple[Any, ...]] = set()

    def at_frame_end(self) -> None:
        """A frame has to end between opcodes."""
        # Unpicklers that read from a file drop what is left of a frame where an argument crosses its end.
        if self.op_at != self.frame_end:
            self.act(
                "odd", None, "a frame that does not end between opcodes: unpicklers disagree on what follows"
            )
        self.frame_end = 0

    def act(self, what: str, target: Global | None, text: str = "") -> None:
        """Note an act, once."""
        known = (what, target, text)
        if known in self._known:
            return
        self._known.add(known)
        if len(self.program.acts) >= _MOST_ACTS:
            self.program.is_cut = True
            return
        self.program.acts.append(Act(what, target, self.op_at, text))

    def name(self, module: Any, name: Any) -> Any:
        """A global that is named."""
        if not isinstance(module, str) or not isinstance(name, str):
            self.act("computed", None, "names a global by what it computed")
            return OTHER
        found = Global(module, name)
        self.act("name", found)
        return found

    def changed(self, target: Any, how: str) -> None:
        """Something is put into what may be no object of the pickle's own."""
        if isinstance(target, Global):
            self.act("computed", target, f"{how} {target}")

    def pop_mark(self) -> list[Any]:
        """What lies above the last mark."""
        if not self.below:
            raise Broken("not a pickle: takes a mark that is not there")
        taken, self.stack = self.stack, self.below.pop()
        return taken

    def take(self, count: int) -> bytes:
        """So many bytes."""
        end = self.at + count
        if end > len(self.data):
            self.at = len(self.data)
            raise Broken("truncated")
        taken = self.data[self.at : end]
        self.at = end
        return taken

    def counted(self, size: int) -> tuple[int, int]:
        """Where an argument is that its length goes before."""
        count = int.from_bytes(self.take(size), "little")
        start, end = self.at, self.at + count
        if end > len(self.data):
            self.at = len(self.data)
            raise Broken("truncated")
        self.at = end
        return start, end

    def text_at(self, place: tuple[int, int]) -> Any:
        """A text, where it may be a name."""
        start, end = place
        if end - start > LONGEST_NAME:
            return Bytes(start, end, is_text=True)
        return self.data[start:end].decode("utf-8", "surrogatepass")

    def push_bytes(self, size: int) -> None:
        """Bytes, which may be a pickle."""
        found = Bytes(*self.counted(size))
        if found.end - found.start > 3:
            self.program.bytes_inside.append(found)
        self.stack.append(found)

    def line(self) -> bytes:
        """The argument of a text opcode."""
        end = self.data.find(b"\n", self.at)
        if end < 0:
            self.at = len(self.data)
            raise Broken("truncated")
        taken = self.data[self.at : end]
        self.at = end + 1
        return taken

    def number(self, size: int) -> int:
        """An unsigned number."""
        return int.from_bytes(self.take(size), "little")

    def skip(self, size: int) -> None:
        """An argument that tells nothing: a long number."""
        self.take(self.number(size))
