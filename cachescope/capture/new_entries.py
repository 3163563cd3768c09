"""Entries that appear in the cache directories while a command runs: evidence when no log reaches us.

Names are compared, never times. Entries of other users of the directories are included.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from cachescope.readers.directory.default_root import default_root, unnamed_root
from cachescope.terms import CACHES

Name = tuple[str, str]


@dataclass(frozen=True, slots=True)
class NewEntries:
    """Entries that appeared in one cache directory; of one that cannot be listed nothing is known."""

    root: str
    # One for each entry, sorted; of both caches.
    keys: tuple[str, ...]
    is_listed: bool = True


def entries_here() -> dict[str, set[Name] | None]:
    """The entries that exist now, by directory; None of one that cannot be listed."""
    # The one that the environment names, and torch's own, where a child stores that lost the environment.
    return {root: _names(root) for root in {default_root(), unnamed_root()}}


def new_entries(before: Mapping[str, set[Name] | None]) -> tuple[NewEntries, ...]:
    """The entries that were not among `entries_here` before, directory by directory."""
    return tuple(_new(root, names, _names(root)) for root, names in sorted(before.items()))


def _new(root: str, before: set[Name] | None, after: set[Name] | None) -> NewEntries:
    if before is None or after is None:
        return NewEntries(root, (), is_listed=False)
    return NewEntries(root, tuple(sorted(key for key, _ in after - before)))


def _names(root: str) -> set[Name] | None:
    """Key and file of every entry, ``aotautograd/<key>/<file>`` and ``fxgraph/<two letters>/<key>/<file>``; None if a folder cannot be listed."""
    names: set[Name] = set()
    try:
        for cache in CACHES:
            for folder, _, files in os.walk(os.path.join(root, cache), onerror=_unless_gone):
                # Temporary files begin with a dot.
                names.update((os.path.basename(folder), file) for file in files if not file.startswith("."))
    except OSError:
        return None
    return names


def _unless_gone(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error
