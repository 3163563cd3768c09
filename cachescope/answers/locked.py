"""The lock of a cache, made from its files, and from recordings that say what is expected of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final

from cachescope.answers.recording import Recording
from cachescope.details import HashDetails
from cachescope.errors import CachescopeError, NotFoundError
from cachescope.frames.directory_rows import EntryRow
from cachescope.kept import kept
from cachescope.keys.key_fields import is_of_the_program
from cachescope.locking.facts import torch_versions
from cachescope.locking.lock import CacheLock, Key, KeyField, LockedFile, Process, Rule, Variable
from cachescope.locking.machine import this_machine
from cachescope.locking.tree import FILE, Content, Found, contents, walk
from cachescope.locking.variables import CAPABILITY, OFF, environment, variables_of_keys
from cachescope.terms import CACHES, OTHER
from cachescope.wording import listed, plural

_LONGEST: Final = 200
# Their texts are compared part by part.
_WHOLE: Final = "system_info["
_LONGEST_WHOLE: Final = 100_000
_NOT_LOOKED_UP: Final = ("bypass", "would_bypass", "disabled")


def lock_of(read: Recording, directory: str, expected: Recording | None = None) -> CacheLock:
    """Lock a directory."""
    found = walk(directory)
    files = [one for one in found if one.kind == FILE]
    held = contents(files)
    _refuse(found, held)
    contexts, looked_up = OwnFields(), _looked_up(expected)
    rows = _rows_by_name(read, directory)

    def context_of(row: EntryRow) -> int | None:
        if row.detail_set is not None:
            return contexts.number(read.tables.hash_details, row.detail_set)
        # The details of an AOTAutograd lookup contain the fields of the process, too.
        detail_set = looked_up.get((row.cache, row.cache_key))
        if expected is None or detail_set is None:
            return None
        return contexts.number(expected.tables.hash_details, detail_set)

    locked = {one.name: _locked(one, held[one.name], rows.get(one.name), context_of) for one in files}
    machine, _ = this_machine()
    runs = () if expected is None else expected.tables.runs.rows
    processes = (Process(row.torch_version, row.python_version, row.rank) for row in runs)
    lock = CacheLock(
        machine,
        contexts=tuple(contexts.found),
        processes=tuple(dict.fromkeys(processes)),
        files=locked,
        links={one.name: one.target for one in found if one.target is not None},
        expected=None if expected is None else _expected(expected),
    )
    return replace(lock, variables=_variables(torch_versions(lock) or filter(None, (machine.torch_version,))))


def _refuse(found: Iterable[Found], held: Mapping[str, Content]) -> None:
    problems = [(one.name, one.problem) for one in found if one.problem is not None]
    problems += [(name, content.problem) for name, content in held.items() if content.problem is not None]
    if problems:
        shown = listed([f"{name} ({problem})" for name, problem in problems], 3, "; ")
        raise CachescopeError(f"{plural(len(problems), 'file')} cannot be locked: {shown}")


def _rows_by_name(read: Recording, directory: str) -> dict[str, EntryRow]:
    """The rows of files in the directory. Rows within a mega-cache have its path, and are no files."""
    root = os.path.abspath(directory)
    rows = (row for row in read.tables.entries.rows if row.root != row.path)
    return {os.path.relpath(os.path.abspath(row.path), root).replace(os.sep, "/"): row for row in rows}


def _locked(
    one: Found, content: Content, row: EntryRow | None, context_of: Callable[[EntryRow], int | None]
) -> LockedFile:
    file = LockedFile(one.name, OTHER if row is None else row.cache, content.size, content.sha256 or "")
    if row is None or row.status != "ok":
        return file
    return replace(
        file,
        key=row.cache_key,
        context=context_of(row),
        needs=row.fx_keys,
        time_taken_ns=row.time_taken_ns,
        device_types=row.device_types,
    )


def _looked_up(expected: Recording | None) -> dict[tuple[str, str | None], int]:
    """The hash details of the keys that were looked up."""
    lookups = () if expected is None else expected.facts.lookups.values()
    return {
        (row.cache, row.cache_key): row.detail_set
        for row in lookups
        if row.cache_key is not None and row.detail_set is not None
    }


def _expected(expected: Recording) -> tuple[Key, ...]:
    rows = [row for row in expected.facts.lookups.values() if row.outcome not in _NOT_LOOKED_UP]
    keys = {(row.cache, row.cache_key) for row in rows if row.cache in CACHES and row.cache_key is not None}
    found = tuple(sorted(keys))
    if not found:
        raise NotFoundError("what is expected holds no lookup of a key: give traces or logs of a run")
    return found


def _variables(versions: Iterable[str]) -> dict[str, Variable]:
    """The variables that enter the keys of a torch; of the newest known one if nothing says which."""
    rules: dict[str, dict[str, Rule]] = {}
    for version in tuple(versions) or (None,):
        for name, fields in variables_of_keys(version).items():
            rules.setdefault(name, {}).update(fields)
    for name in (*OFF, CAPABILITY):
        rules.setdefault(name, {})
    here = environment(rules)
    return {name: Variable(here[name], rules[name]) for name in sorted(rules)}


class OwnFields:
    """Contexts of processes, numbered in the order in which they were first asked for."""

    def __init__(self) -> None:
        self.found: list[dict[str, KeyField]] = []
        self._numbers: dict[frozenset[tuple[str, str]], int] = {}

    @kept
    def number(self, details: HashDetails, detail_set: int) -> int | None:
        """The number of the context in the hash details of a key; None if these have no field of a process."""
        fields, names = details.field_codes, details.fields
        own = (code for code in details.sets[detail_set] if not is_of_the_program(names[fields[code]]))
        return self._number(details, *own)

    @kept
    def _number(self, details: HashDetails, *codes: int) -> int | None:
        parsed = [detail for code in codes if (detail := details.parsed(code)) is not None]
        hashes = frozenset((detail.field, detail.detail_hash) for detail in parsed)
        if not hashes:
            return None
        if hashes not in self._numbers:
            self._numbers[hashes] = len(self.found)
            self.found.append(
                {one.field: KeyField(one.detail_hash, _text(one.field, one.value_text)) for one in parsed}
            )
        return self._numbers[hashes]


def _text(field: str, text: str) -> str | None:
    """The beginning of a value's text; None for bytes, such as torch's own key."""
    if not text.isprintable() or "\ufffd" in text:
        return None
    if field.startswith(_WHOLE):
        return text if len(text) <= _LONGEST_WHOLE else None
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
