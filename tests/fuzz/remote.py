"""Remote caches: dumps whose lines were changed, and what a server answers that holds such values."""

from __future__ import annotations

import base64
import gzip
import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import redis

import cachescope
from cachescope.errors import CachescopeError
from cachescope.readers.reading import Reading
from cachescope.readers.remote_cache import stored
from cachescope.readers.remote_cache.stored import read_dump, read_redis
from fuzz.pickles import made_pickle
from fuzz.seeds import Seeds
from fuzz.use import scope_of, use
from fuzz.values import bad_value, changed_bytes, changed_json

_ADDRESS = "redis://:pa55word@cache-host:6379/0"
_KEYS = (
    "pt2:fx-graph-v1::f" + "a" * 51 + ":c1", "pt2:autograd-experimental::a" + "b" * 51 + ":c1", "pt2:dynamo-pgo::job:0:tag:c1",
    "pt2:bundled-autotune-v1::" + "4" * 64 + ":c1", "pt2:" + "1" * 64 + "::" + "2" * 64 + ":c1", "pt2:fx-graph-v1::k:c2", "pt2:", "pt2:::::c1",
    "pt2:fx-graph-v1::../../etc/passwd:c1", "pt2:fx-graph-v1::" + "x" * 20_000 + ":c1", "pt2:" + "::" * 5_000,
    "pt2:dynamo-pgo::\ud800\u202e\x1b[31m\n:c1", "pt2:fx-graph-v1::redis://host\x00:c1",
)  # fmt: skip
_FILES = ("../../../x.best_config", "/etc/passwd", "", "\ud800.best_config", "5" * 64 + ".best_config")
_STRAY = (
    b"", b"{}", b"null", b'{"key": 1, "value": {}}', b'{"key": "pt2:x"}', b"\xff\xfe\x00", b"[" * 50_000,
)  # fmt: skip
# Deleted meanwhile, of another type, or what no server should answer.
_ANSWERS = (None, redis.ResponseError("WRONGTYPE"), 7, [], "text", b"", b"\x00\xff", b"9" * 5_000)


class Remote:
    """Each line of a dump and each value of a server is an entry or a problem; what was not touched is read."""

    name = "remote caches"

    def __init__(self, seeds: Seeds) -> None:
        self._records = seeds.remote
        self._whole = {_line(key, json.dumps(value).encode()) for key, value in self._records}
        self._answers: dict[bytes, object] = {}

    def make(self, chance: random.Random) -> bytes:
        made = [self._record(chance) for _ in range(chance.choice((1, 1, 2, 4)))]
        self._answers = {
            # What is not torch's is not asked for.
            key.encode("utf-8", "surrogatepass"): chance.choice(_ANSWERS)
            if key not in _KEYS and chance.random() < 0.1
            else value
            for key, value in made
        }
        lines = [_line(key, value) for key, value in made]
        if chance.random() < 0.1:
            lines.insert(chance.randrange(len(lines) + 1), chance.choice(_STRAY))
        data = b"".join(line + b"\n" for line in lines)
        kind = chance.random()
        if kind < 0.1:
            return changed_bytes(chance, data, chance.choice((1, 3)))
        if kind < 0.15:
            return changed_bytes(chance, gzip.compress(data, 1, mtime=0), chance.choice((0, 1)))
        return data

    def _record(self, chance: random.Random) -> tuple[str, bytes]:
        """A key, and the text under it."""
        key, value = chance.choice(self._records)
        if chance.random() < 0.15:
            key = chance.choice(_KEYS)
        kind = chance.random()
        if kind < 0.35:
            value = {"data": base64.b64encode(made_pickle(chance)).decode()}
        elif kind < 0.55 and isinstance(value.get("data"), str):
            content = changed_bytes(chance, base64.b64decode(value["data"]), chance.choice((1, 1, 4, 20)))
            value = {**value, "data": base64.b64encode(content).decode()}
        elif kind < 0.6:
            value = {name: {"XBLOCK": 8, "configs_hash": "1"} for name in chance.sample(_FILES, 2)}
        elif kind < 0.65:
            return key, bad_value(chance).encode()
        elif kind < 0.9:
            return key, changed_json(chance, value, chance.choice((1, 1, 3)))
        return key, json.dumps(value).encode()

    def check(self, data: bytes, folder: Path) -> None:
        path = folder / "remote.jsonl"
        path.write_bytes(data)
        reading = Reading()
        read_dump(str(path), reading)
        if data.startswith(b'{"key": "pt2:'):
            lines = [line for line in data.split(b"\n") if line.strip()]
            _check(reading, len(lines), sum(line in self._whole for line in lines))
        answered = Reading()
        with _server(self._answers):
            read_redis(_ADDRESS, answered)
            there = [value for value in self._answers.values() if value is not None]
            _check(answered, len(there), 0)
            if len(data) % 41 == 0:
                cachescope.audit(_ADDRESS)
        if len(data) % 41 == 0:
            use(scope_of(answered))
            use(scope_of(reading), folder / "saved", path, len(data) // 41)
            try:
                cachescope.audit(path)
            except CachescopeError:
                return  # its first line no longer says what it is


def _line(key: str, value: bytes) -> bytes:
    return b'{"key": ' + json.dumps(key).encode() + b', "value": ' + value + b"}"


def _check(reading: Reading, stored: int, whole: int) -> None:
    """All that was stored is told: what cannot be read by a problem."""
    statuses = [entry.status for entry in reading.entries]
    without_row = sum(problem.count for problem in reading.problems if problem.where.startswith("line "))
    assert len(statuses) + without_row == stored, "what was stored is neither an entry nor a problem"
    broken = sum(status in ("damaged", "unreadable") for status in statuses)
    problems = sum(problem.count for problem in reading.problems)
    assert broken + without_row <= problems, "damage that no problem tells of"
    assert statuses.count("ok") >= whole, "what was not touched is not read"
    assert not any("pa55word" in problem.source for problem in reading.problems)


@contextmanager
def _server(answers: dict[bytes, object]) -> Iterator[None]:
    """A server that answers so."""
    before = stored._client
    stored._client = lambda *_: _Client(answers)
    try:
        yield
    finally:
        stored._client = before


class _Client:
    """What the reader asks of a client of redis-py."""

    def __init__(self, answers: dict[bytes, object]) -> None:
        self._answers = answers
        self._asked: list[object] = []

    def scan(self, *_: object, **__: object) -> tuple[int, list[bytes]]:
        return 0, list(self._answers)

    def pipeline(self, **_: object) -> _Client:
        return _Client(self._answers)

    def strlen(self, key: bytes) -> None:
        value = self._answers[key]
        self._asked.append(len(value) if isinstance(value, bytes) else value if value is not None else 0)

    def get(self, key: bytes) -> None:
        self._asked.append(self._answers[key])

    def execute(self, **_: object) -> list[Any]:
        return self._asked

    def close(self) -> None:
        pass
