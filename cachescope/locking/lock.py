"""What a lock holds, as plain values; and its JSON: written a line for each file, so that a diff of two is readable; read without trust.

``lock_schema.json`` declares what a lock may hold, and is what it is checked with. A lock may come from anyone: whatever it
holds, it is read or refused in one line, and no path in it is ever opened.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from cachescope.catalogue.facts import plain
from cachescope.checked_json import WrongValueError, declared_in
from cachescope.errors import CachescopeError, SourceError, telling
from cachescope.json_types import JsonObject
from cachescope.readers.kinds import check_is_stored
from cachescope.terms import CACHES
from cachescope.version import __version__
from cachescope.whole_file import write_whole
from cachescope.wording import plural

LOCK_VERSION: Final = 1
SCHEMA: Final = Path(__file__).parent / "lock_schema.json"
# A file of a lock takes some 400 bytes.
MAX_BYTES: Final = 256 << 20
# How JSON writes a surrogate: a lone one is not a character.
_HALVES: Final = re.compile(rb"\\u[dD][89a-fA-F]")

_HEAD_BYTES: Final = 4096
# Some editors put a mark before it.
_BEGINNING: Final = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*"cachescope_lock"')

Key = tuple[str, str]
"""A cache, and a key in it."""


@dataclass(frozen=True, slots=True)
class LockedFile:
    """One file of the cache."""

    # Relative to the directory, with ``/``.
    path: str
    # As the column ``cache`` of ``entries``.
    kind: str
    size: int
    sha256: str
    # The key that it is an entry under, and the number of the context that made it; None where nothing says.
    key: str | None = None
    context: int | None = None
    # Of an AOTAutograd entry, the keys of the FX graphs that it points to.
    needs: tuple[str, ...] = ()
    time_taken_ns: int | None = None
    device_types: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class KeyField:
    """One field of a key: torch's hash of its value, and the beginning of its text if it has one."""

    detail_hash: str
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Process:
    """What a recording says of one of its processes."""

    torch_version: str | None = None
    python_version: str | None = None
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """How torch makes the value of a field from a variable."""

    # ``switch``: whether it is ``1``; ``int``, ``text``; ``other``: in a way that is not known here.
    kind: str
    # What counts where the variable is not set.
    unset: str | None = None


