"""Two keys, runs or directories field by field: keys paired, equal differences folded together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

from cachescope.analysis.differences import FieldChange, field_changes
from cachescope.analysis.history.rows import LookupRow
from cachescope.analysis.verdicts.graph_alignment import GraphAligner
from cachescope.answers.read import Read

Pair = tuple[LookupRow, LookupRow]


@dataclass(frozen=True, slots=True)
class Difference:
    """What differs between two sides.

    Attributes
    ----------
    before, after : str
        What the sides are.
    equal : int
        Keys that both sides have.
    groups : tuple of (changes, pairs)
        Pairs of keys that differ in the same way, with the changes of the first of them.
    unknown : tuple of pairs
        Pairs whose details were not recorded for both.
    only_before, only_after : tuple of LookupRow
        Keys without a counterpart.
    """

    before: str
    after: str
    equal: int
    groups: tuple[tuple[tuple[FieldChange, ...], tuple[Pair, ...]], ...]
    unknown: tuple[Pair, ...]
    only_before: tuple[LookupRow, ...]
    only_after: tuple[LookupRow, ...]


def side_of_runs(read: Read, runs: Iterable[int], roots: Iterable[str]) -> list[LookupRow]:
    """The distinct keys of some runs and of the entries below some directories, in the order of time."""
    wanted, places = set(runs), tuple(roots)
    rows = [row for row in read.history.lookups if row.run in wanted]
    for entry in sorted(read.history.entries, key=lambda entry: entry.modified_time or 0):
        if entry.path.startswith(places) and entry.status == "ok":
            known: dict[str, Any] = {
                name: getattr(entry, name, None) for name in (f.name for f in fields(LookupRow))
            }
            # An entry is no lookup; a number of its own keeps it apart from them.
            known |= {"lookup": -1 - entry.entry, "run": -1, "order": 0, "outcome": "hit"}
            rows.append(LookupRow(**known))
    distinct: dict[tuple[str, str | None], LookupRow] = {}
    for row in rows:
        if row.cache_key is not None:
            distinct.setdefault((row.cache, row.cache_key), row)
    return list(distinct.values())


def difference(
    read: Read, before: Sequence[LookupRow], after: Sequence[LookupRow], names: tuple[str, str]
) -> Difference:
    """Pair the keys of two sides and say what differs in each pair.

    Keys are paired within one cache and direction: equal keys, then keys of an equal graph (of the same
    compile if there is one), then graphs that stand where another one stood, as `GraphAligner` has it.
    """
    old_keys = {(row.cache, row.cache_key) for row in before}
    new_keys = {(row.cache, row.cache_key) for row in after}
    old = [row for row in before if (row.cache, row.cache_key) not in new_keys]
    new = [row for row in after if (row.cache, row.cache_key) not in old_keys]
    # Two keys that were asked for by name are compared, whatever their graphs.
    by_name = len(before) == len(after) == len(old) == 1
    pairs = [(old[0], new[0])] if by_name else list(_pairs(read, old, new, before, after))
    paired = {row.lookup for pair in pairs for row in pair}
    groups: dict[object, tuple[tuple[FieldChange, ...], list[Pair]]] = {}
    unknown = []
    for a, b in pairs:
        if a.detail_set is None or b.detail_set is None:
            unknown.append((a, b))
            continue
        changes = tuple(field_changes(read.tables.hash_details, a.detail_set, b.detail_set))
        groups.setdefault(_fold_key(changes), (changes, []))[1].append((a, b))
    ordered = sorted(groups.values(), key=lambda group: -len(group[1]))
    return Difference(
        *names,
        equal=len(old_keys & new_keys),
        groups=tuple((changes, tuple(members)) for changes, members in ordered),
        unknown=tuple(unknown),
        only_before=tuple(row for row in old if row.lookup not in paired),
        only_after=tuple(row for row in new if row.lookup not in paired),
    )


def _pairs(
    read: Read,
    old: Sequence[LookupRow],
    new: Sequence[LookupRow],
    before: Sequence[LookupRow],
    after: Sequence[LookupRow],
) -> Iterator[Pair]:
    aligner = GraphAligner(read.tables.hash_details)
    for kind, rows in _by_kind(new).items():
        free = {row.lookup: row for row in _by_kind(old)[kind]}
        # Aligned with all keys of both sides first: the equal ones hold the others in place.
        partners = aligner.partners(_by_kind(before)[kind], _by_kind(after)[kind])
        alone = []
        for row in rows:
            found = _of_same_graph(row, free.values()) or partners.get(row.lookup)
            if found is not None and free.pop(found.lookup, None) is not None:
                yield found, row
            else:
                alone.append(row)
        partners = aligner.partners(list(free.values()), alone)
        yield from ((partners[row.lookup], row) for row in alone if row.lookup in partners)


def _of_same_graph(row: LookupRow, candidates: Iterable[LookupRow]) -> LookupRow | None:
    """A key of an equal graph, of the same compile if there is one; without details only the compile tells."""
    if row.gm is None:
        places = (a for a in candidates if a.compile_id == row.compile_id and row.compile_id is not None)
        return next(places, None)
    same = [a for a in candidates if a.gm == row.gm]
    return min(same, key=lambda a: a.compile_id != row.compile_id, default=None)


def _kind(row: LookupRow) -> tuple[str, str | None]:
    return row.cache, row.direction


def _by_kind(rows: Sequence[LookupRow]) -> dict[tuple[str, str | None], list[LookupRow]]:
    kinds: dict[tuple[str, str | None], list[LookupRow]] = defaultdict(list)
    for row in rows:
        kinds[_kind(row)].append(row)
    return kinds


def _fold_key(changes: tuple[FieldChange, ...]) -> object:
    # Graphs differ from one another anyway: that they all changed is one difference.
    return tuple((c.field, "" if c.field == "gm" else c.summary) for c in changes)
