"""What a pickle would do when it is loaded: every global it names, calls and changes, with its place.

The opcodes are followed with names in place of objects; nothing is resolved or called. A pickle acts while it is read,
so what a broken one did before it breaks counts. Opcodes as in CPython's Lib/pickle.py, protocols 0 to 5.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

_MOST_OPCODES: Final = 2_000_000
_MOST_ACTS: Final = 2_000
_LONGEST_NAME: Final = 4_000
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


class _Broken(Exception):  # noqa: N818 - what it is
    pass


def follow(data: bytes, start: int = 0) -> Program:
    """Follow a pickle from a byte on; never raises, whatever the bytes are."""
    run = _Run(data, start)
    try:
        run.all()
    except _Broken as error:
        run.program.damage = str(error)
    except (IndexError, UnicodeDecodeError, ValueError) as error:
        run.program.damage = "truncated" if run.at >= len(data) else f"not a pickle: {error}"
    run.program.end = run.at
    return run.program


_FIXED: Final = {
    **dict.fromkeys(b"N\x88\x89", 0), **dict.fromkeys(b"K", 1), **dict.fromkeys(b"M", 2),
    **dict.fromkeys(b"J", 4), **dict.fromkeys(b"G", 8),
}  # fmt: skip
_TEXTS: Final = {0x8C: 1, 0x58: 4, 0x8D: 8, 0x54: 4, 0x55: 1}
_BYTES: Final = {0x43: 1, 0x42: 4, 0x8E: 8, 0x96: 8}


class _Run:
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

    def all(self) -> None:
        """Follow every opcode up to STOP."""
        steps = _STEPS
        for _ in range(_MOST_OPCODES):
            op = self.data[self.at]
            self.op_at = self.at
            if self.frame_end and self.at >= self.frame_end:
                self._at_frame_end()
            self.at += 1
            if op == 0x2E:  # STOP
                self.stack[-1]
                self.op_at = self.at
                if self.frame_end:
                    self._at_frame_end()
                return
            if op in _TEXTS:
                self.stack.append(self._text(self._counted(_TEXTS[op])))
            elif op == 0x94:  # MEMOIZE
                self.memo[len(self.memo)] = self.stack[-1]
            elif op in _FIXED:
                self._take(_FIXED[op])
                self.stack.append(OTHER)
            elif op in _BYTES:
                self._bytes(_BYTES[op])
            elif op in steps:
                steps[op](self)
            else:
                raise _Broken(f"not a pickle: no opcode 0x{op:02x}")
        self.program.is_cut = True

    def _at_frame_end(self) -> None:
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

    def call(self, target: Any, arguments: Any) -> Any:
        """What a call gives."""
        if not isinstance(target, Global):
            self.act("computed", None, "calls what it computed")
            return Made()
        given = arguments if isinstance(arguments, tuple) else (arguments,)
        watched = _WATCHED.get((target.module, target.name))
        return Made() if watched is None else watched(self, target, given)

    def changed(self, target: Any, how: str) -> None:
        """Something is put into what may be no object of the pickle's own."""
        if isinstance(target, Global):
            self.act("computed", target, f"{how} {target}")

    def pop_mark(self) -> list[Any]:
        """What lies above the last mark."""
        if not self.below:
            raise _Broken("not a pickle: takes a mark that is not there")
        taken, self.stack = self.stack, self.below.pop()
        return taken

    def _take(self, count: int) -> bytes:
        end = self.at + count
        if end > len(self.data):
            self.at = len(self.data)
            raise _Broken("truncated")
        taken = self.data[self.at : end]
        self.at = end
        return taken

    def _counted(self, size: int) -> tuple[int, int]:
        count = int.from_bytes(self._take(size), "little")
        start, end = self.at, self.at + count
        if end > len(self.data):
            self.at = len(self.data)
            raise _Broken("truncated")
        self.at = end
        return start, end

    def _text(self, place: tuple[int, int]) -> Any:
        start, end = place
        if end - start > _LONGEST_NAME:
            return Bytes(start, end, is_text=True)
        return self.data[start:end].decode("utf-8", "surrogatepass")

    def _bytes(self, size: int) -> None:
        found = Bytes(*self._counted(size))
        if found.end - found.start > 3:
            self.program.bytes_inside.append(found)
        self.stack.append(found)

    def line(self) -> bytes:
        """The argument of a text opcode."""
        end = self.data.find(b"\n", self.at)
        if end < 0:
            self.at = len(self.data)
            raise _Broken("truncated")
        taken = self.data[self.at : end]
        self.at = end + 1
        return taken

    def number(self, size: int) -> int:
        """An unsigned number."""
        return int.from_bytes(self._take(size), "little")

    def skip(self, size: int) -> None:
        """An argument that tells nothing: a long number."""
        self._take(self.number(size))


