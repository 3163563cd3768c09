"""The acts of a pickle when it is loaded, and the stack and the memo for following them.

Names stand for objects; nothing is resolved or called.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

_MOST_ACTS: Final = 2_000
LONGEST_NAME: Final = 4_000
_LONGEST_TABLE: Final = 1_000


@dataclass(frozen=True, slots=True)
class Global:
    """A global: its ``module`` and ``name`` as the pickle spells them."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


class CallResult:
    """The result of a call."""


class Partial(CallResult):
    """A ``functools.partial`` of a named global."""

    def __init__(self, function: Global) -> None:
        self.function = function


class Encoded:
    """Bytes encoded from a text."""


class Table:
    """A dict, of which only the text keys are kept."""

    def __init__(self) -> None:
        self.keys: set[str] = set()

    def add(self, key: Any) -> None:
        """Store a key."""
        if isinstance(key, str) and len(self.keys) < _LONGEST_TABLE:
            self.keys.add(key)


class _Other:
    """Any other value."""


OTHER: Final = _Other()


@dataclass(frozen=True, slots=True)
class Bytes:
    """Bytes in the pickle, or a text too long for a name, by their offsets."""

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
    """The results of following one pickle."""

    acts: list[Act] = field(default_factory=list)  # the acts of the pickle, each once, in order
    bytes_inside: list[Bytes] = field(default_factory=list)  # bytes that may be pickles themselves
    # Bytes that the pickle writes as text, as in protocols 0 to 2, and their offsets.
    texts_inside: list[tuple[bytes, int]] = field(default_factory=list)
    end: int = 0  # the offset after its last opcode
    damage: str | None = None  # why it cannot be loaded further
    is_cut: bool = False  # whether a limit was reached before the end


class Broken(Exception):  # noqa: N818 - what it is
    """A pickle that cannot be loaded further."""


class Run:
    """The state of following one pickle."""

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
        """Check that the frame ends between opcodes."""
        # If an argument crosses the end of a frame, unpicklers that read from a file drop the rest of the frame.
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
        """Note a named global and return it."""
        if not isinstance(module, str) or not isinstance(name, str):
            self.act("computed", None, "names a global by what it computed")
            return OTHER
        found = Global(module, name)
        self.act("name", found)
        return found

    def changed(self, target: Any, how: str) -> None:
        """Note a change of an object that the pickle itself may not have created."""
        if isinstance(target, Global):
            self.act("computed", target, f"{how} {target}")

    def pop_mark(self) -> list[Any]:
        """Remove and return the items above the last mark."""
        if not self.below:
            raise Broken("not a pickle: takes a mark that is not there")
        taken, self.stack = self.stack, self.below.pop()
        return taken

    def take(self, count: int) -> bytes:
        """Read `count` bytes."""
        end = self.at + count
        if end > len(self.data):
            self.at = len(self.data)
            raise Broken("truncated")
        taken = self.data[self.at : end]
        self.at = end
        return taken

    def counted(self, size: int) -> tuple[int, int]:
        """The start and end of an argument that is preceded by its length."""
        count = int.from_bytes(self.take(size), "little")
        start, end = self.at, self.at + count
        if end > len(self.data):
            self.at = len(self.data)
            raise Broken("truncated")
        self.at = end
        return start, end

    def text_at(self, place: tuple[int, int]) -> Any:
        """The text at a place; `Bytes` if it is too long for a name."""
        start, end = place
        if end - start > LONGEST_NAME:
            return Bytes(start, end, is_text=True)
        return self.data[start:end].decode("utf-8", "surrogatepass")

    def push_bytes(self, size: int) -> None:
        """Push bytes, which may be a pickle."""
        found = Bytes(*self.counted(size))
        if found.end - found.start > 3:
            self.program.bytes_inside.append(found)
        self.stack.append(found)

    def line(self) -> bytes:
        """Read the argument of a text opcode."""
        end = self.data.find(b"\n", self.at)
        if end < 0:
            self.at = len(self.data)
            raise Broken("truncated")
        taken = self.data[self.at : end]
        self.at = end + 1
        return taken

    def number(self, size: int) -> int:
        """Read an unsigned number of `size` bytes."""
        return int.from_bytes(self.take(size), "little")

    def skip(self, size: int) -> None:
        """Skip an argument that does not matter: a long number."""
        self.take(self.number(size))
