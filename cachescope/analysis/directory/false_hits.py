"""Keys that seem to stand for more than one thing, as false hits would leave them, with the evidence.

Sharing is what a cache is for: equal keys in several ranks, on several devices of one model or in several
directories are no evidence. Differences under one key are. They give a warning, never a certainty.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from cachescope.analysis.contexts.outside_keys import (
    OF_EVERY_LATER_KEY,
    OUTSIDE_KEYS,
    Key,
    different_circumstances,
)
from cachescope.details import HashDetails
from cachescope.frames.checks import FalseHit
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.recorded_rows import LookupRow
from cachescope.grouping import by_key
from cachescope.terms import CACHES
from cachescope.wording import listed, shortened

if TYPE_CHECKING:
    from cachescope.analysis.directory.equal_code import SourceOf
    from cachescope.readers.assemble import Tables

# Fields that 2.13 added: older torch shares keys between processes that differ in them.
_LATER_FIELDS: Final = tuple(fact.field for fact in OUTSIDE_KEYS if fact.field is not None)
_FIELDS_NAMED: Final = 4
_key_of: Final[Callable[[LookupRow | EntryRow], Key]] = attrgetter("cache", "cache_key")


def false_hits(lookups: Iterable[LookupRow], tables: Tables, source_of: SourceOf) -> list[FalseHit]:
    """Keys that seem to stand for more than one thing, in what was read and in captured contexts.

    `source_of` returns the generated source of an entry, or None if there is none. It is called only for entries of one key and
    equal guards whose code keys differ.
    """
    looked_up, entries = [row for row in lookups if row.cache_key is not None], tables.entries.rows
    stored = [e for e in entries if e.status == "ok" and e.cache in CACHES and e.cache_key is not None]
    of_key = by_key((_key_of(row), row) for row in looked_up)
    cpu_keys = {_key_of(row) for row in stored if "cpu" in row.device_types}
    found = [
        *_different_entries(stored, source_of),
        *_different_details(looked_up, stored, tables.hash_details),
        *different_circumstances(of_key, tables.runs.rows, tables.contexts.rows, cpu_keys),
    ]
    for one in found:
        _count(one, of_key.get((one.cache, one.cache_key or ""), []))
    return [*found, *_missing_fields(looked_up, tables.hash_details)]


def _count(found: FalseHit, lookups: Sequence[LookupRow]) -> None:
    """Words for the lookups that it is about."""
    found.lookups = tuple(row.lookup for row in lookups)
    found.runs = tuple(sorted({row.run for row in lookups}))
    found.hits = sum(row.outcome == "hit" for row in lookups)


def _numbers(entries: Iterable[EntryRow]) -> tuple[int, ...]:
    return tuple(row.entry for row in entries)


def _different_entries(stored: Sequence[EntryRow], source_of: SourceOf) -> Iterator[FalseHit]:
    """Entries that torch would confuse: one key and equal guards."""
    for (key, _), rows in by_key(((_key_of(row), row.guards_expr), row) for row in stored).items():
        if (evidence := _different_code(rows, source_of)) is not None:
            yield FalseHit("different_code", *key, evidence, ("code_key",), _numbers(rows))
        graphs = {row.fx_keys for row in rows}
        if len(graphs) > 1:
            evidence = f"entries of one key and equal guards point to different FX graphs: {_sides(graphs)}"
            yield FalseHit("different_graphs", *key, evidence, ("fx_keys",), _numbers(rows))
        devices = {row.device_types for row in rows}
        if len(devices) > 1:
            evidence = f"entries of one key and equal guards run on different devices: {_sides(devices)}"
            yield FalseHit("different_devices", *key, evidence, ("device_types",), _numbers(rows))


def _sides(sides: Iterable[tuple[str, ...]]) -> str:
    texts = sorted(", ".join(shortened(name, 12) for name in side) or "none" for side in sides)
    return " and ".join(texts[:_FIELDS_NAMED]) + (" and more" if len(texts) > _FIELDS_NAMED else "")


def _different_code(rows: Sequence[EntryRow], source_of: SourceOf) -> str | None:
    of_code = {row.code_key: row for row in rows if row.code_key is not None}
    if len(of_code) < 2:
        return None
    from cachescope.analysis.directory.equal_code import first_difference, same_code_form

    sources = [source_of(row) for row in of_code.values()]
    known = list(dict.fromkeys(same_code_form(text) for text in sources if text is not None))
    if len(known) > 1:
        return f"entries of one key and equal guards hold different generated code: {first_difference(*known[:2])}"
    if None in sources:
        names = " and ".join(f"{code[:8]}…" for code in list(of_code)[:2])
        return (
            f"entries of one key and equal guards name different generated code ({names}), and it could not be "
            "read: it may differ only in comments or in a path"
        )
    return None


def _different_details(
    lookups: Sequence[LookupRow], stored: Sequence[EntryRow], details: HashDetails
) -> Iterator[FalseHit]:
    """Keys whose recorded fields differ, although torch hashes all of them into the key."""
    sets: dict[Key, dict[int, list[EntryRow]]] = defaultdict(dict)
    for row in lookups:
        if row.detail_set is not None:
            sets[_key_of(row)].setdefault(row.detail_set, [])
    for entry in stored:
        if entry.detail_set is not None:
            sets[_key_of(entry)].setdefault(entry.detail_set, []).append(entry)
    for key, of_set in sets.items():
        first, *others = of_set
        fields = list(dict.fromkeys(f for other in others for f in _differing_in_both(details, first, other)))
        if fields:
            evidence = f"one key was recorded with different hashes of {listed(fields, _FIELDS_NAMED)}"
            entries = _numbers(row for group in of_set.values() for row in group)
            yield FalseHit("different_details", *key, evidence, tuple(fields), entries)


def _differing_in_both(details: HashDetails, before: int, after: int) -> list[str]:
    # A field that one side lacks is no evidence: a cut log lacks fields too.
    return [
        field
        for field in details.changed_fields(before, after)
        if details.component_of(before, field) is not None and details.component_of(after, field) is not None
    ]


def _missing_fields(lookups: Sequence[LookupRow], details: HashDetails) -> Iterator[FalseHit]:
    """Fields that an older torch leaves out of its keys, if newer keys in the same scope differ in them."""
    for cache in CACHES:
        of_set = by_key(
            (row.detail_set, row) for row in lookups if row.cache == cache and row.detail_set is not None
        )
        older = [s for s in of_set if details.component_of(s, OF_EVERY_LATER_KEY) is None]
        shared = _shared_by_runs([row for detail_set in older for row in of_set[detail_set]])
        for field in _LATER_FIELDS if shared else ():
            values: dict[int, set[int]] = defaultdict(set)
            for detail_set, rows in of_set.items():
                if (code := details.hash_code(detail_set, field)) is not None:
                    values[code].update(row.run for row in rows)
            if len(values) > 1:
                found = _missing_field(cache, field, values, shared)
                _count(found, shared)
                yield found


def _missing_field(
    cache: str, field: str, values: Mapping[int, set[int]], shared: Sequence[LookupRow]
) -> FalseHit:
    runs = sorted({run for some in values.values() for run in some})
    keys = len({row.cache_key for row in shared})
    evidence = (
        f"{keys} {'key' if keys == 1 else 'keys'} of torch before 2.13, each looked up by several runs, lack "
        f"{field}, and runs {', '.join(map(str, runs[:8]))} of a newer torch differ there: processes that do "
        "would share them"
    )
    return FalseHit("missing_field", cache, None, evidence, (field,))


def _shared_by_runs(lookups: Sequence[LookupRow]) -> list[LookupRow]:
    runs = Counter(key for key, _ in {(row.cache_key, row.run) for row in lookups})
    return [row for row in lookups if runs[row.cache_key] > 1]
