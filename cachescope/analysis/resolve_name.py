"""Resolves what a user names: a key by its beginning, a lookup or an entry by its number, a file, a baseline."""

from __future__ import annotations

import operator
import os
from difflib import get_close_matches
from itertools import chain
from typing import TYPE_CHECKING, Final

from cachescope.analysis.verdicts.baselines import Choice
from cachescope.errors import NotFoundError
from cachescope.frames.directory_rows import EntryRow
from cachescope.terms import CACHES, LOCK, VLLM

if TYPE_CHECKING:
    from cachescope.readers.assemble import Tables

_MODES: Final = ("auto", "nearest")
# Python refuses to read numbers of several thousand digits.
_MOST_DIGITS: Final = 19
# Of the files under one key, readable ones come first. The rest is compiled code.
_FIRST: Final = (".py", ".cpp", ".cu", ".source", ".ttir", ".ttgir", ".llir", ".ptx", ".h", ".json")


def is_number(text: str) -> bool:
    """Whether a text is a number: of a lookup, a run or an entry."""
    return text.isdecimal() and len(text) < _MOST_DIGITS


def full_key(tables: Tables, start: str) -> str:
    """The full key of a lookup, or of an FX or AOTAutograd entry, from the beginning of it."""
    found = _keys_beginning(tables, start)
    if not found:
        raise NotFoundError(f"no key {start!r} in what was read")
    if len(found) > 1:
        raise NotFoundError(f"{start!r} begins {len(found)} keys: {', '.join(k[:12] for k in found[:4])}")
    return found[0]


def _keys_beginning(tables: Tables, start: str) -> list[str]:
    looked_up = (row.cache_key for row in tables.lookups.rows)
    stored = (row.cache_key for row in tables.entries.rows if row.cache in CACHES)
    known = dict.fromkeys(key for key in chain(looked_up, stored) if key is not None)
    return [key for key in known if key.startswith(start)] if start else []


def lookup_named(tables: Tables, which: int | str) -> int:
    """The number of a lookup, given that number or a key: the last miss of the key, else its last lookup."""
    lookups = tables.lookups.rows
    if isinstance(which, str) and not is_number(which):
        key = full_key(tables, which)
        same = [row for row in lookups if row.cache_key == key]
        if not same:
            raise NotFoundError(f"{which!r} is the key of an entry, and no lookup of it was recorded")
        missed = [row for row in same if row.outcome not in ("hit", "would_hit")]
        return (missed or same)[-1].lookup
    number = int(which) if isinstance(which, str) else operator.index(which)
    if not 0 <= number < len(lookups):
        raise NotFoundError(f"no lookup {number}; there are {len(lookups)}")
    return number


def detail_set_of(tables: Tables, cache_key: str | None, lookup: int | None) -> int:
    """The code of the hash details of a key or of a lookup."""
    if (cache_key is None) == (lookup is None):
        raise TypeError("hash_details() takes a cache_key or a lookup")
    if lookup is not None:
        row = tables.lookups.rows[lookup_named(tables, lookup)]
        if row.cache == VLLM:
            raise NotFoundError("a key of vLLM has no hash details: vllm_factors has what it was made of")
        sets = [row.detail_set]
    else:
        assert cache_key is not None
        key = full_key(tables, cache_key)
        sets = [row.detail_set for row in tables.lookups.rows if row.cache_key == key]
        sets += [row.detail_set for row in tables.entries.rows if row.cache_key == key]
    for detail_set in sets:
        if detail_set is not None:
            return detail_set
    raise NotFoundError("no source recorded the hash details of this key")


def baseline_choice(tables: Tables, baseline: str | int) -> Choice:
    """What misses are compared with, from ``auto``, ``nearest``, the number of a run, or a key."""
    if isinstance(baseline, str) and is_number(baseline):
        baseline = int(baseline)
    if isinstance(baseline, int):
        if not 0 <= baseline < len(tables.runs):
            raise NotFoundError(f"no run {baseline}; {_baselines(tables)}")
        return Choice("run", run=baseline)
    if baseline in _MODES:
        return Choice(baseline)
    if not _keys_beginning(tables, baseline):
        near = get_close_matches(baseline, _MODES)
        meant = f"near it: {near[0]}; " if near else ""
        raise NotFoundError(f"no baseline {baseline!r}; {meant}{_baselines(tables)}")
    return Choice("key", cache_key=full_key(tables, baseline))


def _baselines(tables: Tables) -> str:
    """Lists what a baseline may be."""
    last = len(tables.runs) - 1
    runs = {-1: "(none was read)", 0: "(0)"}.get(last, f"(0 to {last})")
    return (
        f"a baseline is {', '.join(_MODES)}, the number of a run {runs}, or a key or enough of its beginning"
    )


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
