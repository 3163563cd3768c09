"""Reads a pickle without resolving a single global, and refuses one that was made to run code.

Only the C unpickler is fast enough, so it builds the value. Its `find_class` is replaced: `Stub` is all that
it can ever call. Before it starts, `check_program` has followed every opcode.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, ClassVar, Final, Never, Self, cast

from cachescope.readers.pickles.pickle_check import Limits, NotRead, UnreadablePickle, check_program

__all__ = [
    "InertUnpickler", "Limits", "NotRead", "Stub", "UnreadablePickle", "global_name", "loads_inert",
    "stand_in",
]  # fmt: skip

_MAX_KEYWORDS = 100
_NO_KEYWORDS: Final[Mapping[str, object]] = MappingProxyType({})
_LIMITS = Limits()

# Modules and builtins that no compiled graph needs. A pickle that names one of them was made to
# run code. Other unknown modules are the user's own: tensor subclasses, kernels, opaque values.
_HOSTILE_MODULES = frozenset({
    "asyncio", "bdb", "cmd", "code", "codeop", "commands", "ctypes", "doctest", "ftplib", "http", "imp",
    "importlib", "marshal", "multiprocessing", "nt", "os", "pdb", "pickle", "pip", "pkgutil", "platform",
    "posix", "profile", "pty", "runpy", "shelve", "shutil", "smtplib", "socket", "subprocess", "sys",
    "tempfile", "threading", "timeit", "trace", "urllib", "webbrowser",
})  # fmt: skip
_HOSTILE_BUILTINS = frozenset({
    "__import__", "breakpoint", "compile", "delattr", "eval", "exec", "globals", "input", "locals", "open",
    "setattr", "vars",
})  # fmt: skip


class _Sealed(type):
    """The class of stand-in classes. Pickles share them, so BUILD must not set anything on one."""

    def __setattr__(cls, name: str, value: object) -> Never:
        raise AttributeError(f"{cls!r} is a stand-in")

    def __repr__(cls) -> str:
        return f"<stand-in for {cls.__dict__.get('module')}.{cls.__dict__.get('name')}>"


class Stub(metaclass=_Sealed):
    """The result of calling a global: a record of the arguments and of later changes. It equals only itself.

    The class of a stub stands for the global. A global that is named but not called is therefore a subclass of Stub.
    """

    __slots__ = ("args", "items", "keywords", "pairs", "raw_state")

    module: ClassVar[str] = ""  # the global, as the pickle spells it
    name: ClassVar[str] = ""
    args: tuple[object, ...]  # the arguments of the call (REDUCE, NEWOBJ, OBJ, INST)
    keywords: Mapping[str, object]  # the keyword arguments of NEWOBJ_EX
    raw_state: object  # the argument of BUILD; None without it
    items: list[object] | tuple[()]  # items that were appended or added
    pairs: list[tuple[object, object]] | tuple[()]  # the keys and values that were set

    def __new__(cls, /, *args: object, **keywords: object) -> Self:
        """Store the arguments; nothing is called."""
        # The call has copied the dict, and the memo can supply the same one again and again.
        if keywords and len(keywords) > _MAX_KEYWORDS:
            raise NotRead(f"more than {_MAX_KEYWORDS} keyword arguments")
        self = object.__new__(cls)
        self.args = args
        # Most objects have none of these, and empty lists and dicts would burden the garbage collector.
        self.keywords = keywords or _NO_KEYWORDS
        self.items = self.pairs = ()
        self.raw_state = None
        return self

    def __setstate__(self, state: object) -> None:
        # Not copied: many objects may share one state. This method also keeps BUILD from
        # writing __dict__ or calling setattr.
        if self.raw_state is not None:
            raise UnreadablePickle("an object is built twice")
        self.raw_state = state

    def append(self, item: object, /) -> None:
        """Store an item (APPEND, ADDITEMS)."""
        self.extend([item])

    add = append

    def extend(self, items: list[object], /) -> None:
        """Store items (APPENDS)."""
        if not self.items:
            self.items = []
        self.items += items

    def __setitem__(self, key: object, value: object) -> None:
        if not self.pairs:
            self.pairs = []
        self.pairs.append((key, value))

    @property
    def state(self) -> dict[str, object]:
        """The state as one dict of ``__dict__`` and slots; empty if it has another shape."""
        raw = self.raw_state
        if type(raw) is dict:
            return raw
        if type(raw) is tuple and len(raw) == 2 and all(part is None or type(part) is dict for part in raw):
            return {**(raw[0] or {}), **(raw[1] or {})}
        return {}

    def __repr__(self) -> str:
        return f"<{self.module}.{self.name} stand-in>"


def global_name(value: object) -> str | None:
    """``module.name`` if a value stands for a global or for an object made from one; else None."""
    if isinstance(value, Stub) or (isinstance(value, type) and issubclass(value, Stub)):
        return f"{value.module}.{value.name}"
    return None


@lru_cache(maxsize=4096)
def stand_in(module: str, name: str) -> type[Stub]:
    """The class that stands for a global."""
    return cast(type[Stub], _Sealed("StandIn", (Stub,), {"__slots__": (), "module": module, "name": name}))


class _Source(io.BytesIO):
    """Bytes whose `peek` returns all of the rest: the unpickler then does not fetch them one by one."""

    def peek(self, size: int = -1, /) -> bytes:
        return self.getvalue()[self.tell() :]


class InertUnpickler(pickle.Unpickler):
    """The C unpickler, which can call only stand-ins. Not safe without the check in `loads_inert`."""

    def __init__(self, data: bytes, stand_ins: int) -> None:
        self.source = _Source(data)
        super().__init__(self.source, fix_imports=False)
        self._stand_ins = stand_ins
        self._named: set[tuple[str, str]] = set()

    def find_class(self, module: str, name: str, /) -> Any:
        """The stand-in of a global."""
        self._named.add((module, name))
        if len(self._named) > self._stand_ins:
            raise NotRead("too many globals")
        return self.stands_for(module, name)

    def stands_for(self, module: str, name: str) -> object:
        """The object to use for a global."""
        return stand_in(module, name)

    def persistent_load(self, pid: object, /) -> Never:
        """Refuse."""
        raise UnreadablePickle("persistent id")


def loads_inert(
    data: bytes, limits: Limits | None = None, unpickler: type[InertUnpickler] = InertUnpickler
) -> object:
    r"""Read a pickle; every global in it becomes an inert `Stub`, and no real function is called.

    Plain values are the same as from ``pickle.loads``. Bytes after STOP are ignored, as in torch.

    >>> stub = loads_inert(b"cos\nsystem\n(Vtrue\ntR.")
    >>> stub, stub.args
    (<os.system stand-in>, ('true',))
    """
    limits = limits or _LIMITS
    if len(data) > limits.size_bytes:
        raise NotRead(f"{len(data)} bytes, more than {limits.size_bytes}")
    frames = check_program(data, limits)
    try:
        return unpickler(without_frames(data, frames), limits.stand_ins).load()
    except UnreadablePickle:
        raise
    except Exception as error:  # a damaged program can make the unpickler raise anything
        raise UnreadablePickle(f"{type(error).__name__}: {error}") from error


def without_frames(data: bytes, frames: list[int]) -> bytes:
    """The bytes without their FRAME opcodes."""
    # FRAME is only a hint to fetch ahead. But if an argument crosses the end of its frame,
    # the C unpickler drops the rest of the frame, and runs another program than the one that was checked.
    # If every frame ends between two opcodes, as picklers write them, this cannot happen, and frames stay.
    if not frames:
        return data
    starts = [0, *(at + 9 for at in frames)]
    view = memoryview(data)
    return b"".join(view[start:end] for start, end in zip(starts, [*frames, len(data)], strict=True))


def loads_harmless(data: bytes, limits: Limits | None = None) -> object:
    """Read a pickle inertly, as `loads_inert` does, but refuse it if it names a hostile global."""
    return loads_inert(data, limits, _HarmlessUnpickler)


class _HarmlessUnpickler(InertUnpickler):
    def stands_for(self, module: str, name: str) -> object:
        if _is_hostile(module, name):
            raise UnreadablePickle(f"hostile: names {module}.{name}")
        return super().stands_for(module, name)


def _is_hostile(module: str, name: str) -> bool:
    if module in ("builtins", "__builtin__"):
        return name.partition(".")[0] in _HOSTILE_BUILTINS
    return module.partition(".")[0] in _HOSTILE_MODULES
