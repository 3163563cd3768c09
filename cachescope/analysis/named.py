"""Resolves what a user names: a key by its beginning, a lookup by its number, a baseline."""

from __future__ import annotations

import operator
from difflib import get_close_matches
from itertools import chain
from typing import TYPE_CHECKING, Final

from cachescope.analysis.verdicts.baselines import Choice
from cachescope.errors import NotFoundError
from cachescope.terms import CACHES, VLLM

if TYPE_CHECKING:
    from cachescope.readers.assemble import Tables

_MODES: Final = ("auto", "nearest")
# Python refuses to read numbers of several thousand digits.
_MOST_DIGITS: Final = 19


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
