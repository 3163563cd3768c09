"""Two keys, runs or directories field by field: keys paired, equal differences folded together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final

from cachescope.analysis.align import GraphAligner
from cachescope.analysis.differences import FieldChange, field_changes
from cachescope.analysis.history import LookupRow, entry_rows, lookup_rows
from cachescope.report.as_json import change_object
from cachescope.report.terminal import Line, change_lines
from cachescope.report.text import SHORT_KEY, harmless, plural

if TYPE_CHECKING:
    from cachescope.scope import Scope

_PAIRS_SHOWN: Final = 3
_NAMES_SHOWN: Final = 5

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


def side_of_runs(scope: Scope, runs: Iterable[int], roots: Iterable[str]) -> list[LookupRow]:
    """The distinct keys of some runs and of the entries below some directories, in the order of time."""
    details = scope._tables.hash_details
    wanted, places = set(runs), tuple(roots)
    rows = [row for row in lookup_rows(scope.lookups, details) if row.run in wanted]
    for entry in entry_rows(scope.entries, details):
        if entry.path.startswith(places) and entry.status == "ok":
            known = {name: getattr(entry, name, None) for name in (f.name for f in fields(LookupRow))}
            # An entry is no lookup; a number of its own keeps it apart from them.
            known |= {"lookup": -1 - entry.entry, "run": -1, "order": 0, "outcome": "hit"}
            rows.append(LookupRow(**known))
    distinct: dict[tuple[str, str | None], LookupRow] = {}
    for row in rows:
        if row.cache_key is not None:
            distinct.setdefault((row.cache, row.cache_key), row)
    return list(distinct.values())


def difference(
    scope: Scope, before: Sequence[LookupRow], after: Sequence[LookupRow], names: tuple[str, str]
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
    pairs = [(old[0], new[0])] if by_name else list(_pairs(scope, old, new, before, after))
    paired = {row.lookup for pair in pairs for row in pair}
    groups: dict[object, tuple[tuple[FieldChange, ...], list[Pair]]] = {}
    unknown = []
    for a, b in pairs:
        if a.detail_set is None or b.detail_set is None:
            unknown.append((a, b))
            continue
        changes = tuple(field_changes(scope._tables.hash_details, a.detail_set, b.detail_set))
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
    scope: Scope,
    old: Sequence[LookupRow],
    new: Sequence[LookupRow],
    before: Sequence[LookupRow],
    after: Sequence[LookupRow],
) -> Iterator[Pair]:
    aligner = GraphAligner(scope._tables.hash_details)
    free = {row.lookup: row for row in old}
    for kind, rows in _by_kind(new).items():
        # Aligned with all keys of both sides: the equal ones hold the others in place.
        partners = aligner.partners(_by_kind(before)[kind], _by_kind(after)[kind])
        for row in rows:
            same = [a for a in free.values() if _kind(a) == kind and a.gm is not None and a.gm == row.gm]
            same.sort(key=lambda a: a.compile_id != row.compile_id)
            found = same[0] if same else partners.get(row.lookup)
            if found is None and row.gm is None:
                # Without details only the place can tell.
                places = (a for a in free.values() if _kind(a) == kind and a.compile_id == row.compile_id)
                found = next((a for a in places if row.compile_id is not None), None)
            if found is not None and found.lookup in free:
                del free[found.lookup]
                yield found, row


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


def difference_lines(found: Difference) -> list[Line]:
    """The difference for the terminal, the most frequent first."""
    differing = sum(len(pairs) for _, pairs in found.groups)
    counts = [f"{plural(found.equal, 'key')} equal", f"{differing + len(found.unknown)} differ"]
    counts += [f"{len(found.only_before)} only before", f"{len(found.only_after)} only after"]
    lines = [Line(", ".join(counts), style="bold")]
    lines += [Line(f"before: {harmless(found.before)}", 3), Line(f"after:  {harmless(found.after)}", 3)]
    for number, (changes, pairs) in enumerate(found.groups, 1):
        shown = list(change_lines(changes, 3, fields=40, diff_lines=40))
        title = plural(len(changes), "field")
        if not changes:
            title = "no recorded field differs: the pickled whole differs where the list cannot show it"
        elif len(changes) == 1:
            title = shown.pop(0).text
        lines += [Line(), Line(f"{number}  {title}", style="bold", right=plural(len(pairs), "key")), *shown]
        lines += [Line(_pair_text(pair), 3, "dim") for pair in pairs[:_PAIRS_SHOWN]]
        if len(pairs) > _PAIRS_SHOWN:
            lines.append(Line(f"and {plural(len(pairs) - _PAIRS_SHOWN, 'more key')}", 3, "dim"))
    if found.unknown:
        lines += [Line(), Line("differ, and their hash details were not recorded:", style="bold")]
        lines += [Line(_pair_text(pair), 3, "dim") for pair in found.unknown[:_PAIRS_SHOWN]]
    for title, rows in (("only before", found.only_before), ("only after", found.only_after)):
        if rows:
            names = ", ".join(_name(row) for row in rows[:_NAMES_SHOWN])
            more = f" and {len(rows) - _NAMES_SHOWN} more" if len(rows) > _NAMES_SHOWN else ""
            lines += [Line(), Line(f"{title}: {names}{more}")]
    return lines


def difference_object(found: Difference) -> dict[str, Any]:
    """The difference for ``--json``."""
    return {
        "before": found.before,
        "after": found.after,
        "equal": found.equal,
        "differences": [
            {
                "fields": [change.field for change in changes],
                "changes": [
                    {**change_object(change), "before": change.before, "after": change.after}
                    for change in changes
                ],
                "keys": [_pair_object(pair) for pair in pairs],
            }
            for changes, pairs in found.groups
        ],
        "not_recorded": [_pair_object(pair) for pair in found.unknown],
        "only_before": [_row_object(row) for row in found.only_before],
        "only_after": [_row_object(row) for row in found.only_after],
    }


def _name(row: LookupRow) -> str:
    backward = " backward" if row.direction == "backward" else ""
    return f"{row.cache}{backward} {harmless((row.cache_key or '(no key)')[:SHORT_KEY])}…"


def _pair_text(pair: Pair) -> str:
    a, b = pair
    place = f", compile {harmless(b.compile_id)}" if b.compile_id is not None else ""
    return f"{_name(a)} -> {harmless((b.cache_key or '(no key)')[:SHORT_KEY])}…{place}"


def _row_object(row: LookupRow) -> dict[str, Any]:
    return {
        "cache": row.cache,
        "direction": row.direction,
        "cache_key": row.cache_key,
        "compile_id": row.compile_id,
        "lookup": row.lookup if row.lookup >= 0 else None,
        "entry": -1 - row.lookup if row.lookup < 0 else None,
    }


def _pair_object(pair: Pair) -> dict[str, Any]:
    return {"before": _row_object(pair[0]), "after": _row_object(pair[1])}
