"""Reads torch's remote caches from a live Redis: SCAN, STRLEN and GET, each of a little at a time, and nothing else.

The package ``redis`` is the extra `redis`. No text of the server is quoted: a server may repeat the password in it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final

from cachescope.errors import SourceError
from cachescope.readers.reading import Reading
from cachescope.readers.remote_cache.address import RedisAddress
from cachescope.readers.remote_cache.stored import MOST_BYTES, Stored, kind_and_key, read_stored
from cachescope.terms import OTHER

_TIMEOUT_S: Final = 10
_KEYS_AT_ONCE: Final = 1000
_VALUES_AT_ONCE: Final = 100
_BYTES_AT_ONCE: Final = 16 << 20
_MOST_KEYS: Final = 1_000_000


def read_redis(address: str, reading: Reading, *, may_be_empty: bool = False) -> None:
    """Read the remote caches at an address into ``reading.entries``."""
    address = RedisAddress.of(address)
    read_stored(address, stored_in(address, may_be_empty=may_be_empty), reading)


def check_redis(address: str) -> None:
    """Say at once whether the server at an address can be read; it may hold nothing."""
    next(stored_in(address, may_be_empty=True), None)


def stored_in(address: str, *, may_be_empty: bool = False) -> Iterator[Stored]:
    """Yield the values of torch's remote caches at an address, in the order of their keys."""
    address = RedisAddress.of(address)
    redis = _redis(address)
    try:
        with contextlib.closing(_client(redis, address)) as client:
            listed = set(islice(client.scan_iter(match="pt2:*", count=_KEYS_AT_ONCE), _MOST_KEYS + 1))
            if not listed and not may_be_empty:
                raise SourceError(address, "this Redis holds no key of torch (pt2:…)", "empty")
            if len(listed) > _MOST_KEYS:
                raise SourceError(address, f"more than {_MOST_KEYS:,} keys: not read")
            keys = sorted(listed)
            for at in range(0, len(keys), _VALUES_AT_ONCE):
                yield from _values(client, keys[at : at + _VALUES_AT_ONCE])
    except redis.RedisError as error:
        raise SourceError(address, _error_text(redis, error)) from None


def _values(client: Any, keys: Sequence[bytes]) -> Iterator[Stored]:
    """The values of some keys, in their order; those that were deleted meanwhile are left out."""
    waiting: list[bytes] = []
    waiting_bytes = 0
    for key, size in zip(keys, _ask(client, "strlen", keys), strict=True):
        shown = _shown(key)
        if kind_and_key(shown)[0] == OTHER:
            yield Stored(shown, None, size if isinstance(size, int) else None)
        elif not isinstance(size, int):
            yield Stored(shown, None, None, "the server gives no text for it")
        elif size > MOST_BYTES:
            yield Stored(shown, None, size, f"more than {MOST_BYTES} bytes: not read")
        else:
            if waiting and waiting_bytes + size > _BYTES_AT_ONCE:
                yield from _read(client, waiting)
                waiting, waiting_bytes = [], 0
            waiting.append(key)
            waiting_bytes += size
    yield from _read(client, waiting)


def _read(client: Any, keys: Sequence[bytes]) -> Iterator[Stored]:
    for key, value in zip(keys, _ask(client, "get", keys), strict=True):
        if isinstance(value, bytes):
            yield Stored(_shown(key), value)
        elif value is not None:
            yield Stored(_shown(key), None, None, "the server gives no text for it")


def _ask(client: Any, command: str, keys: Sequence[bytes]) -> list[Any]:
    """The answers of one command for some keys; of a key that it is wrong for, an exception."""
    pipeline = client.pipeline(transaction=False)
    for key in keys:
        getattr(pipeline, command)(key)
    answers: list[Any] = pipeline.execute(raise_on_error=False)
    return answers


def _shown(key: bytes) -> str:
    return key.decode("utf-8", "backslashreplace")


def _client(redis: Any, address: RedisAddress) -> Any:
    try:
        return redis.Redis.from_url(
            address.url,
            socket_timeout=_TIMEOUT_S,
            socket_connect_timeout=_TIMEOUT_S,
            retry=redis.retry.Retry(redis.backoff.NoBackoff(), 0),
            # Every server speaks it.
            protocol=2,
        )
    except (ValueError, TypeError):
        raise SourceError(address, "no address of a Redis: redis://HOST:PORT/DB") from None


def _error_text(redis: Any, error: Exception) -> str:
    if isinstance(error, redis.AuthenticationError):
        return "the server refuses the user or the password"
    if isinstance(error, redis.TimeoutError):
        return f"no answer within {_TIMEOUT_S} seconds"
    if isinstance(error, redis.exceptions.NoPermissionError):
        return "the server does not allow SCAN, STRLEN or GET"
    if isinstance(error, redis.ConnectionError):
        return f"cannot be reached: {getattr(error.__context__, 'strerror', None) or 'no connection'}"
    return f"the server answers with an error ({type(error).__name__})"


def _redis(address: str) -> Any:
    try:
        import redis
    except ImportError as error:
        message = "redis reads remote caches, and is not installed: pip install 'cachescope[redis]' (or read a dump)"
        raise SourceError(address, message) from error
    return redis
