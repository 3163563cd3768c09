"""The files that a user means by a key, the name of a file or folder, or the number of an entry."""

from __future__ import annotations

import os
from typing import Final

from cachescope.analysis.named import is_number
from cachescope.errors import NotFoundError
from cachescope.frames.directory_rows import EntryRow
from cachescope.terms import LOCK

# Of the files under one key, readable ones come first. The rest is compiled code.
_FIRST: Final = (".py", ".cpp", ".cu", ".source", ".ttir", ".ttgir", ".llir", ".ptx", ".h", ".json")


def files_named(rows: list[EntryRow], which: int | str) -> list[EntryRow]:
    """The files of one key, the one to show first: sound before damaged, then readable, then the newest."""
    # Numbers from a frame are numpy's.
    if not isinstance(which, str) or is_number(which):
        found = [row for row in rows if row.entry == int(which)]
        if not found:
            raise NotFoundError(f"no entry {which}; there are {len(rows)}")
        return [*found, *_others(rows, found[0])]
    return sorted(_called(rows, which), key=_rank)


def _others(rows: list[EntryRow], chosen: EntryRow) -> list[EntryRow]:
    key = chosen.cache_key
    if key is None:
        return []
    same = [row for row in rows if row.cache_key == key and row.entry != chosen.entry and row.cache != LOCK]
    return sorted(same, key=_rank)


def _called(rows: list[EntryRow], name: str) -> list[EntryRow]:
    if not name:
        raise NotFoundError("an empty key names nothing")
    # A lock has the key of the file that it guards: it is meant only if no other file matches.
    things = [row for row in rows if row.cache != LOCK]
    locks = [row for row in rows if row.cache == LOCK]
    for of_kind, names_of in ((things, _keys), (things, _names), (locks, _keys), (locks, _names)):
        found = [row for row in of_kind if any(called.startswith(name) for called in names_of(row))]
        exact = [row for row in found if name in names_of(row)]
        if found:
            return _only(name, exact or found)
    raise NotFoundError(f"no key {name!r} in what was read")


def _only(name: str, found: list[EntryRow]) -> list[EntryRow]:
    keys = list(dict.fromkeys(row.cache_key or row.path for row in found))
    if len(keys) > 1:
        some = ", ".join(f"{key[:12]}…" for key in keys[:4])
        raise NotFoundError(f"{name!r} begins {len(keys)} keys: {some}; give more of it")
    return found


def _keys(row: EntryRow) -> tuple[str, ...]:
    return () if row.cache_key is None else (row.cache_key,)


def _names(row: EntryRow) -> tuple[str, ...]:
    """Other names of a file: its file name, its folder (Triton spells a key in three ways), a key stored in it."""
    folder, file = os.path.split(row.path)
    return (file, os.path.basename(folder), *row.fx_keys)


def _rank(row: EntryRow) -> tuple[bool, bool, int, int]:
    # Of the files of a Triton kernel, only the metadata names devices, and it identifies the kernel.
    ending = os.path.splitext(row.path)[1]
    place = _FIRST.index(ending) if ending in _FIRST else len(_FIRST) * bool(ending)
    return row.status != "ok", not row.device_types, place, -(row.modified_time or 0)
