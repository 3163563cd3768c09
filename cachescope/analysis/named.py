"""Resolves what a user names: a key by its beginning, a lookup by its number, a baseline."""

from __future__ import annotations

import operator
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

import pandas as pd

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
    """The full key of a lookup, or of an FX or AOTAutograd entry, from the beginning of it.

    Raises
    ------
    NotFoundError
        If no key begins with it, or several do.
    """
    found = _keys_beginning(tables, start)
    if not found:
        raise NotFoundError(f"no key {start!r} in what was read")
    if len(found) > 1:
        raise NotFoundError(f"{start!r} begins {len(found)} keys: {', '.join(k[:12] for k in found[:4])}")
    return found[0]


def _keys_beginning(tables: Tables, start: str) -> list[str]:
    entries = tables.entries
    graphs = entries.loc[entries["cache"].isin(CACHES), "cache_key"]
    known = pd.concat([tables.lookups["cache_key"], graphs]).dropna().unique()
    return [str(key) for key in known if key.startswith(start)] if start else []


def lookup_named(tables: Tables, which: int | str) -> int:
    """The number of a lookup, given that number or a key: the last miss of the key, else its last lookup.

    Raises
    ------
    NotFoundError
        If there is no such lookup or key.
    TypeError
        If it is neither text nor a whole number.
    """
    lookups = tables.lookups
    if isinstance(which, str) and not is_number(which):
        same = lookups[lookups["cache_key"] == full_key(tables, which)]
        if same.empty:
            raise NotFoundError(f"{which!r} is the key of an entry, and no lookup of it was recorded")
        missed = same[~same["outcome"].isin(("hit", "would_hit"))]
        return int((same if missed.empty else missed)["lookup"].iloc[-1])
    number = int(which) if isinstance(which, str) else operator.index(which)
    if number not in lookups["lookup"].tolist():
        raise NotFoundError(f"no lookup {number}; there are {len(lookups)}")
    return number


def detail_set_of(tables: Tables, cache_key: str | None, lookup: int | None) -> int:
    """The code of the hash details of a key or of a lookup.

    Raises
    ------
    NotFoundError
        If there is no such key or lookup, or no source recorded its details.
    """
    if (cache_key is None) == (lookup is None):
        raise TypeError("hash_details() takes a cache_key or a lookup")
    if lookup is not None:
        row = lookup_named(tables, lookup)
        if tables.lookups["cache"].iloc[row] == VLLM:
            raise NotFoundError("a key of vLLM has no hash details: vllm_factors has what it was made of")
        rows = tables.lookups.iloc[[row]]
    else:
        assert cache_key is not None
        key = full_key(tables, cache_key)
        names = ["cache_key", "detail_set"]
        both = pd.concat([tables.lookups[names], tables.entries[names]])
        rows = both[both["cache_key"] == key]
    sets = rows["detail_set"].dropna()
    if sets.empty:
        raise NotFoundError("no source recorded the hash details of this key")
    return int(sets.iloc[0])


def baseline_choice(tables: Tables, baseline: str | int) -> Choice:
    """What misses are compared with, from ``auto``, ``nearest``, the number of a run, or a key.

    Raises
    ------
    NotFoundError
        If there is no such run or key.
    """
    if isinstance(baseline, str) and is_number(baseline):
        baseline = int(baseline)
    if isinstance(baseline, int):
        if baseline not in tables.runs["run"].tolist():
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
