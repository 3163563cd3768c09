"""Follows what a pickle does when it is loaded: the globals that it names, the calls, what it changes.

Names stand for objects; nothing is resolved or called. A pickle acts while it is read, so the acts of a broken pickle
before the break count.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from cachescope.readers.pickles.machine import STEPS, Machine, Step, UnreadablePickle, text

_MOST_OPCODES: Final = 2_000_000
_MOST_ACTS: Final = 2_000
_LONGEST_NAME: Final = 4_000
_LONGEST_TABLE: Final = 1_000


@dataclass(frozen=True, slots=True)
class Global:
    """A global: its ``module`` and ``name`` as the pickle spells them."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


class _Partial:
    """A ``functools.partial`` of a named global."""

    def __init__(self, function: Global) -> None:
        self.function = function


class _Encoded:
    """Bytes encoded from a text."""


class _Table:
    """A dict, of which only the text keys are kept."""

    def __init__(self, keys: list[Any]) -> None:
        self.keys: set[str] = set()
        self.add(keys)

    def add(self, keys: list[Any]) -> None:
        """Store keys."""
        for key in keys:
            if isinstance(key, str) and len(self.keys) < _LONGEST_TABLE:
                self.keys.add(key)


@dataclass(frozen=True, slots=True)
class Bytes:
    """Bytes in the pickle, or a text too long for a name, by their offsets."""

    start: int
    end: int


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
    # Bytes that the pickle writes as text, as in protocols 0 to 2.
    texts_inside: list[bytes] = field(default_factory=list)
    end: int = 0  # the offset after its last opcode
    damage: str | None = None  # why it cannot be loaded further
    is_cut: bool = False  # whether a limit was reached before the end


def follow(data: bytes, start: int = 0) -> Program:
    """Follow a pickle from an offset; never raises, whatever the bytes are."""
    effects = Effects(data, start)
    program = effects.program
    try:
        effects.run()
    except UnreadablePickle as error:
        program.damage = error.what
    except LookupError:
        is_cut = effects.at >= len(data)
        program.damage = "truncated" if is_cut else "not a pickle: takes what is not there"
    except ValueError as error:
        program.damage = f"not a pickle: {error}"
    program.end = effects.at
    return program


def _quoted(effects: Effects) -> None:
    line = effects.line().strip()
    effects.stack.append(codecs.escape_decode(line[1:-1])[0].decode("latin-1"))


def _extension(size: int) -> Step:
    return lambda effects: effects.odd(f"a global by extension code {effects.number(size)}")


def _persistent(effects: Effects) -> None:
    effects.stack.pop()
    effects.odd("a persistent id")


def _persistent_line(effects: Effects) -> None:
    effects.line()
    effects.odd("a persistent id")


def _frame(effects: Effects) -> None:
    length = effects.number(8)
    if effects.frame_end:
        effects.act("odd", None, "a frame inside a frame: unpicklers disagree on what follows")
    effects.frame_end = effects.at + length


