"""Values of torch's remote caches, from a server or a dump, as rows of ``entries``: the same entries as in a cache directory.

Mirrors ``RedisRemoteCache`` and its users, torch 2.6 to 2.15: the key ``pt2:<cache id>::<key>:c1``, and JSON as the value.
A cache holds one value per key: an entry with other guards replaces the one before.

``{"key": "pt2:fx-graph-v1::f…:c1", "value": {"data": "gASV…", "time_taken_ms": 812}}``

Of a live Redis, SCAN, STRLEN and GET are asked, each of a little at a time, and nothing else. No text of the server is quoted: it may
repeat the password. The package ``redis`` is the extra `redis`.
"""

from __future__ import annotations

import base64
import contextlib
import io
import json
import re
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from cachescope.errors import SourceError
from cachescope.frames.directory_rows import EntryRow
from cachescope.readers.cache_file import DamagedContent, Fill, load_object, marked
from cachescope.readers.directory.bundles import CHECKS
from cachescope.readers.directory.dynamo_packages import CODE_STATE, fill_code_state, key_in_name
from cachescope.readers.directory.triton_files import fill_best_config
from cachescope.readers.json_record import well_formed
from cachescope.readers.logs.byte_source import FAILURES, open_bytes
from cachescope.readers.pickles.inert_pickle import Limits, NotRead
from cachescope.readers.reading import Reading
from cachescope.readers.remote_cache.address import RedisAddress
from cachescope.terms import AOTAUTOGRAD, BEST_CONFIG, BUNDLED_AUTOTUNE, FXGRAPH, OTHER, PGO

MOST_BYTES: Final = Limits().size_bytes // 3 * 4 + 1024
"""What a value may have: the largest entry that is read, as base64."""

# `RedisRemoteCache.__init__` (torch/_inductor/remote_cache.py); another version is of a torch that is not known yet.
_KEY_BEGINS, _ENDS = "pt2:", ":c1"
# The `cache_id` of each `create_cache` in torch.
_KINDS: Final = {
    "fx-graph-v1": FXGRAPH, "autograd-experimental": AOTAUTOGRAD, "bundled-autotune-v1": BUNDLED_AUTOTUNE, "dynamo-pgo": PGO,
}  # fmt: skip
# `AutotuneCache._setup_remote_autotune_cache`: a hash of torch, backend and configurations.
_OF_A_KERNEL: Final = re.compile(r"[0-9a-f]{64}")
_PICKLED: Final = (FXGRAPH, AOTAUTOGRAD, PGO)
_SHOWN: Final = 5
# An empty list takes thirty times its text. A bundle has some values for each kernel of a graph.
_MOST_VALUES: Final = 200_000

# A key may be as long as a value; torch's have some hundred bytes.
_MOST_LINE_BYTES: Final = MOST_BYTES + (1 << 16)


@dataclass(frozen=True, slots=True)
class Stored:
    """One value of a remote cache."""

    key: str  # the whole key
    value: bytes | dict[str, object] | None  # the value, as text or parsed; None if it was not read
    size_bytes: int | None = None  # the size of a value that was not read
    why_not: str = ""  # why it was not read


def kind_and_key(key: str) -> tuple[str, str | None]:
    """The kind of entry under a whole key, and its own key; `OTHER` if torch is not known to store anything there."""
    cache, divided, own = key.removeprefix(_KEY_BEGINS).removesuffix(_ENDS).partition("::")
    if not (divided and key.startswith(_KEY_BEGINS) and key.endswith(_ENDS)):
        return OTHER, None
    kind = BEST_CONFIG if _OF_A_KERNEL.fullmatch(cache) else _KINDS.get(cache, OTHER)
    return kind, key_in_name(own) if kind == PGO else own


def read_stored(root: str, found: Iterable[Stored], reading: Reading) -> None:
    """Read values into ``reading.entries``, as those of the directory `root`."""
    seen_ns = time.time_ns()
    # What was read before a server goes away is there.
    reading.cache_roots.append(root)
    for one in found:
        kind, key = kind_and_key(one.key)
        path = f"{root}/{one.key}"
        entry = EntryRow(cache=kind, cache_key=key, path=path, root=root, size_bytes=one.size_bytes)
        entry.status, entry.seen_time = "foreign" if kind == OTHER else "ok", seen_ns
        reading.entries.append(entry)
        if kind != OTHER:
            _fill(entry, one, reading)


def object_in(text: bytes) -> dict[str, object]:
    """The object that a value or a line of a dump is."""
    if text.count(b",") > _MOST_VALUES:
        raise NotRead(f"more than {_MOST_VALUES:,} values of JSON: not read")
    return load_object(text)