def _attribute(run: _Run, target: Global, given: tuple[Any, ...]) -> Any:
    """What ``getattr`` of a global and a name stands for, as pickle.py writes members of enums and nested classes."""
    if len(given) == 2 and isinstance(given[0], Global) and isinstance(given[1], str):
        return run.name(given[0].module, f"{given[0].name}.{given[1]}")
    run.act("computed", target, f"calls {target} with what it computed")
    return OTHER


def _partial(run: _Run, target: Global, given: tuple[Any, ...]) -> Any:
    """What is called later is one of the globals that are named."""
    if not given or not isinstance(given[0], Global):
        run.act("computed", target, f"calls {target} with what it computed")
    return Made()


def _nested(run: _Run, target: Global, given: tuple[Any, ...]) -> Any:
    """Bytes that are unpickled in their turn have to be there to be looked at."""
    if not given or not isinstance(given[0], (Bytes, Encoded)):
        run.act("computed", target, f"calls {target} with what it computed")
    return Made()


def _encode(run: _Run, target: Global, given: tuple[Any, ...]) -> Any:
    """How protocols 0 to 2 write bytes."""
    text = given[0] if given else None
    if isinstance(text, Bytes):
        text = run.data[text.start : text.end].decode("utf-8", "surrogatepass")
    if not isinstance(text, str):
        run.act("computed", target, f"calls {target} with what it computed")
        return OTHER
    is_latin = len(given) < 2 or given[1] in ("latin1", "latin-1")
    run.program.texts_inside.append((text.encode("latin-1" if is_latin else "utf-8", "replace"), run.op_at))
    return Encoded()


# Calls whose arguments decide what they do.
_WATCHED: Final[dict[tuple[str, str], Callable[[_Run, Global, tuple[Any, ...]], Any]]] = {
    ("builtins", "getattr"): _attribute,
    ("__builtin__", "getattr"): _attribute,
    ("functools", "partial"): _partial,
    ("torch.storage", "_load_from_bytes"): _nested,
    ("_codecs", "encode"): _encode,
}


def _long_text(run: _Run) -> None:
    line = run.line()
    run.stack.append(codecs.raw_unicode_escape_decode(line)[0])


def _quoted(run: _Run) -> None:
    line = run.line().strip()
    run.stack.append(codecs.escape_decode(line[1:-1])[0].decode("latin-1"))


def _value_line(run: _Run) -> None:
    run.line()
    run.stack.append(OTHER)


def _get(run: _Run, index: int) -> None:
    if index not in run.memo:
        raise _Broken(f"not a pickle: nothing was remembered as {index}")
    run.stack.append(run.memo[index])


def _global(run: _Run) -> None:
    module, name = run.line().decode(), run.line().decode()
    run.stack.append(run.name(module, name))


def _stack_global(run: _Run) -> None:
    name, module = run.stack.pop(), run.stack.pop()
    run.stack.append(run.name(module, name))


def _inst(run: _Run) -> None:
    target = run.name(run.line().decode(), run.line().decode())
    taken = tuple(run.pop_mark())  # which changes what the stack is
    run.stack.append(run.call(target, taken))


def _obj(run: _Run) -> None:
    taken = run.pop_mark()
    run.stack.append(run.call(taken[0], tuple(taken[1:])))


def _reduce(run: _Run) -> None:
    arguments, target = run.stack.pop(), run.stack.pop()
    run.stack.append(run.call(target, arguments))


def _newobj_ex(run: _Run) -> None:
    run.stack.pop()
    _reduce(run)


def _build(run: _Run) -> None:
    state, target = run.stack.pop(), run.stack[-1]
    run.changed(target, "sets attributes of")
    for part in state if isinstance(state, tuple) else (state,):
        for key in sorted(part.keys) if isinstance(part, Table) else ():
            if key.startswith("__") and key.endswith("__"):
                run.act("computed", None, f"sets {key} of an object")


def _extension(size: int) -> Callable[[_Run], None]:
    def step(run: _Run) -> None:
        code = run.number(size)
        run.act("odd", None, f"a global by extension code {code}")
        run.stack.append(OTHER)

    return step


