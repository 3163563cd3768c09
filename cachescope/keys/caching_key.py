"""File names of torch's caching package: fcache and dcache of 2.10, memoizers of 2.11 and later.

A name is the hash of a pickle, and a pickle distinguishes one object used twice from two equal objects. The values
of the parameters do not show which they were in the process, so several names may be possible.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from cachescope.errors import CachescopeError
from cachescope.keys.detail_hash import plain_pickle

# How a pickled key ends (protocols 4 and 5): the isolation key, then its pair with what precedes it.
_END: Final = re.compile(rb"\x8c\x20(?P<isolation_key>[0-9a-f]{32})\x94\x86\x94\.\Z")
_NUMBERS: Final = (bool, int, float, complex)
Number = bool | int | float | complex


class CachingNames(NamedTuple):
    """The names that one call can have."""

    name: str  # the name for exactly these objects
    # The names for equal objects that are shared differently or have another numeric type.
    others: tuple[str, ...] = ()
    doubt: str | None = None  # why the name does not follow from the values alone; None if it does


def caching_names(callee: str, params: object, isolation_key: str, protocol: int = 4) -> CachingNames:
    """Return the file names that a call has in the on-disk cache of torch 2.10.

    Mirrors ``_CacheIntf._make_key`` (torch/_inductor/runtime/caching/interfaces.py, 2.10 only),
    ``_OnDiskCacheImpl._fpath_from_key`` (implementations.py) and ``_try_pickle`` (utils.py). The lru_cache of
    ``_try_pickle`` treats 1, 1.0 and True in hashable keys as equal, and returns the pickle of the first.

    >>> caching_names("fn", ((3,), {}), "0" * 32).doubt is None
    True
    >>> caching_names("fn", ("encoded", 1), "0" * 32).doubt
    '1, 1.0 and True share the name of the one that came first in the process'
    """

    def named(callee: str, params: object) -> str:
        return _name(((callee, params), isolation_key), protocol)

    name = named(callee, params)
    numbers = list(_other_numbers(params)) if _is_hashable(params) else []
    others = {
        named(*variant)
        for value in (params, *numbers)
        for variant in (_shared(callee, value), _apart(callee, value))
    }
    sharing = named(*_shared(callee, params)) != named(*_apart(callee, params))
    doubts = []
    if sharing:
        doubts.append("equal objects give another name when they are one object")
    if _is_hashable(params) and any(_has_twins(part) for part in _numbers(params)):
        doubts.append("1, 1.0 and True share the name of the one that came first in the process")
    return CachingNames(name, tuple(sorted(others - {name})) if doubts else (), "; ".join(doubts) or None)


def with_isolation_key(pickled_key: bytes, isolation_key: str) -> bytes:
    r"""Return a pickled key of torch 2.10 with another isolation key: exactly the bytes that torch would write.

    >>> import pickle
    >>> old, new = (pickle.dumps((("fn", ((1,), {})), digit * 32), 4) for digit in "01")
    >>> with_isolation_key(old, "1" * 32) == new
    True
    """
    match = _END.search(pickled_key)
    if match is None:
        raise CachescopeError("not a pickled key of torch 2.10: it does not end with an isolation key")
    start, end = match.span("isolation_key")
    return pickled_key[:start] + isolation_key.encode("ascii") + pickled_key[end:]


def pickled_name(pickled_key: bytes) -> str:
    """Return the file name of a pickled key: 32 hexadecimal digits of its sha256."""
    return hashlib.sha256(pickled_key).hexdigest()[:32]


def memoizer_keys(encoded_params: object, protocol: int = 4) -> tuple[str, ...]:
    """Return the keys that stored parameters can have in a memoizer of torch 2.11 and later.

    Mirrors ``_BaseMemoizer._make_key`` and ``Memoizer.record`` (torch/_inductor/runtime/caching/interfaces.py,
    2.11 to 2.15: the same in all of them, without an isolation key).

    >>> len(memoizer_keys({"args": (1,), "kwargs": {}}))
    2
    """
    keys = [_name(encoded_params, protocol)]
    if isinstance(encoded_params, Mapping) and list(encoded_params) == ["args", "kwargs"]:
        keys.append(_name((encoded_params["args"], encoded_params["kwargs"]), protocol))
    return tuple(keys)


def _name(key: object, protocol: int) -> str:
    return pickled_name(plain_pickle(key, protocol, with_complex=True))


def _shared(callee: str, params: object) -> tuple[str, object]:
    """The same values, with equal texts, bytes and tuples as one object."""
    known: dict[tuple[type, object], Any] = {}

    def one(value: Any) -> Any:
        # By repr: (1,) equals (1.0,) and (True,).
        return known.setdefault((type(value), repr(value)), value)

    shared: str = one(callee)
    return shared, _rebuilt(params, one)


def _apart(callee: str, params: object) -> tuple[str, object]:
    """The same values, with every text, bytes and tuple as a separate object."""

    def fresh(value: Any) -> Any:
        # The interpreter has only one object for each single character, and for the empty text.
        if isinstance(value, str):
            return "".join(list(value))
        return bytes(bytearray(value)) if isinstance(value, bytes) else value

    return fresh(callee), _rebuilt(params, fresh)


def _rebuilt(value: Any, leaf: Any) -> Any:
    if isinstance(value, tuple):
        return leaf(tuple(_rebuilt(item, leaf) for item in value))
    if isinstance(value, list):
        return [_rebuilt(item, leaf) for item in value]
    if isinstance(value, dict):
        return {_rebuilt(key, leaf): _rebuilt(item, leaf) for key, item in value.items()}
    return leaf(value) if isinstance(value, str | bytes) else value


def _is_hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _numbers(value: object) -> Iterator[Number]:
    if isinstance(value, tuple):
        for item in value:
            yield from _numbers(item)
    elif isinstance(value, _NUMBERS):
        yield value


def _has_twins(number: Number) -> bool:
    """Whether a number of another type equals it."""
    if isinstance(number, complex):
        return number.imag == 0
    return isinstance(number, int) or number.is_integer()


def _twins(number: Number) -> list[Number]:
    if isinstance(number, complex) or not _has_twins(number) or abs(number) >= 2**53:
        return [number]
    whole = int(number)
    return [whole, float(whole), *([bool(whole)] if whole in (0, 1) else []), *([-0.0] if whole == 0 else [])]


def _other_numbers(params: object) -> Iterator[object]:
    """The same parameters with equal numbers of other types."""
    numbers = list(_numbers(params))
    # Each may be an equal one of another type: of more, too many combinations would be tried.
    if len(numbers) > 4:
        return
    for choice in itertools.product(*map(_twins, numbers)):
        replacing = iter(choice)
        yield _with_numbers(params, replacing)


def _with_numbers(value: object, replacing: Iterator[object]) -> object:
    if isinstance(value, tuple):
        return tuple(_with_numbers(item, replacing) for item in value)
    return next(replacing) if isinstance(value, _NUMBERS) else value