def content_of(kind: str, value: bytes | dict[str, object]) -> bytes:
    """The bytes that torch would have in a file."""
    stored = object_in(value) if isinstance(value, bytes) else value
    if kind not in _PICKLED:
        return json.dumps(stored).encode("ascii")
    data = stored.get("data")
    if not isinstance(data, str):
        raise DamagedContent("holds no text called data")
    try:
        return base64.b64decode(data)
    except ValueError as error:
        raise DamagedContent("its data are no base64") from error


def _fill(entry: EntryRow, one: Stored, reading: Reading) -> None:
    with marked(entry, reading):
        if one.value is None:
            raise NotRead(one.why_not)
        content = content_of(entry.cache, one.value)
        entry.size_bytes = len(content)
        if len(content) > Limits().size_bytes:
            raise NotRead(f"more than {Limits().size_bytes} bytes: not read")
        _FILLS[entry.cache](entry, CODE_STATE, content, reading)


def _fill_bundle(entry: EntryRow, name: str, data: bytes, reading: Reading) -> None:
    """Note the configurations in a bundle (``_AutotuneCacheBundlerImpl``, torch/_inductor/runtime/autotune_cache.py)."""
    shown: list[str] = []
    bundle = load_object(data)
    for file, best in bundle.items():
        inner = EntryRow(cache=BEST_CONFIG, path=entry.path, root=entry.root)
        fill_best_config(inner, file, json.dumps(best).encode("ascii"), reading)
        entry.triton_hashes += inner.triton_hashes
        if len(shown) < _SHOWN:
            shown.append(f"{well_formed(file)[:12]}…: {inner.detail}")
    more = [f"{len(bundle) - _SHOWN} more"] if len(bundle) > _SHOWN else []
    entry.detail = "; ".join([*shown, *more])


_FILLS: Final[dict[str, Fill]] = {
    PGO: fill_code_state, BEST_CONFIG: fill_best_config, BUNDLED_AUTOTUNE: _fill_bundle, **dict(CHECKS.values()),
}  # fmt: skip


def read_dump(path: str, reading: Reading) -> None:
    """Read a dump, plain or compressed, into ``reading.entries``."""
    read_stored(path, stored_in_dump(path, reading), reading)


def stored_in_dump(path: str, reading: Reading) -> Iterator[Stored]:
    """Yield the values of a dump, in its order; an invalid line becomes a problem."""
    number = 0
    with open_bytes(path) as file:
        stream = io.BufferedReader(file)  # type: ignore[type-var]
        try:
            while line := stream.readline(_MOST_LINE_BYTES):
                number += 1
                if not line.strip():
                    continue
                try:
                    yield _stored(line)
                except (DamagedContent, NotRead) as error:
                    reading.problem(path, f"line {number}", "not_json", error.what)
                while len(line) == _MOST_LINE_BYTES and not line.endswith(b"\n"):
                    line = stream.readline(_MOST_LINE_BYTES)
        except FAILURES as error:
            reading.problem(path, f"line {number + 1}", "damaged_compression", str(error))


def _stored(line: bytes) -> Stored:
    # Parsing a line costs more than half of what a line of nothing costs.
    is_other = line.startswith(b"{") and b'"key"' not in line
    record = {} if is_other else object_in(line)
    key, value = record.get("key"), record.get("value")
    if not isinstance(key, str) or not isinstance(value, dict):
        raise DamagedContent("no key with an object as its value")
    return Stored(well_formed(key), value)


_TIMEOUT_S: Final = 10
_KEYS_AT_ONCE: Final = 1000
_VALUES_AT_ONCE: Final = 100
_BYTES_AT_ONCE: Final = 16 << 20
_MOST_KEYS: Final = 1_000_000
_MOST_BYTES_OF_KEYS: Final = 256 << 20
# What an answer may have besides the values: a page of keys, or what grew since its size was asked for.
_MOST_BYTES_BESIDE: Final = 16 << 20
# For a hundred million keys, of which torch may have stored a few.
_MOST_SCANS: Final = 100_000
_LEAST_BYTES_A_SECOND: Final = 100_000
_NOT_OF_REDIS: Final = (ValueError, TypeError, AttributeError, RecursionError)
"""What redis-py and what is done with its answers raise when a server answers as no Redis does."""


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
        meter = _Meter(address)
        with contextlib.closing(_client(redis, address, meter)) as client:
            keys = _keys(client, meter)
            if not keys and not may_be_empty:
                raise SourceError(address, "this Redis holds no key of torch (pt2:…)", "empty")
            for at in range(0, len(keys), _VALUES_AT_ONCE):
                yield from _values(client, meter, keys[at : at + _VALUES_AT_ONCE])
    except redis.RedisError as error:
        raise SourceError(address, _error_text(redis, error)) from None
    except _NOT_OF_REDIS:
        raise SourceError(address, "the server does not answer as a Redis does") from None