@dataclass(frozen=True, slots=True)
class Variable:
    """An environment variable that enters keys: its value where the lock was made, and the fields that it sets."""

    value: str | None
    fields: Mapping[str, Rule] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine and the Python that a lock was made with; None is not known, or not there."""

    python_version: str
    architecture: str
    # The torch beside this Python, the key that it makes of its sources, and the toolkits that it was built for.
    torch_version: str | None = None
    torch_key: str | None = None
    cuda: str | None = None
    hip: str | None = None
    triton_version: str | None = None
    triton_key: str | None = None
    # The models of its GPUs, as the driver names them.
    devices: tuple[str, ...] | None = None
    # Those of its vector instructions.
    cpu_features: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, repr=False)
class CacheLock:
    """The lock of a cache.

    Attributes
    ----------
    machine : Machine
        Where the lock was made.
    variables : mapping
        By name, every variable that is known to enter keys.
    contexts : tuple of mapping
        Of each distinct process that made keys, what its keys hold beside graph and inputs: field to `KeyField`.
    processes : tuple of Process
        Those of the recordings.
    files : mapping
        By path, the files.
    links : mapping
        By path, the links in the directory, and what in it they lead to.
    expected : tuple of (cache, key), or None
        The keys that the recordings looked up; None if there was none.
    """

    machine: Machine
    variables: Mapping[str, Variable] = field(default_factory=dict)
    contexts: tuple[Mapping[str, KeyField], ...] = ()
    processes: tuple[Process, ...] = ()
    files: Mapping[str, LockedFile] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)
    expected: tuple[Key, ...] | None = None

    def __repr__(self) -> str:
        keys = sum(1 for _ in self.entries())
        parts = [plural(len(self.files), "file"), plural(keys, "entry", "entries")]
        parts.append(plural(len(self.contexts), "context"))
        parts += [] if self.expected is None else [plural(len(self.expected), "expected key")]
        return f"<{', '.join(parts)}>"

    def entries(self) -> Iterator[LockedFile]:
        """The FX and AOTAutograd entries, whose keys hold what a process is."""
        return (file for file in self.files.values() if file.key is not None and file.kind in CACHES)


class LockFormatError(Exception):
    """What is wrong with a lock, in one sentence."""


def looks_like_lock(path: str | os.PathLike[str]) -> bool:
    """Whether this is a file that begins as a lock does: JSON whose first name is ``cachescope_lock``."""
    try:
        check_is_stored(os.fspath(path))
        with open(path, "rb", buffering=0) as file:
            return _BEGINNING.match(file.read(_HEAD_BYTES) or b"") is not None
    except (SourceError, OSError):
        return False


def read_lock(path: str | os.PathLike[str]) -> CacheLock:
    """Read a lock; raises `SourceError` if it cannot be read, is no lock, or is one of another version."""
    name = os.fspath(path)
    check_is_stored(name)
    try:
        with open(name, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        missing = isinstance(error, FileNotFoundError)
        why = "is not there" if missing else f"cannot be read: {getattr(error, 'strerror', None) or error}"
        raise SourceError(name, why, "missing" if missing else "unreadable") from error
    if len(data) > MAX_BYTES:
        raise SourceError(name, f"larger than {MAX_BYTES} bytes: no lock")
    try:
        return parse(data)
    except LockFormatError as error:
        raise SourceError(name, str(error)) from error


def parse(data: bytes) -> CacheLock:
    """The lock in some bytes; raises `LockFormatError`."""
    try:
        value = json.loads(data.decode("utf-8-sig"), object_pairs_hook=_object)
    except (ValueError, RecursionError, MemoryError) as error:
        raise LockFormatError(f"no lock: not readable as JSON: {error}") from error
    if not isinstance(value, dict) or "cachescope_lock" not in value:
        raise LockFormatError("no lock of cachescope")
    version = value["cachescope_lock"]
    if type(version) is not int or version != LOCK_VERSION:
        shown = version if type(version) is int and abs(version) < 10**9 else "unknown"
        raise LockFormatError(
            f"a lock of version {shown}; this cachescope reads version {LOCK_VERSION}: "
            "upgrade cachescope, or lock again"
        )
    if _HALVES.search(data):
        _whole_characters(value)
    try:
        declared_in(SCHEMA)(value)
    except WrongValueError as error:
        raise LockFormatError(f"no lock: {error}") from error
    return _lock(value)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise LockFormatError("not a lock: a name occurs twice in one object")
    return found


def _whole_characters(value: object) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except (UnicodeEncodeError, ValueError, RecursionError) as error:
        raise LockFormatError("no lock: it holds half of a character") from error


def _lock(value: dict[str, Any]) -> CacheLock:
    """The lock in what is as declared, if nothing in it refers to what is not there."""
    contexts = _contexts(value["contexts"])
    files: dict[str, LockedFile] = {}
    for item in value["files"]:
        file = LockedFile(**plain(item))
        if file.context is not None and file.context >= len(contexts):
            raise LockFormatError("no lock: a file has a context that is not there")
        if file.path in files:
            raise LockFormatError(f"no lock: the file {file.path!r} is listed twice")
        files[file.path] = file
    for path in value["links"]:
        if path in files:
            raise LockFormatError(f"no lock: {path!r} is a file and a link in it")
    variables = {
        name: Variable(one["value"], {field: Rule(*rule) for field, rule in one["fields"].items()})
        for name, one in value["variables"].items()
    }
    expected = value["expected"]
    return CacheLock(
        Machine(**plain(value["machine"])),
        variables,
        contexts,
        tuple(Process(**one) for one in value["processes"]),
        files,
        value["links"],
        None if expected is None else tuple((one["cache"], one["key"]) for one in expected),
    )


def _contexts(values: list[Any]) -> tuple[Mapping[str, KeyField], ...]:
    found: list[Mapping[str, KeyField]] = []
    for value in values:
        fields = {name: KeyField(*field) for name, field in value["fields"].items()}
        if value["like"] is None:
            found.append(fields)
        elif found:
            found.append(_LikeTheFirst(found[0], frozenset(value["without"]) - fields.keys(), fields))
        else:
            raise LockFormatError("no lock: a context is like one that is not there")
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


def lock_text(lock: CacheLock) -> str:
    """The lock as JSON: equal locks have equal texts."""
    expected = (_line({"cache": cache, "key": key}) for cache, key in lock.expected or ())
    contexts = (_context(lock.contexts[0] if at else None, one) for at, one in enumerate(lock.contexts))
    parts = [
        f'"cachescope_lock": {LOCK_VERSION}',
        f'"cachescope": {_line(__version__)}',
        f'"machine": {_line(asdict(lock.machine))}',
        f'"variables": {_lines(_variables(lock))}',
        f'"contexts": {_listed(contexts)}',
        f'"processes": {_listed(_line(asdict(process)) for process in lock.processes)}',
        f'"files": {_listed(_line(_file(file)) for file in lock.files.values())}',
        f'"links": {_lines(lock.links)}',
        f'"expected": {"null" if lock.expected is None else _listed(expected)}',
    ]
    return "{\n" + ",\n".join(parts) + "\n}\n"


def write_lock(lock: CacheLock, path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Write a lock; whoever reads the file never sees half of it. Raises `CachescopeError`, also if nothing could read it."""
    target, text = Path(path), lock_text(lock)
    # An empty file holds nothing, and a device is not replaced.
    is_full = target.is_file() and target.stat().st_size > 0
    if is_full and not (force or looks_like_lock(target)):
        raise CachescopeError(f"{target}: is no lock, and left as it is; --force replaces it")
    try:
        parse(text.encode())
    except LockFormatError as error:
        raise CachescopeError(f"{target}: cannot be locked: {error}") from error
    with telling(f"{target}: cannot write the lock"):
        write_whole(target, text.encode())


