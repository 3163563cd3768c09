"""What a user compares (a path, a key, a lookup or a run), and how the keys of two sides differ. Keys are paired, and equal differences are one."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from cachescope.analysis.differences import FieldChange, field_changes
from cachescope.analysis.resolve_name import is_number
from cachescope.analysis.verdicts.replaced_graphs import GraphAligner, SeenKey
from cachescope.answers.recording import Recording
from cachescope.errors import NotFoundError
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.recorded_rows import LookupRow, RunRow
from cachescope.grouping import by_key
from cachescope.readers.remote_cache.address import is_redis, without_password
from cachescope.rows import like
from cachescope.terms import VLLM

Pair = tuple[SeenKey, SeenKey]
Changes = tuple[FieldChange, ...]
One = TypeVar("One")


@dataclass(frozen=True, slots=True)
class Difference:
    """What differs between two sides."""

    equal: int  # keys that both sides have
    # Pairs of keys that differ in the same way, with the changes of the first of them.
    groups: tuple[tuple[Changes, tuple[Pair, ...]], ...]
    unknown: tuple[Pair, ...]  # pairs whose details were not recorded for both
    # Keys without a counterpart.
    only_before: tuple[SeenKey, ...]
    only_after: tuple[SeenKey, ...]


def side_of_runs(read: Recording, runs: Iterable[int], roots: Iterable[str]) -> list[SeenKey]:
    """The distinct keys of some runs and of the entries below some directories, in time order."""
    chosen, places, details = set(runs), tuple(roots), read.tables.hash_details
    looked_up = (row for row in read.history.lookups if row.run in chosen and row.cache_key is not None)
    found = [like(SeenKey, row) for row in looked_up]
    for entry in sorted(read.history.entries, key=lambda entry: entry.modified_time or 0):
        if entry.path.startswith(places) and entry.status == "ok":
            direction = None if entry.detail_set is None else details.direction(entry.detail_set)
            key = entry.cache, entry.cache_key or "", direction, entry.detail_set
            found.append(SeenKey(*key, entry=entry.entry))
    distinct: dict[tuple[str, str], SeenKey] = {}
    for seen in found:
        distinct.setdefault(seen.identity, seen)
    return list(distinct.values())


def difference(read: Recording, before: Sequence[SeenKey], after: Sequence[SeenKey]) -> Difference:
    """Pair the keys of two sides and say what differs in each pair.

    Keys are paired within one cache: equal keys, then a missed key with the one that its miss was judged by, which both
    sides may have. Of the others, within one direction, keys of an equal graph (of the same compile if there is one), then
    graphs in the place of another one, according to `GraphAligner`.
    """
    old_keys, new_keys = ({seen.identity for seen in side} for side in (before, after))
    old = [seen for seen in before if seen.identity not in new_keys]
    new = [seen for seen in after if seen.identity not in old_keys]
    # Two keys given by name are compared, whatever their graphs.
    by_name = len(before) == len(after) == len(old) == 1
    pairs = [(old[0], new[0])] if by_name else list(_judged_pairs(read, (old, new), (before, after)))
    judged = {seen.identity for pair in pairs for seen in pair}
    old_left, new_left = ([seen for seen in side if seen.identity not in judged] for side in (old, new))
    if not by_name:
        pairs += _pairs(read, old_left, new_left, before, after)
    paired = {seen.identity for pair in pairs for seen in pair}
    changed = [(key_changes(read, *pair), pair) for pair in pairs]
    return Difference(
        equal=len(old_keys & new_keys),
        groups=folded((changes, pair[1].function, pair) for changes, pair in changed if changes is not None),
        unknown=tuple(pair for changes, pair in changed if changes is None),
        only_before=tuple(seen for seen in old if seen.identity not in paired),
        only_after=tuple(seen for seen in new if seen.identity not in paired),
    )


def key_changes(read: Recording, before: SeenKey, after: SeenKey) -> tuple[FieldChange, ...] | None:
    """The fields that differ between two keys; None if the details of one were not recorded."""
    if before.cache == after.cache == VLLM:
        return read.vllm_changes_between(before.cache_key, after.cache_key)
    if before.detail_set is None or after.detail_set is None:
        return None
    sides = _process(read, before), _process(read, after)
    found = field_changes(read.tables.hash_details, before.detail_set, after.detail_set, sides)
    rows = (None if one.lookup is None else read.facts.lookups[one.lookup] for one in (before, after))
    return read.with_code_within(found, *rows)


def _process(read: Recording, seen: SeenKey) -> RunRow | None:
    """The process that looked up a key; None for a key that only an entry has."""
    return None if seen.lookup is None else read.facts.runs[read.facts.lookups[seen.lookup].run]


def _judged_pairs(
    read: Recording, alone: Sequence[Sequence[SeenKey]], sides: Sequence[Sequence[SeenKey]]
) -> Iterator[Pair]:
    """Missed keys that only one side has and whose baseline is on the other, each once. Either side may be the later one.

    A baseline that both sides have may serve several keys: an option may differ in one rank from the others, or from before. Those
    that the other side itself made come first, and one of the same process is none: a recompile has no counterpart in what it follows.
    """
    facts, found = read.facts, dict[tuple[bool, int], Pair]()
    for number, side in enumerate(alone):
        known = {seen.identity: seen for seen in sides[1 - number]}
        own_runs = {facts.lookups[seen.lookup].run for seen in sides[number] if seen.lookup is not None}
        for seen in side:
            miss = None if seen.lookup is None else facts.misses.get(seen.lookup)
            base = None if miss is None or not miss.changed else facts.baseline_of(miss)
            if miss is None or base is None:
                continue
            run = base.run if isinstance(base, LookupRow) else None
            if run == facts.lookups[miss.lookup].run:
                continue
            partner = known.get((base.cache, base.cache_key or ""))
            if partner is not None:
                found[run in own_runs, miss.lookup] = (partner, seen) if number else (seen, partner)
    once = {seen.identity for side in alone for seen in side}
    taken = set[tuple[str, str]]()
    for _, pair in sorted(found.items()):
        names = once.intersection(seen.identity for seen in pair)
        if not names & taken:
            taken |= names
            yield pair


def _pairs(
    read: Recording,
    old: Sequence[SeenKey],
    new: Sequence[SeenKey],
    before: Sequence[SeenKey],
    after: Sequence[SeenKey],
) -> Iterator[Pair]:
    aligner: GraphAligner[SeenKey] = GraphAligner(read.history.keys)
    for kind, seen_after in _by_kind(new).items():
        free = {seen.cache_key: seen for seen in _by_kind(old)[kind]}
        # All keys of both sides are aligned first: the equal ones hold the others in place.
        partners = _partners(aligner, _by_kind(before)[kind], _by_kind(after)[kind])
        alone = []
        for seen in seen_after:
            found = of_same_graph(read, seen, free.values()) or partners.get(seen.cache_key)
            if found is not None and free.pop(found.cache_key, None) is not None:
                yield found, seen
            else:
                alone.append(seen)
        partners = _partners(aligner, list(free.values()), alone)
        yield from ((partners[seen.cache_key], seen) for seen in alone if seen.cache_key in partners)


def _partners(
    aligner: GraphAligner[SeenKey], before: Sequence[SeenKey], after: Sequence[SeenKey]
) -> dict[str, SeenKey]:
    """For the key of each graph that replaced another one, the key that it replaced."""
    return {new.cache_key: old for old, new in aligner.partners(before, after)}


def of_same_graph(read: Recording, row: SeenKey, candidates: Iterable[SeenKey]) -> SeenKey | None:
    """A key of an equal graph, of the same compile if there is one; without details, only the compile decides."""
    graph = read.history.keys.graph
    if (own := graph(row.detail_set)) is None:
        places = (a for a in candidates if a.compile_id == row.compile_id and row.compile_id is not None)
        return next(places, None)
    same = [a for a in candidates if graph(a.detail_set) == own]
    return min(same, key=lambda a: a.compile_id != row.compile_id, default=None)


def _by_kind(rows: Sequence[SeenKey]) -> dict[tuple[str, str | None], list[SeenKey]]:
    return by_key(((row.cache, row.direction), row) for row in rows)


def folded(changed: Iterable[tuple[Changes, str | None, One]]) -> tuple[tuple[Changes, tuple[One, ...]], ...]:
    """Equal changes as one, the most frequent first. Each has its function."""
    groups: dict[Hashable, tuple[Changes, list[One]]] = {}
    for changes, function, one in changed:
        # The graphs of the two caches differ anyway: that all of a function changed counts as one difference.
        way = tuple(
            (change.field, function if change.field == "gm" else change.summary) for change in changes
        )
        groups.setdefault(way, (changes, []))[1].append(one)
    ordered = sorted(groups.values(), key=lambda group: -len(group[1]))
    return tuple((changes, tuple(same)) for changes, same in ordered)


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a comparison."""

    name: str
    keys: list[SeenKey]  # its distinct keys
    runs: list[int]
    snapshots: list[int]  # the numbers of captured contexts
    entries: list[EntryRow]  # the entries in it
    path: str = ""  # where it was read from; empty for a side that was named within a scope


