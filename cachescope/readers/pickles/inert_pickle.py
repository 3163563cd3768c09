"""Read a pickle without resolving a single global: every class and function is an inert stand-in.

The C unpickler builds the value, because only it is fast enough, with `find_class` replaced, so that all
it can ever call is `Stub`. `check_program` has followed every opcode before it starts.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, ClassVar, Final, Never, Self, cast

from cachescope.readers.pickles.pickle_check import check_program
from cachescope.readers.pickles.pickle_limits import Limits, NotRead, UnreadablePickle

__all__ = [
    "InertUnpickler",
    "Limits",
    "NotRead",
    "Stub",
    "UnreadablePickle",
    "global_name",
    "loads_inert",
    "stand_in",
]

_MAX_KEYWORDS = 100
_NO_KEYWORDS: Final[Mapping[str, object]] = MappingProxyType({})
_LIMITS = Limits()


class _Sealed(type):
    """The class of stand-in classes. They are kept between pickles, so BUILD may set nothing on one."""

    def __setattr__(cls, name: str, value: object) -> Never:
        raise AttributeError(f"{cls!r} is a stand-in")

    def __repr__(cls) -> str:
        return f"<stand-in for {cls.__dict__.get('module')}.{cls.__dict__.get('name')}>"


class Stub(metaclass=_Sealed):
    """What a pickle made of a global: a record of what it asked for. It equals only itself.

    The class of a stub stands for the global, so a function that is only mentioned is a subclass of Stub.

    Attributes
    ----------
    module, name : str
        The global, as the pickle spells it.
    args : tuple
        What it was called with (REDUCE, NEWOBJ, OBJ, INST).
    keywords : mapping
        The keyword arguments of NEWOBJ_EX.
    raw_state : object
        What BUILD was given, None without it.
    items : list or empty tuple
        What was appended or added.
    pairs : list of tuple, or empty tuple
        The keys and values that were set.
    """

    __slots__ = ("args", "items", "keywords", "pairs", "raw_state")

    module: ClassVar[str] = ""
    name: ClassVar[str] = ""
    args: tuple[object, ...]
    keywords: Mapping[str, object]
    raw_state: object
    items: list[object] | tuple[()]
    pairs: list[tuple[object, object]] | tuple[()]

    def __new__(cls, /, *args: object, **keywords: object) -> Self:
        """Keep the arguments; nothing else is called."""
        # The call has copied the dict, and the memo can give the same one again and again.
        if keywords and len(keywords) > _MAX_KEYWORDS:
            raise NotRead(f"more than {_MAX_KEYWORDS} keyword arguments")
        self = object.__new__(cls)
        self.args = args
        # Most objects have none of these, and empty lists and dicts are work for the garbage collector.
        self.keywords = keywords or _NO_KEYWORDS
        self.items = self.pairs = ()
        self.raw_state = None
        return self

    def __setstate__(self, state: object) -> None:
        # Kept, not copied: one state may be given to many objects. Its presence is what keeps BUILD from
        # writing __dict__ or calling setattr.
        if self.raw_state is not None:
            raise UnreadablePickle("an object is built twice")
        self.raw_state = state

    def append(self, item: object, /) -> None:
        """Keep an item (APPEND, ADDITEMS)."""
        self.extend([item])

    add = append

    def extend(self, items: list[object], /) -> None:
        """Keep items (APPENDS)."""
        if not self.items:
            self.items = []
        self.items += items

    def __setitem__(self, key: object, value: object) -> None:
        if not self.pairs:
            self.pairs = []
        self.pairs.append((key, value))

    @property
    def state(self) -> dict[str, object]:
        """The state as a dict: ``__dict__`` and slots in one; empty where it is of another shape."""
        raw = self.raw_state
        if type(raw) is dict:
            return raw
        if type(raw) is tuple and len(raw) == 2 and all(part is None or type(part) is dict for part in raw):
            return {**(raw[0] or {}), **(raw[1] or {})}
        return {}

    def __repr__(self) -> str:
        return f"<{self.module}.{self.name} stand-in>"


def global_name(value: object) -> str | None:
    """``module.name`` where a value stands for a global itself, or for something made from one."""
    if isinstance(value, Stub):
        return f"{value.module}.{value.name}"
    if isinstance(value, _Sealed):
        return f"{value.__dict__.get('module')}.{value.__dict__.get('name')}"
    return None


@lru_cache(maxsize=4096)
def stand_in(module: str, name: str) -> type[Stub]:
    """The class that stands for a global."""
    return cast(type[Stub], _Sealed("StandIn", (Stub,), {"__slots__": (), "module": module, "name": name}))


class _Source(io.BytesIO):
    """Bytes that show all of themselves at once, so that the unpickler does not fetch them one by one."""

    def peek(self, size: int = -1, /) -> bytes:
        return self.getvalue()[self.tell() :]


class InertUnpickler(pickle.Unpickler):
    """The C unpickler, with nothing to call but stand-ins. Not safe without the check of `loads_inert`.

    Parameters
    ----------
    data : bytes
        The pickle.
    stand_ins : int
        How many different globals it may name.
    """

    def __init__(self, data: bytes, stand_ins: int) -> None:
        super().__init__(_Source(data), fix_imports=False)
        self._stand_ins = stand_ins
        self._named: set[tuple[str, str]] = set()

    def find_class(self, module: str, name: str, /) -> Any:
        """The stand-in of a global."""
        self._named.add((module, name))
        if len(self._named) > self._stand_ins:
            raise NotRead("too many globals")
        return self.stands_for(module, name)

    def stands_for(self, module: str, name: str) -> object:
        """What stands for a global."""
        return stand_in(module, name)

    def persistent_load(self, pid: object, /) -> Never:
        """Refuse."""
        raise UnreadablePickle("persistent id")


def loads_inert(
    data: bytes, limits: Limits | None = None, unpickler: type[InertUnpickler] = InertUnpickler
) -> object:
    r"""Read a pickle; every global in it becomes an inert `Stub`, and nothing of the real world is called.

    Mirrors what ``pickle.loads`` gives for plain values. Bytes after STOP are ignored, as torch does.

    Raises
    ------
    UnreadablePickle
        Whatever is wrong with the bytes.

    Examples
    --------
    >>> stub = loads_inert(b"cos\nsystem\n(Vtrue\ntR.")
    >>> stub, stub.args
    (<os.system stand-in>, ('true',))
    """
    limits = limits or _LIMITS
    if len(data) > limits.size_bytes:
        raise NotRead(f"{len(data)} bytes, more than {limits.size_bytes}")
    frames = check_program(data, limits)
    try:
        return unpickler(_without_frames(data, frames), limits.stand_ins).load()
    except UnreadablePickle:
        raise
    except Exception as error:  # the unpickler lets out whatever a damaged program led it to
        raise UnreadablePickle(f"{type(error).__name__}: {error}") from error


def _without_frames(data: bytes, frames: list[int]) -> bytes:
    # FRAME is no more than a hint to fetch ahead. But an argument that crosses the end of its frame makes
    # the C unpickler drop the rest of the frame, and run another program than the one that was checked.
    # Where every frame ends between two opcodes, as picklers make them, none can, and they stay.
    if not frames:
        return data
    starts = [0, *(at + 9 for at in frames)]
    view = memoryview(data)
    return b"".join(view[start:end] for start, end in zip(starts, [*frames, len(data)], strict=True))
