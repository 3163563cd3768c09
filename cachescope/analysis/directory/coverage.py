"""Which lookups of a run, and which entries of its cache directory, mega-caches cover.

A bundle contains what one process had compiled when it was saved, and nothing later.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from cachescope.analysis.history.history import is_miss
from cachescope.frames.compared import CoverageRow
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.recorded_rows import LookupRow
from cachescope.grouping import by_key
from cachescope.readers.directory.bundles import Held
from cachescope.terms import AOTAUTOGRAD, AUTOTUNE, BEST_CONFIG, CACHES, FXGRAPH, PGO, PRECOMPILE

_NOT_STORED: Final = ("bypass", "disabled", "would_bypass")
_FILES: Final = (BEST_CONFIG, PGO, PRECOMPILE)
_NOT_IN_IT: Final = "it is not in the bundle"
_LOST: Final = "it is in the bundle, but of several saves torch loads only the last: save once, at the end"
_LOST_GUARDS: Final = (
    "torch loads its key from the bundle only with other guards: of several saves it loads the last"
)

_Answer = tuple[str, str]


def coverage_rows(
    bundles: Sequence[Held],
    lookups: Iterable[LookupRow],
    entries: Iterable[EntryRow],
    digest: Callable[[str], str | None],
) -> Iterator[CoverageRow]:
    """One row for each key of the lookups, and for each entry of a kind that a process looks up.

    Generated code and kernels are left out, since torch writes them again from the graphs. `digest` returns the sha256 of a file.
    """
    lookups = [row for row in lookups if row.cache in CACHES]
    entries = [row for row in entries if row.status == "ok"]
    coverage = _Coverage(bundles, lookups, entries)
    folded = by_key(((row.cache, row.cache_key, *coverage.of_lookup(row)), row.lookup) for row in lookups)
    for (cache, key, held, reason), numbers in folded.items():
        yield CoverageRow(cache, key, held, reason, len(numbers), numbers[0])
    for entry in entries:
        if entry.cache in (*CACHES, *_FILES, AUTOTUNE):
            answer = coverage.of_entry(entry, digest)
            yield CoverageRow(entry.cache, entry.cache_key, *answer, entry=entry.entry)


class _Coverage:
    def __init__(
        self, bundles: Sequence[Held], lookups: Sequence[LookupRow], entries: Sequence[EntryRow]
    ) -> None:
        loaded = [bundle for bundle in bundles if bundle.refused is None]
        self._refused = None if loaded else next((bundle.refused for bundle in bundles), None)
        held = (inner for bundle in loaded for inner in bundle.entries)
        self._inside = by_key(((inner.cache, inner.cache_key), inner) for inner in held)
        self._lost = frozenset().union(*(bundle.lost for bundle in loaded))
        self._files = {key: digest for bundle in loaded for key, digest in bundle.files.items()}
        self._stored = by_key(((entry.cache, entry.cache_key), entry.guards_expr) for entry in entries)
        self._made = Counter((row.cache, row.cache_key) for row in lookups if is_miss(row))

    def of_lookup(self, row: LookupRow) -> _Answer:
        """Whether a process that loaded the bundles would find what this lookup asks for."""
        found = self._inside.get((row.cache, row.cache_key), [])
        if not found and row.outcome in _NOT_STORED:
            return "never", "torch stores no entry for it: it was bypassed or switched off"
        if row.cache_key is None:
            return "unknown", "its key was not recorded"
        return self._unusable(row.cache, row.cache_key, found) or self._by_guards(
            row, {one.guards_expr for one in found if _is_ok(one)}
        )

    def _unusable(self, cache: str, key: str | None, found: Sequence[EntryRow]) -> _Answer | None:
        """Why none of these can be used; None if it depends on guards."""
        if self._refused is not None:
            return "no", f"torch loads nothing of the bundle: {self._refused}"
        if not found:
            return self._missing(cache, key)
        whole = [one for one in found if _is_ok(one)]
        if not whole:
            unread = next((one for one in found if one.is_loadable is None), None)
            shown = unread or found[0]
            return "unknown" if unread else "no", f"its entry is {shown.status}: {shown.damage}"
        if whole[0].cache == AOTAUTOGRAD and not any(map(self._has_graphs, whole)):
            return "no", "its entry points to FX graphs that are not in the bundle"
        return None

    def _missing(self, cache: str, key: str | None) -> _Answer:
        return "no", _LOST if (cache, key) in self._lost else _NOT_IN_IT

    def _has_graphs(self, entry: EntryRow) -> bool:
        return all(any(map(_is_ok, self._inside.get((FXGRAPH, key), ()))) for key in entry.fx_keys)

    def _by_guards(self, row: LookupRow, guards: set[str | None]) -> _Answer:
        if any(not one for one in guards):
            return "yes", "its key is in the bundle"
        if row.outcome == "hit" and row.guards_expr in guards:
            return "yes", "its key is in the bundle, with the guards of the entry that it found"
        if row.outcome == "guard_miss" and guards == {row.guards_expr}:
            return "no", "its key is in the bundle only with guards that did not hold for it"
        stored = self._stored.get((row.cache, row.cache_key), [])
        if len(stored) >= max(self._made[row.cache, row.cache_key], 1) and guards.issuperset(stored):
            return "yes", "every entry of the cache directory under its key is in the bundle"
        return "unknown", "its key is in the bundle with guards on sizes; which sizes it had is not recorded"

    def of_entry(self, row: EntryRow, digest: Callable[[str], str | None]) -> _Answer:
        """Whether an entry of a cache directory is in the bundles."""
        if row.cache == AUTOTUNE:
            return "never", "torch puts no measurements of max-autotune into a bundle"
        if row.cache in _FILES:
            return self._of_file(row, digest)
        found = self._inside.get((row.cache, row.cache_key), [])
        if (unusable := self._unusable(row.cache, row.cache_key, found)) is not None:
            return unusable
        if row.guards_expr in {one.guards_expr for one in found if _is_ok(one)}:
            return "yes", "it is in the bundle"
        if (row.cache, row.cache_key or "") in self._lost:
            return "no", _LOST_GUARDS
        return "no", "its key is in the bundle only with other guards"

    def _of_file(self, row: EntryRow, digest: Callable[[str], str | None]) -> _Answer:
        if self._refused is not None:
            return "no", f"torch loads nothing of the bundle: {self._refused}"
        name = "/".join(row.path.split(os.sep)[-2:]) if row.cache == BEST_CONFIG else row.cache_key or ""
        inside = self._files.get((row.cache, name))
        if inside is None:
            return self._missing(row.cache, name)
        own = digest(row.path)
        if own is None:
            return "unknown", "its key is in the bundle; the file could not be read to compare them"
        if own != inside:
            return "no", "the bundle holds another state of it"
        return "yes", "it is in the bundle"


def _is_ok(entry: EntryRow) -> bool:
    return entry.status == "ok"