def side_below(read: Recording, path: str) -> Side:
    """What was read from a path, from what a pattern matches, or from a remote cache."""
    path = without_password(path)
    folders, is_below = _below(path)
    runs = runs_below(read, path)
    snapshots = [row.context for row in read.all_contexts.rows if row.run is None and is_below(row.source)]
    entries = [row for row in read.tables.entries.rows if is_below(row.path)]
    return Side(path, side_of_runs(read, runs, folders), runs, snapshots, entries, path)


def runs_below(read: Recording, path: str) -> list[int]:
    """The runs recorded in the files of a path or pattern."""
    _, is_below = _below(path)
    return [row.run for row in read.tables.runs.rows if any(map(is_below, row.sources))]


def _below(path: str) -> tuple[tuple[str, ...], Callable[[str], bool]]:
    """The folders that a path or pattern names, and a function that says whether a file is among what it names or lies below."""
    given = [path] if is_redis(path) or os.path.lexists(path) else glob.glob(path, recursive=True)
    folders = tuple(os.path.join(name, "") for name in given)
    return folders, lambda source: source in given or source.startswith(folders)


def side_named(read: Recording, name: str) -> Side:
    """A key, a lookup by its number, or ``run:N``."""
    kind, _, number = name.partition(":")
    if kind == "run" and is_number(number):
        run = read.facts.run(int(number)).run
        return Side(name, side_of_runs(read, [run], []), [run], [], [])
    return Side(name, [_one_key(read, side_of_runs(read, read.facts.runs, [""]), name)], [], [], [])


def _one_key(read: Recording, everything: Iterable[SeenKey], name: str) -> SeenKey:
    if is_number(name):
        lookup = read.facts.lookups.get(int(name))
        if lookup is None:
            raise NotFoundError(f"no lookup {name}; there are {len(read.facts.lookups)}")
        found = [row for row in everything if row.cache_key == lookup.cache_key]
    else:
        found = [row for row in everything if name and row.cache_key.startswith(name)]
    if not found:
        raise NotFoundError(f"no key {name!r} in what was read; A and B are paths only without further PATHs")
    if len(found) > 1:
        raise NotFoundError(f"{name!r} begins {len(found)} keys; give more of it")
    return found[0]