class Effects(Machine):
    """What loading a pickle does."""

    steps: ClassVar[Mapping[int, Step]] = {
        **STEPS,
        0x95: _frame,
        ord("S"): _quoted,
        ord("T"): text(4),
        ord("U"): text(1),
        0x82: _extension(1),
        0x83: _extension(2),
        0x84: _extension(4),
        ord("P"): _persistent_line,
        ord("Q"): _persistent,
        0x97: lambda effects: effects.odd("a buffer from outside the pickle"),
        0x98: lambda effects: effects.stack[-1],
    }

    def __init__(self, data: bytes, start: int) -> None:
        super().__init__(data, start)
        self.program = Program()
        self.frame_end = 0
        self._known: set[tuple[Any, ...]] = set()

    def run(self) -> None:
        """Follow every opcode up to STOP; raise LookupError if one takes an item that does not exist."""
        data, steps, memo = self.data, self.steps, self.memo
        for _ in range(_MOST_OPCODES):
            op = data[self.at]
            self.op_at = self.at
            if self.frame_end and self.at >= self.frame_end:
                self.at_frame_end()
            self.at += 1
            if op == 0x94:  # MEMOIZE
                memo[len(memo)] = self.stack[-1]
            elif op in steps:
                steps[op](self)
            elif op == 0x2E:  # STOP
                self.stack[-1]
                self.op_at = self.at
                if self.frame_end:
                    self.at_frame_end()
                return
            else:
                raise UnreadablePickle(f"not a pickle: no opcode 0x{op:02x}")
        self.program.is_cut = True

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

    def odd(self, what: str) -> None:
        """Note and push a value from outside the pickle."""
        self.act("odd", None, what)
        self.stack.append(None)

    def computed(self, target: Global) -> None:
        """Note that a watched global is called with what the audit does not know."""
        self.act("computed", target, f"calls {target} with what it computed")

    def changed(self, how: str) -> None:
        """Note a change of the object on top of the stack if the pickle did not create it."""
        target = self.stack[-1]
        if isinstance(target, Global):
            self.act("computed", target, f"{how} {target}")

    def text(self, start: int, end: int, *, is_line: bool = False) -> Any:
        """The text; its place if it is too long for a name."""
        if is_line:
            return codecs.raw_unicode_escape_decode(self.data[start:end])[0]
        if end - start > _LONGEST_NAME:
            return Bytes(start, end)
        return self.data[start:end].decode("utf-8", "surrogatepass")

    def raw(self, start: int, end: int) -> Bytes:
        """The place of bytes, which may be a pickle."""
        found = Bytes(start, end)
        if end - start > 3:
            self.program.bytes_inside.append(found)
        return found

    def dict_of(self, pairs: list[Any]) -> _Table:
        """The text keys of a dict."""
        return _Table(pairs[::2])

    def add(self, items: list[Any], *, is_set: bool = False) -> None:
        """Only a change of a global matters."""
        self.changed("adds items to")

    def set_items(self, pairs: list[Any]) -> None:
        """Keep the keys of a dict."""
        self.changed("sets items of")
        if isinstance(table := self.stack[-1], _Table):
            table.add(pairs[::2])

    def build(self, state: Any) -> None:
        """Note what the state of an object changes."""
        self.changed("sets attributes of")
        target = self.stack[-1]
        if isinstance(target, _Partial):
            function = state[0] if isinstance(state, tuple) and state else None
            if isinstance(function, Global):
                target.function = function
            else:
                self.act("computed", None, "sets the function of a partial to what it computed")
        for part in state if isinstance(state, tuple) else (state,):
            for key in sorted(part.keys) if isinstance(part, _Table) else ():
                if key.startswith("__") and key.endswith("__"):
                    self.act("computed", None, f"sets {key} of an object")

    def named(self, module: Any, name: Any) -> Any:
        """Note a named global and return it."""
        if isinstance(module, bytes):
            module, name = module.decode(), name.decode()
        if not isinstance(module, str) or not isinstance(name, str):
            self.act("computed", None, "names a global by what it computed")
            return None
        found = Global(module, name)
        self.act("name", found)
        return found

    def called(self, target: Any, arguments: Any) -> Any:
        """Follow a call and return its result."""
        if isinstance(target, _Partial) and (target.function.module, target.function.name) not in _WATCHED:
            return None
        if not isinstance(target, Global):
            self.act("computed", None, "calls what it computed")
            return None
        given = arguments if isinstance(arguments, tuple) else (arguments,)
        watched = _WATCHED.get((target.module, target.name))
        return None if watched is None else watched(self, target, given)


def _attribute(effects: Effects, target: Global, given: tuple[Any, ...]) -> Any:
    """The global that ``getattr`` of a global and a name returns: pickle.py writes enum members and nested classes so."""
    if len(given) == 2 and isinstance(given[0], Global) and isinstance(given[1], str):
        return effects.named(given[0].module, f"{given[0].name}.{given[1]}")
    effects.computed(target)
    return None


def _partial(effects: Effects, target: Global, given: tuple[Any, ...]) -> Any:
    """Check that the function of a ``partial``, which is called later, is a named global."""
    if given and isinstance(given[0], Global):
        return _Partial(given[0])
    effects.computed(target)
    return None


def _nested(effects: Effects, target: Global, given: tuple[Any, ...]) -> None:
    """Check that bytes which torch unpickles in turn are in the pickle, where they can be audited."""
    if not given or not isinstance(given[0], (Bytes, _Encoded)):
        effects.computed(target)


def _encode(effects: Effects, target: Global, given: tuple[Any, ...]) -> Any:
    """Note bytes that are encoded from a text, as protocols 0 to 2 write them."""
    text = given[0] if given else None
    if isinstance(text, Bytes):
        text = effects.data[text.start : text.end].decode("utf-8", "surrogatepass")
    if not isinstance(text, str):
        effects.computed(target)
        return None
    is_latin = len(given) < 2 or given[1] in ("latin1", "latin-1")
    effects.program.texts_inside.append(text.encode("latin-1" if is_latin else "utf-8", "replace"))
    return _Encoded()


# Calls whose arguments decide what they do.
_WATCHED: Final[dict[tuple[str, str], Callable[[Effects, Global, tuple[Any, ...]], Any]]] = {
    ("builtins", "getattr"): _attribute,
    ("__builtin__", "getattr"): _attribute,
    ("functools", "partial"): _partial,
    ("torch.storage", "_load_from_bytes"): _nested,
    ("_codecs", "encode"): _encode,
}