class _Meter:
    """The socket of a server, which may send no more than was asked for, and not so slowly that it never ends."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.expect(0)

    def expect(self, size: int) -> None:
        """Allow an answer of about this many bytes."""
        self._most, self._received, self._start_s = size + _MOST_BYTES_BESIDE, 0, time.monotonic()

    def connect(self, connection: Any) -> None:
        """Stand between a connection and its socket, as its `redis_connect_func`."""
        self._socket, connection._sock = connection._sock, self
        connection.on_connect()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._socket, name)

    def recv(self, size: int) -> bytes:
        """Receive as a socket does."""
        data: bytes = self._socket.recv(size)
        self._count(len(data))
        return data

    def recv_into(self, *space: Any) -> int:
        """Receive as a socket does."""
        size: int = self._socket.recv_into(*space)
        self._count(size)
        return size

    def _count(self, size: int) -> None:
        self._received += size
        if self._received > self._most:
            raise SourceError(self.address, "the server sends more than it was asked for")
        if time.monotonic() - self._start_s > _TIMEOUT_S + self._received / _LEAST_BYTES_A_SECOND:
            raise SourceError(self.address, f"no whole answer within {_TIMEOUT_S} seconds")


def _keys(client: Any, meter: _Meter) -> list[bytes]:
    """The keys of torch, in their order."""
    found: set[bytes] = set()
    cursor = size = 0
    for _ in range(_MOST_SCANS):
        meter.expect(0)
        cursor, keys = client.scan(cursor, match="pt2:*", count=_KEYS_AT_ONCE)
        found.update(keys)
        size += sum(map(len, keys))
        if len(found) > _MOST_KEYS or size > _MOST_BYTES_OF_KEYS:
            message = f"more than {_MOST_KEYS:,} keys, or {_MOST_BYTES_OF_KEYS:,} bytes of them: not read"
            raise SourceError(meter.address, message)
        if not cursor:
            return sorted(found)
    raise SourceError(meter.address, f"its keys do not end: {_MOST_SCANS:,} times asked for more")


def _values(client: Any, meter: _Meter, keys: Sequence[bytes]) -> Iterator[Stored]:
    """The values of some keys, in their order; those that were deleted meanwhile are left out."""
    waiting: list[bytes] = []
    waiting_bytes = 0
    for key, size in zip(keys, _ask(client, meter, "strlen", keys), strict=True):
        shown = _shown(key)
        if kind_and_key(shown)[0] == OTHER:
            yield Stored(shown, None, size if isinstance(size, int) and 0 <= size <= sys.maxsize else None)
        elif not isinstance(size, int) or not 0 <= size <= sys.maxsize:
            yield Stored(shown, None, None, "the server gives no text for it")
        elif size > MOST_BYTES:
            yield Stored(shown, None, size, f"more than {MOST_BYTES} bytes: not read")
        else:
            if waiting and waiting_bytes + size > _BYTES_AT_ONCE:
                yield from _read(client, meter, waiting, waiting_bytes)
                waiting, waiting_bytes = [], 0
            waiting.append(key)
            waiting_bytes += size
    yield from _read(client, meter, waiting, waiting_bytes)


def _read(client: Any, meter: _Meter, keys: Sequence[bytes], size: int) -> Iterator[Stored]:
    for key, value in zip(keys, _ask(client, meter, "get", keys, size), strict=True):
        if isinstance(value, bytes):
            yield Stored(_shown(key), value)
        elif value is not None:
            yield Stored(_shown(key), None, None, "the server gives no text for it")


def _ask(client: Any, meter: _Meter, command: str, keys: Sequence[bytes], size: int = 0) -> list[Any]:
    """The answers of one command for some keys, of this size together; of a key that it is wrong for, an exception."""
    meter.expect(size)
    pipeline = client.pipeline(transaction=False)
    for key in keys:
        getattr(pipeline, command)(key)
    answers: list[Any] = pipeline.execute(raise_on_error=False)
    return answers


def _shown(key: bytes) -> str:
    return key.decode("utf-8", "backslashreplace")


def _client(redis: Any, address: RedisAddress, meter: _Meter) -> Any:
    try:
        return redis.Redis.from_url(
            address.url,
            socket_timeout=_TIMEOUT_S,
            socket_connect_timeout=_TIMEOUT_S,
            retry=redis.retry.Retry(redis.backoff.NoBackoff(), 0),
            # Every server speaks it.
            protocol=2,
            redis_connect_func=meter.connect,
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
