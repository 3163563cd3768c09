"""What a pickle does when it is loaded: the globals that it names, the calls, and of what kinds their arguments are.

Stand-ins note it; nothing is resolved or called. A pickle acts while it is read, so what a broken pickle does before the break
counts.
"""

from __future__ import annotations

import io
import pickletools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from operator import is_not
from pickle import UnpicklingError
from typing import Any, Final, NamedTuple, Never

from cachescope.kept import kept
from cachescope.readers.pickles.inert_pickle import (
    InertUnpickler,
    NotRead,
    Stub,
    UnreadablePickle,
    global_name,
    without_frames,
)
from cachescope.readers.pickles.pickle_check import Limits, check_program

_LIMITS: Final = Limits()
_WITH_PERSISTENT_IDS: Final = Limits(persistent_ids=True)
_EXPRESSIONS: Final = ("sympy.", "torch.utils._sympy.")
# What a value is: a letter of a form in `known_globals.json`.
_LETTERS: Final[dict[type, str]] = {
    type(None): "n", bool: "b", int: "i", float: "f", str: "s", bytes: "x", bytearray: "x", tuple: "t", list: "l", dict: "d", set: "e",
    frozenset: "e",
}  # fmt: skip
_PARTIAL: Final = "functools.partial"
Container = dict[Any, Any] | list[Any] | set[Any]