def _line(value: object) -> str:
    return json.dumps(value, ensure_ascii=True)


def _lines(values: Mapping[str, object]) -> str:
    rows = ",\n".join(f" {_line(name)}: {_line(value)}" for name, value in values.items())
    return f"{{\n{rows}\n}}" if rows else "{}"


def _listed(rows: Iterable[str]) -> str:
    shown = ",\n".join(f" {row}" for row in rows)
    return f"[\n{shown}\n]" if shown else "[]"


def _variables(lock: CacheLock) -> JsonObject:
    return {
        name: {
            "value": variable.value,
            "fields": {field: [rule.kind, rule.unset] for field, rule in variable.fields.items()},
        }
        for name, variable in lock.variables.items()
    }


def _context(first: Mapping[str, KeyField] | None, context: Mapping[str, KeyField]) -> str:
    """A context whole, or by what it has other than the first."""
    base = first or {}
    fields = {
        name: [one.detail_hash, one.text] for name, one in sorted(context.items()) if base.get(name) != one
    }
    without = sorted(base.keys() - context.keys())
    rows = ",\n".join(f"  {_line(name)}: {_line(value)}" for name, value in fields.items())
    like = "null" if first is None else "0"
    return f'{{"like": {like}, "without": {_line(without)}, "fields": {{\n{rows}\n }}}}'


def _file(file: LockedFile) -> JsonObject:
    """What is known of a file; what is not is left out."""
    values = ((one.name, getattr(file, one.name)) for one in fields(file))
    return {name: value for name, value in values if value not in (None, ())}
