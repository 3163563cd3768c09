"""The lock of a cache, made of what was read of it, and of recordings that say what is expected of it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from cachescope.analysis.contexts.variables import variables_of_keys
from cachescope.answers.own_fields import OwnFields
from cachescope.answers.read import Read
from cachescope.columns import rows_of
from cachescope.errors import CachescopeError, NotFoundError
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.recorded_rows import LookupRow, RunRow
from cachescope.locking.facts import torch_versions
from cachescope.locking.lock import CacheLock, Key, LockedFile, Process, Rule, Variable
from cachescope.locking.machine import this_machine
from cachescope.locking.tree import FILE, Content, Found, contents, walk
from cachescope.locking.variables import OFF, environment
from cachescope.terms import CACHES, OTHER
from cachescope.wording import listed, plural

_NAMED = 3
_NOT_LOOKED_UP = ("bypass", "would_bypass", "disabled")


def lock_of(read: Read, directory: str, expected: Read | None = None) -> CacheLock:
    """Lock a directory."""
    found = walk(directory)
    files = [one for one in found if one.kind == FILE]
    held = contents(files)
    _refuse(found, held)
    contexts = OwnFields()
    rows = _rows_by_name(read, directory)
    details = _recorded_sets(expected)
    locked = {
        one.name: _locked(one, held[one.name], rows.get(one.name), read, contexts, details) for one in files
    }
    machine, _ = this_machine()
    lock = CacheLock(
        machine,
        contexts=tuple(contexts.found),
        processes=() if expected is None else _processes(expected),
        files=locked,
        links={one.name: one.target for one in found if one.target is not None},
        expected=None if expected is None else _expected(expected),
    )
    return replace(lock, variables=_variables(torch_versions(lock)))


def _refuse(found: Iterable[Found], held: Mapping[str, Content]) -> None:
    problems = [(one.name, one.problem) for one in found if one.problem is not None]
    problems += [(name, content.problem) for name, content in held.items() if content.problem is not None]
    if problems:
        shown = listed([f"{name} ({problem})" for name, problem in problems], _NAMED, "; ")
        raise CachescopeError(f"{plural(len(problems), 'file')} cannot be locked: {shown}")


def _rows_by_name(read: Read, directory: str) -> dict[str, EntryRow]:
    """The rows of files in the directory; those within a mega-cache have its path, and are no files."""
    root = os.path.abspath(directory)
    rows = (row for row in rows_of(read.entries, EntryRow) if row.root != row.path)
    return {os.path.relpath(os.path.abspath(row.path), root).replace(os.sep, "/"): row for row in rows}


Recorded = Mapping[Key, tuple[Read, int]]
"""Of a key, a lookup's hash details."""


def _locked(
    one: Found, content: Content, row: EntryRow | None, read: Read, contexts: OwnFields, recorded: Recorded
) -> LockedFile:
    file = LockedFile(one.name, OTHER if row is None else row.cache, content.size, content.sha256 or "")
    if row is None or row.status != "ok":
        return file
    context: int | None = None
    if row.detail_set is not None:
        context = contexts.number(read.tables.hash_details, row.detail_set)
    elif row.cache_key is not None and (row.cache, row.cache_key) in recorded:
        other, detail_set = recorded[row.cache, row.cache_key]
        context = contexts.number(other.tables.hash_details, detail_set)
    return replace(
        file,
        key=row.cache_key,
        context=context,
        needs=row.fx_keys,
        time_taken_ns=row.time_taken_ns,
        device_types=row.device_types,
    )


def _recorded_sets(expected: Read | None) -> Recorded:
    if expected is None:
        return {}
    rows = rows_of(expected.lookups, LookupRow)
    # Of an AOTAutograd key too: its details contain what the process is.
    return {
        (row.cache, row.cache_key): (expected, row.detail_set)
        for row in rows
        if row.cache_key is not None and row.detail_set is not None
    }


def _processes(expected: Read) -> tuple[Process, ...]:
    rows = rows_of(expected.runs, RunRow)
    found = (Process(row.torch_version, row.python_version, row.rank) for row in rows)
    return tuple(dict.fromkeys(found))


def _expected(expected: Read) -> tuple[Key, ...]:
    rows = rows_of(expected.lookups, LookupRow)
    keys = (
        (row.cache, row.cache_key)
        for row in rows
        if row.cache in CACHES and row.cache_key is not None and row.outcome not in _NOT_LOOKED_UP
    )
    found = tuple(sorted(set(keys)))
    if not found:
        raise NotFoundError("what is expected holds no lookup of a key: give traces or logs of a run")
    return found


def _variables(versions: Sequence[str]) -> dict[str, Variable]:
    """What enters keys of some torch, of the newest that is known if nothing says which."""
    rules: dict[str, dict[str, Rule]] = {}
    for version in versions or (None,):
        for name, fields in variables_of_keys(version).items():
            rules.setdefault(name, {}).update({field: Rule(*rule) for field, rule in fields.items()})
    for name in OFF:
        rules.setdefault(name, {})
    here = environment(rules)
    return {name: Variable(here[name], rules[name]) for name in sorted(rules)}