def _persistent_line(run: _Run) -> None:
    run.line()
    run.act("odd", None, "a persistent id")
    run.stack.append(OTHER)


def _persistent(run: _Run) -> None:
    run.stack.pop()
    run.act("odd", None, "a persistent id")
    run.stack.append(OTHER)


def _buffer(run: _Run) -> None:
    run.act("odd", None, "a buffer from outside the pickle")
    run.stack.append(OTHER)


def _tuple_of(count: int) -> Callable[[_Run], None]:
    def step(run: _Run) -> None:
        if len(run.stack) < count:
            raise _Broken("not a pickle: takes what is not there")
        taken = tuple(run.stack[len(run.stack) - count :])
        del run.stack[len(run.stack) - count :]
        run.stack.append(taken)

    return step


def _table(run: _Run) -> None:
    table = Table()
    for key in run.pop_mark()[::2]:
        table.add(key)
    run.stack.append(table)


def _set_item(run: _Run) -> None:
    run.stack.pop()
    key = run.stack.pop()
    _keep_keys(run, [key])


def _keep_keys(run: _Run, keys: list[Any]) -> None:
    target = run.stack[-1]
    run.changed(target, "sets items of")
    if isinstance(target, Table):
        for key in keys:
            target.add(key)


def _put_into(run: _Run) -> None:
    run.pop_mark()
    run.changed(run.stack[-1], "adds items to")


def _append(run: _Run) -> None:
    run.stack.pop()
    run.changed(run.stack[-1], "adds items to")


def _mark(run: _Run) -> None:
    run.below.append(run.stack)
    run.stack = []


def _pop(run: _Run) -> None:
    if run.stack:
        run.stack.pop()
    else:
        run.pop_mark()


def _frame(run: _Run) -> None:
    length = run.number(8)
    if run.frame_end:
        run.act("odd", None, "a frame inside a frame: unpicklers disagree on what follows")
    run.frame_end = run.at + length


def _of_mark(make: Callable[[list[Any]], Any]) -> Callable[[_Run], None]:
    def step(run: _Run) -> None:
        made = make(run.pop_mark())
        run.stack.append(made)

    return step


_STEPS: Final[dict[int, Callable[[_Run], Any]]] = {
    ord(code): step
    for code, step in {
        "\x80": lambda run: run.number(1),
        "\x95": _frame,
        "V": _long_text,
        "S": _quoted,
        "F": _value_line,
        "I": _value_line,
        "L": _value_line,
        "\x8a": lambda run: (run.skip(1), run.stack.append(OTHER)),
        "\x8b": lambda run: (run.skip(4), run.stack.append(OTHER)),
        "c": _global,
        "i": _inst,
        "o": _obj,
        "\x93": _stack_global,
        "R": _reduce,
        "\x81": _reduce,
        "\x92": _newobj_ex,
        "b": _build,
        "\x82": _extension(1),
        "\x83": _extension(2),
        "\x84": _extension(4),
        "P": _persistent_line,
        "Q": _persistent,
        "\x97": _buffer,
        "\x98": lambda run: run.stack[-1],
        "(": _mark,
        "0": _pop,
        "1": lambda run: run.pop_mark(),
        "2": lambda run: run.stack.append(run.stack[-1]),
        ")": _tuple_of(0),
        "\x85": _tuple_of(1),
        "\x86": _tuple_of(2),
        "\x87": _tuple_of(3),
        "t": _of_mark(tuple),
        "l": _of_mark(lambda _: OTHER),
        "\x91": _of_mark(lambda _: OTHER),
        "d": _table,
        "]": lambda run: run.stack.append(OTHER),
        "\x8f": lambda run: run.stack.append(OTHER),
        "}": lambda run: run.stack.append(Table()),
        "a": _append,
        "e": _put_into,
        "\x90": _put_into,
        "s": _set_item,
        "u": lambda run: _keep_keys(run, run.pop_mark()[::2]),
        "g": lambda run: _get(run, int(run.line())),
        "h": lambda run: _get(run, run.number(1)),
        "j": lambda run: _get(run, run.number(4)),
        "p": lambda run: run.memo.__setitem__(int(run.line()), run.stack[-1]),
        "q": lambda run: run.memo.__setitem__(run.number(1), run.stack[-1]),
        "r": lambda run: run.memo.__setitem__(run.number(4), run.stack[-1]),
    }.items()
}
