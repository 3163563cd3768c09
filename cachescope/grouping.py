"""Values by their keys."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


def by_key(pairs: Iterable[tuple[Key, Value]]) -> defaultdict[Key, list[Value]]:
    """The values of each key, and no values of any other; both in the order given.

    >>> dict(by_key((len(word), word) for word in ("a", "hit", "or", "a", "miss")))
    {1: ['a', 'a'], 3: ['hit'], 2: ['or'], 4: ['miss']}
    """
    found: defaultdict[Key, list[Value]] = defaultdict(list)
    for key, value in pairs:
        found[key].append(value)
    return found
