"""A lock out of the values of its JSON, each of which is checked: types, limits, and what refers to what."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NoReturn, TypeVar

from cachescope.locking.lock import (
    CacheLock,
    Key,
    KeyField,
    LockedFile,
    Machine,
    Process,
    Rule,
    Variable,
)
from cachescope.locking.variables import RULES

_TOP: Final = frozenset(
    [
        "cachescope_lock",
        "cachescope",
        "machine",
        "variables",
        "contexts",
        "processes",
        "files",
        "links",
        "expected",
    ]
)
_FILE: Final = frozenset(
    ["path", "kind", "size", "sha256", "key", "context", "needs", "time_taken_ns", "device_types"]
)
_EVERY_FILE: Final = frozenset(["path", "kind", "size", "sha256"])
_MACHINE_TEXTS: Final = (
    "torch_version", "torch_key", "cuda", "hip", "triton_version", "triton_key",
)  # fmt: skip
_MACHINE: Final = frozenset(["python_version", "architecture", "devices", "cpu_features", *_MACHINE_TEXTS])
_NO_NAMES: Final = frozenset({"", ".", ".."})
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_DETAIL_HASH: Final = re.compile(r"[a-z2-7]{51}")
_MOST_INT: Final = 2**63 - 1
_LONGEST: Final = 4096
_LONGEST_TEXT: Final = 20_000
_LONGEST_FIELD: Final = 100_000

Value = TypeVar("Value")


class LockFormatError(Exception):
    """What is wrong with a lock, in one sentence."""


def checked_lock(value: dict[str, Any]) -> CacheLock:
    """The lock in an object of JSON; raises `LockFormatError`."""
    _names(value, _TOP, "a lock")
    _text(value["cachescope"], "cachescope")
    contexts = _contexts(_list(value["contexts"], "contexts"))
    files: dict[str, LockedFile] = {}
    for item in _list(value["files"], "files"):
        file = _file(item, len(contexts))
        if file.path in files:
            _wrong(f"the file {file.path!r} is listed twice")
        files[file.path] = file
    links = _mapping(value["links"], "links", _inside)
    for path in links:
        _path(path)
        if path in files:
            _wrong(f"{path!r} is a file and a link in it")
    return CacheLock(
        _machine(value["machine"]),
        _mapping(value["variables"], "variables", _variable),
        contexts,
        tuple(map(_process, _list(value["processes"], "processes"))),
        files,
        links,
        _expected(value["expected"]),
    )


def _wrong(what: str) -> NoReturn:
    raise LockFormatError(f"no lock: {what}")


def _names(value: object, names: frozenset[str], what: str, needed: frozenset[str] | None = None) -> None:
    if not isinstance(value, dict):
        _wrong(f"{what} is no object")
    needed = names if needed is None else needed
    if not needed <= value.keys():
        _wrong(f"{what} has no {min(needed - value.keys())}")
    if not value.keys() <= names:
        _wrong(f"{what} has a {min(value.keys() - names)[:100]!r}, which version 1 does not have")


def _list(value: object, what: str) -> list[Any]:
    return value if isinstance(value, list) else _wrong(f"{what} is no list")


def _text(value: object, what: str, most: int = _LONGEST_TEXT) -> str:
    if not isinstance(value, str) or len(value) > most:
        _wrong(f"{what} is no text, or too long")
    return value


def _text_or_none(value: object, what: str) -> str | None:
    return None if value is None else _text(value, what)


def _texts(value: object, what: str) -> tuple[str, ...]:
    return tuple(_text(item, what) for item in _list(value, what))


def _texts_or_none(value: object, what: str) -> tuple[str, ...] | None:
    return None if value is None else _texts(value, what)


def _count(value: object, what: str) -> int:
    # In Python a bool is an int.
    if type(value) is not int or not 0 <= value <= _MOST_INT:
        _wrong(f"{what} is no number from 0 to 2^63 - 1")
    return value


def _count_or_none(value: object, what: str) -> int | None:
    return None if value is None else _count(value, what)


def _mapping(value: object, what: str, of: Callable[[Any], Value]) -> dict[str, Value]:
    if not isinstance(value, dict):
        _wrong(f"{what} is no object")
    return {_text(name, what, _LONGEST): of(item) for name, item in value.items()}


def _path(value: object) -> str:
    """A path in the directory: none that leads out of it, however it is joined to one."""
    path = _text(value, "a path", _LONGEST)
    if "\0" in path or not _NO_NAMES.isdisjoint(path.split("/")):
        _wrong(f"{path[:100]!r} is no path in a directory")
    return path


def _inside(value: object) -> str:
    """What a link leads to: the directory itself, or a path in it."""
    return "." if value == "." else _path(value)


def _machine(value: Any) -> Machine:
    _names(value, _MACHINE, "machine")
    return Machine(
        python_version=_text(value["python_version"], "python_version"),
        architecture=_text(value["architecture"], "architecture"),
        devices=_texts_or_none(value["devices"], "devices"),
        cpu_features=_texts_or_none(value["cpu_features"], "cpu_features"),
        **{name: _text_or_none(value[name], name) for name in _MACHINE_TEXTS},
    )


def _variable(value: Any) -> Variable:
    _names(value, frozenset({"value", "fields"}), "a variable")
    return Variable(
        _text_or_none(value["value"], "the value of a variable"),
        _mapping(value["fields"], "the fields of a variable", _rule),
    )


def _rule(value: object) -> Rule:
    if not isinstance(value, list) or len(value) != 2 or value[0] not in RULES:
        _wrong("how a variable sets a field is not known")
    return Rule(value[0], _text_or_none(value[1], "what an unset variable counts as"))


def _contexts(values: list[Any]) -> tuple[Mapping[str, KeyField], ...]:
    found: list[Mapping[str, KeyField]] = []
    for value in values:
        _names(value, frozenset({"like", "without", "fields"}), "a context")
        like = _count_or_none(value["like"], "like")
        if like is not None and (like != 0 or not found):
            _wrong("a context is like one that is not there")
        without = frozenset(_texts(value["without"], "without"))
        fields = _mapping(value["fields"], "the fields of a context", _key_field)
        found.append(fields if like is None else _LikeTheFirst(found[0], without - fields.keys(), fields))
    return tuple(found)


class _LikeTheFirst(Mapping[str, KeyField]):
    """A context by what it has other than the first: whole ones of a short text could fill the memory."""

    def __init__(
        self, first: Mapping[str, KeyField], without: frozenset[str], fields: Mapping[str, KeyField]
    ) -> None:
        self._first, self._without, self._fields = first, without, fields

    def __getitem__(self, name: str) -> KeyField:
        if name in self._without:
            raise KeyError(name)
        return self._fields[name] if name in self._fields else self._first[name]

    def __iter__(self) -> Iterator[str]:
        yield from self._fields
        yield from (name for name in self._first if name not in self._without | self._fields.keys())

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _key_field(value: object) -> KeyField:
    if not isinstance(value, list) or len(value) != 2 or not isinstance(value[0], str):
        _wrong("a field of a context is no pair of hash and text")
    if not _DETAIL_HASH.fullmatch(value[0]):
        _wrong("the hash of a field is no hash of torch")
    text = None if value[1] is None else _text(value[1], "the text of a field", _LONGEST_FIELD)
    return KeyField(value[0], text)


def _process(value: Any) -> Process:
    _names(value, frozenset({"torch_version", "python_version", "rank"}), "a process")
    return Process(
        _text_or_none(value["torch_version"], "torch_version"),
        _text_or_none(value["python_version"], "python_version"),
        _count_or_none(value["rank"], "rank"),
    )


def _file(value: Any, contexts: int) -> LockedFile:
    _names(value, _FILE, "a file", _EVERY_FILE)
    context = _count(value["context"], "context") if "context" in value else None
    if context is not None and context >= contexts:
        _wrong("a file has a context that is not there")
    sha256 = value["sha256"]
    if not isinstance(sha256, str) or not _SHA256.fullmatch(sha256):
        _wrong("the hash of a file is no sha256")
    return LockedFile(
        _path(value["path"]),
        _text(value["kind"], "kind", _LONGEST),
        _count(value["size"], "size"),
        sha256,
        _text(value["key"], "key", _LONGEST) if "key" in value else None,
        context,
        _texts(value["needs"], "needs") if "needs" in value else (),
        _count(value["time_taken_ns"], "time_taken_ns") if "time_taken_ns" in value else None,
        _texts(value["device_types"], "device_types") if "device_types" in value else (),
    )


def _expected(value: object) -> tuple[Key, ...] | None:
    return None if value is None else tuple(map(_expected_key, _list(value, "expected")))


def _expected_key(value: Any) -> Key:
    _names(value, frozenset({"cache", "key"}), "an expected key")
    return _text(value["cache"], "cache", _LONGEST), _text(value["key"], "key", _LONGEST)