class Global(NamedTuple):
    """A global: its ``module`` and ``name`` as the pickle spells them."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


class Call(NamedTuple):
    """A way to use a global: ``call``, ``partial`` (it is called later, by somebody else) or ``build`` (the state of what it made).

    The letters are those of the arguments and of what is in them: n None, b bool, i int, f float, s str, x bytes, t tuple, l list,
    d dict, e set, g a global, y an expression of sympy, o another object, ? a value from outside of the pickle.
    """

    target: Global
    how: str
    letters: str


# triton/runtime/jit.py, `JITFunction.__init__`: what it copies of the function; torch pickles it without the function and its globals.
_KERNEL: Final = "triton.runtime.jit.JITFunction"
_COPIED: Final = frozenset({"__doc__", "__globals__", "__module__", "__name__", "__qualname__"})


@dataclass(slots=True)
class Program:
    """The results of following one pickle."""

    named: dict[Global, None] = field(default_factory=dict)  # in order
    made: list[Stub] = field(default_factory=list)  # by every call
    value: Any = None
    end: int = 0  # the offset behind it
    damage: str | None = None  # why it cannot be loaded further
    odd: list[str] = field(default_factory=list)  # opcodes that no entry has
    refused: str | None = None  # what it does with what it computed, and no pickler writes
    not_read: str | None = None  # which limit was reached

    def calls(self) -> Iterator[Call]:
        """Every use of a global, each once."""
        letters = _Letters()
        found: dict[Call, None] = {}
        for stub in self.made:
            target = Global(stub.module, stub.name)
            if str(target) == _PARTIAL:
                target, given = _of_partial(stub)
                found[Call(target, "partial", letters.inside(given))] = None
                continue
            found[Call(target, "call", letters.inside([*stub.args, *stub.keywords.values()]))] = None
            if stub.raw_state is not None:
                found[Call(target, "build", letters.shape(stub.raw_state))] = None
        return iter(found)


def _of_partial(stub: Stub) -> tuple[Global, list[Any]]:
    """What a ``partial`` calls, and with what: a partial is made with its function, and given a state of all."""
    state = stub.raw_state if isinstance(stub.raw_state, tuple) else ()
    function, *given = state or stub.args or (None,)
    if isinstance(function, type) and issubclass(function, Stub):
        made = Global(function.module, function.name)
    else:
        made = Global("functools", "partial of what it computed")
    return made, [*given, *stub.items]


class _Letters:
    """The letters of values, each container looked at once."""

    def __init__(self) -> None:
        self._known: dict[int, set[str]] = {}

    def inside(self, values: Iterable[Any]) -> str:
        """The letters of values and of all in them."""
        return "".join(sorted(set().union(*map(self._of, values))))

    def shape(self, value: Any) -> str:
        """The letter of a value itself."""
        if isinstance(value, Stub):
            return "y" if f"{value.module}.".startswith(_EXPRESSIONS) else "?" if not value.module else "o"
        return "g" if isinstance(value, type | _Members) else _LETTERS[type(value)]

    def _of(self, value: Any) -> set[str]:
        if not isinstance(value, tuple | list | dict | set | frozenset):
            return {self.shape(value)}
        if id(value) not in self._known:
            found = self._known[id(value)] = set()
            seen, waiting = set(), [value]
            while waiting:
                one = waiting.pop()
                found.add(self.shape(one))
                if not isinstance(one, tuple | list | dict | set | frozenset) or id(one) in seen:
                    continue
                seen.add(id(one))
                if one is not value and id(one) in self._known:
                    found |= self._known[id(one)]
                else:
                    waiting += [*one.keys(), *one.values()] if isinstance(one, dict) else one
        return self._known[id(value)]


class _Members:
    """The stand-in for ``getattr``, which pickles call to name a member of a class, or a method of what they made. Nothing can be set on it."""

    __slots__ = ("_find_class",)

    def __init__(self, unpickler: InertUnpickler) -> None:
        self._find_class = unpickler.find_class

    def __call__(self, owner: object, name: object, /) -> object:
        if isinstance(owner, Stub) and owner.module:
            # How a bound method is pickled: as what its class names.
            owner = type(owner)
        if not (isinstance(owner, type) and issubclass(owner, Stub) and isinstance(name, str)):
            raise UnreadablePickle("getattr of a computed value")
        return self._find_class(owner.module, f"{owner.name}.{name}")

    def __setstate__(self, state: object) -> Never:
        raise UnreadablePickle("sets attributes of getattr")


class _Noting(InertUnpickler):
    """Notes every global and every call."""

    def __init__(self, data: bytes, program: Program) -> None:
        super().__init__(data, _LIMITS.stand_ins)
        self._program = program
        self._used: dict[int, tuple[Container, list[Any]]] = {}  # by id, what was in it

    def stands_for(self, module: str, name: str) -> object:
        """The stand-in of a global."""
        found = Global(module, name)
        self._program.named[found] = None
        return _Members(self) if str(found) == "builtins.getattr" else self._stand_in(found)

    def use(self, values: Iterable[object]) -> None:
        """Note what is in containers that a call or an object was given: it may have copied or run what is in them by now."""
        for one in values:
            if isinstance(one, dict | list | set) and id(one) not in self._used:
                self._used[id(one)] = one, _inside(one)

    def has_changed_used(self) -> bool:
        """Whether the pickle changed any of them behind that, which no pickler does."""
        used = self._used.values()
        return any(len(one) != len(old) or any(map(is_not, _inside(one), old)) for one, old in used)

    def persistent_load(self, pid: object, /) -> Any:
        """A value from outside of the pickle."""
        return Stub()

    @kept
    def _stand_in(self, found: Global) -> object:
        made = self._program.made

        def noted(cls: type[Stub], /, *args: object, **keywords: object) -> Stub:
            self.use((*args, *keywords.values()))
            made.append(Stub.__new__(cls, *args, **keywords))
            return made[-1]

        def built(self_: Stub, state: object) -> None:
            self.use(state if isinstance(state, tuple) else (state,))
            Stub.__setstate__(self_, state)

        def called(self: Stub, /, *args: object) -> Stub:
            self.extend([*args])
            return Stub()

        attributes: dict[str, Any] = {"__slots__": (), **found._asdict()}
        attributes |= {"__new__": noted, "__setstate__": built}
        if str(found) == _PARTIAL:
            attributes["__call__"] = called
        make: Any = type(Stub)
        return make("StandIn", (Stub,), attributes)


def _inside(container: Container) -> list[Any]:
    return [*(container.values() if isinstance(container, dict) else container)]


def everything(values: Iterable[Any]) -> Iterator[Any]:
    """Every object, bytes and global in values, each once; of ``SerializedGraphModule`` not the function, which is looked at by itself."""
    seen: set[int] = set()
    waiting = [*values]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str | int | float | None) or id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, dict):
            waiting += [*one.keys(), *one.values()]
        elif isinstance(one, list | tuple | set | frozenset):
            waiting += one
        else:
            yield one
        if isinstance(one, Stub):
            state = one.raw_state
            if one.name == "SerializedGraphModule":
                state = {key: part for key, part in one.state.items() if key != "fn"}
            waiting += [one.args, one.items, one.pairs, state, dict(one.keywords)]


def follow(data: bytes, start: int = 0, *, persistent_ids: bool = False) -> Program:
    """Follow a pickle from an offset; never raises, whatever the bytes are."""
    program, data = Program(end=start), data[start:] if start else data
    frames: list[int] = []
    try:
        frames = check_program(data, _WITH_PERSISTENT_IDS if persistent_ids else _LIMITS)
    except NotRead as error:
        program.not_read = error.what
        return program
    except UnreadablePickle as error:
        if error.what.startswith(("truncated", "not a pickle")):
            program.damage = error.what
        else:
            program.odd.append(f"a {error.what}")
        # Of a cut bytearray, Python's unpickler prints that it does not know what to do with it.
        is_cut_bytearray = error.what == "truncated" and data[error.op_at : error.op_at + 1] == b"\x96"
        data = data[: error.op_at if is_cut_bytearray else error.offset or 0]
        # What a broken pickle does before the break is not held back by a frame that goes on behind it.
        frames = [at for at in error.frames if at + 9 <= len(data)]
    if (frames or program.damage) and _cross(data):
        odd = "a frame that ends in an opcode or in another frame: unpicklers disagree on what follows"
        program.odd.append(odd)
    unpickler = _Noting(without_frames(data, frames), program)
    try:
        program.value = unpickler.load()
        program.end = start + unpickler.source.tell() + 9 * len(frames)
    except NotRead as error:
        program.not_read = error.what
    except (EOFError, UnicodeDecodeError) as error:
        program.damage = program.damage or str(error)
    except Exception as error:  # what the stand-ins refuse, and a damaged program, can be anything
        # What they refuse before the break, torch's own objects may accept.
        if not program.odd and not (program.damage and isinstance(error, UnpicklingError)):
            program.refused = f"does what no pickler writes: {error}"
    if unpickler.has_changed_used():
        program.odd.append("a container that is changed after an object was made of it")
    return program


def _cross(data: bytes) -> bool:
    """Whether a frame ends within an opcode, or holds another one; or may, behind what pickletools does not read."""
    # If an argument crosses the end of a frame, unpicklers that read from a file drop the rest of the frame.
    end, stream = 0, io.BytesIO(data)
    try:
        for opcode, length, place in pickletools.genops(stream):
            at = place or 0
            is_frame = opcode.name == "FRAME"
            if end and (at > end or (is_frame and at < end)):
                return True
            if is_frame:
                end = at + 9 + int(length or 0)
            elif at == end:
                end = 0
    except ValueError:
        return stream.tell() < len(data) or 0 < end < stream.tell()  # else it is cut
    return False


def computed(program: Program) -> Iterator[str]:
    """What a pickle does with what it computed."""
    if program.refused is not None:
        yield program.refused
    for stub in program.made:
        state, name = stub.raw_state, global_name(stub)
        for part in state[:2] if isinstance(state, tuple) else (state,):
            for key, value in part.items() if isinstance(part, dict) else ():
                is_special = isinstance(key, str) and key.startswith("__") and key.endswith("__")
                is_copied = name == _KERNEL and key in _COPIED and isinstance(value, str | None)
                if is_special and not is_copied:
                    yield f"sets {key} of an object"
        is_of_bytes = len(stub.args) == 1 and _is_bytes(stub.args[0])
        is_loaded = name == "torch.storage._load_from_bytes" and not is_of_bytes
        if is_loaded or (name == "_codecs.encode" and encoded(stub) is None):
            yield f"calls {name} with what it computed"


def encoded(stub: Stub) -> bytes | None:
    """The bytes that ``_codecs.encode`` makes of a text, as protocols 0 to 2 write bytes."""
    if global_name(stub) != "_codecs.encode" or len(stub.args) != 2 or stub.args[1] != "latin1":
        return None
    return stub.args[0].encode("latin-1", "replace") if isinstance(stub.args[0], str) else None


def _is_bytes(value: object) -> bool:
    return isinstance(value, bytes) or (isinstance(value, Stub) and encoded(value) is not None)
