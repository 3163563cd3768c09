"""Misses read from a cache directory without a log, as lines: which fields made each further entry of a graph."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from cachescope.analysis.differences import FieldChange, field_changes
from cachescope.answers.facts import Row
from cachescope.answers.read import Read
from cachescope.columns import records
from cachescope.report.layout import Line
from cachescope.wording import SHORT_KEY, duration, harmless, plural

_GROUPS_SHOWN: Final = 10
_NAMES: Final = {
    "no_detail_differs": "the keys differ, and no recorded field does",
    "guard_failed": "other guards under one key",
    "entry_unavailable": "one key, equal guards: raced for, or made again",
}


def past_lines(scope: Read) -> list[Line]:
    """The past misses of the directories that were read, folded by what changed; none where there are none."""
    groups: dict[tuple[str, tuple[str, ...]], list[Row]] = {}
    for row in records(scope.past_misses):
        groups.setdefault((row["verdict"], tuple(sorted(row["changed"]))), []).append(row)
    if not groups:
        return []
    ordered = sorted(groups.values(), key=lambda rows: (-_lost(rows), -len(rows)))
    count = sum(map(len, ordered))
    what = plural(count, "entry was", "entries were")
    lines = [Line(f"{what} made although the graph had been stored before:", style="bold")]
    for number, rows in enumerate(ordered[:_GROUPS_SHOWN], 1):
        lines += [Line(), *_group_lines(scope, number, rows)]
    if len(ordered) > _GROUPS_SHOWN:
        lines.append(
            Line(f"… and {plural(len(ordered) - _GROUPS_SHOWN, 'more reason')}: see scope.past_misses")
        )
    return lines


def _lost(rows: list[Row]) -> int:
    return sum(row["time_taken_ns"] or 0 for row in rows)


def _group_lines(scope: Read, number: int, rows: list[Row]) -> Iterator[Line]:
    first = rows[0]
    changes = _changes(scope, first)
    if not changes:
        title = _NAMES[first["verdict"]]
    elif len(changes) == 1:
        title = f"{changes[0].field}   {changes[0].summary}"
    else:
        title = f"{len(changes)} fields changed"
    right = f"{plural(len(rows), 'miss', 'misses'):>8}  {duration(_lost(rows) or None):>6}"
    yield Line(f"{number}  {harmless(title)}", style="bold", right=right)
    if len(changes) > 1:
        for change in changes:
            yield Line(f"{harmless(change.field)}   {harmless(change.summary)}", 3)
    entries = scope.facts.entries
    pairs = [(row, entries[row["entry"]], entries[row["baseline_entry"]]) for row in rows]
    for row, entry, baseline in pairs[:2]:
        direction = f" {row['direction']}" if row["direction"] == "backward" else ""
        yield Line(
            f"fxgraph{direction} {entry['cache_key'][:SHORT_KEY]}… beside {baseline['cache_key'][:SHORT_KEY]}…",
            3,
        )
    if len(rows) > 2:
        yield Line(f"and {len(rows) - 2} more", 3)
    if not all(row["is_order_known"] for row in rows):
        yield Line("which was made first is not known: their times of modification do not tell", 3, "dim")
    if changes:
        yield from _same_code(rows)


def _same_code(rows: list[Row]) -> Iterator[Line]:
    same = [row for row in rows if row["same_code"] is True]
    if not same:
        return
    of_all = "" if len(same) == len(rows) else f" for {len(same)} of {len(rows)}"
    found = {row["same_binaries"] for row in same}
    if False in found:
        rest = "but kernels compiled from it differ: what changed does matter"
    elif found == {True}:
        rest = "and so are its compiled kernels: what changed was not needed for this graph"
    else:
        rest = (
            "what changed was not needed for this graph, as far as its source tells (compiled kernels could not all be "
            "compared)"
        )
    yield Line(f"The generated source is the same{of_all}, {rest}.", 3)


def _changes(scope: Read, row: Row) -> list[FieldChange]:
    if not row["changed"]:
        return []
    entries = scope.facts.entries
    before = entries[row["baseline_entry"]]["detail_set"]
    after = entries[row["entry"]]["detail_set"]
    return field_changes(scope.tables.hash_details, before, after)
