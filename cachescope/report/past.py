"""Past misses as lines: which fields made each further entry of a graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from cachescope.answers.past import PastMisses
from cachescope.frames.directory_rows import PastMiss
from cachescope.report.layout import Line
from cachescope.verdict_kinds import KINDS
from cachescope.wording import SHORT_KEY, and_more, duration, harmless, plural

_GROUPS_SHOWN: Final = 10
_KEYS_SHOWN: Final = 2


def past_lines(past: Sequence[PastMisses]) -> list[Line]:
    """Each reason, the costliest first; no line if there is none."""
    if not past:
        return []
    what = plural(sum(len(group.rows) for group in past), "entry was", "entries were")
    lines = [Line(f"{what} made although the graph had been stored before:", style="bold")]
    for number, group in enumerate(past[:_GROUPS_SHOWN], 1):
        lines += [Line(), *_group_lines(number, group)]
    if len(past) > _GROUPS_SHOWN:
        lines.append(Line(and_more(len(past) - _GROUPS_SHOWN, "reason", "see scope.past_misses")))
    return lines


def _group_lines(number: int, group: PastMisses) -> Iterator[Line]:
    rows, changes = group.rows, group.changes
    if not changes:
        kind = KINDS[rows[0].verdict, ""]
        title = (group.is_elsewhere and kind.in_other_directory) or kind.in_directory
    elif len(changes) == 1:
        title = f"{changes[0].field}   {changes[0].summary}"
    else:
        title = f"{len(changes)} fields changed"
    right = f"{plural(len(rows), 'miss', 'misses'):>8}  {duration(group.time_lost_ns or None):>6}"
    yield Line(f"{number}  {harmless(title)}", style="bold", right=right)
    if len(changes) > 1:
        for change in changes:
            yield Line(f"{harmless(change.field)}   {harmless(change.summary)}", 3)
    for row, (key, before) in list(zip(rows, group.keys, strict=True))[:_KEYS_SHOWN]:
        direction = f" {row.direction}" if row.direction == "backward" else ""
        yield Line(f"fxgraph{direction} {key[:SHORT_KEY]}… beside {before[:SHORT_KEY]}…", 3)
    if len(rows) > _KEYS_SHOWN:
        yield Line(and_more(len(rows) - _KEYS_SHOWN), 3)
    if not all(row.is_order_known for row in rows):
        yield Line("which was made first is not known: their modification times do not show it", 3, "dim")
    if changes:
        yield from _same_code(rows)


def _same_code(rows: Sequence[PastMiss]) -> Iterator[Line]:
    same = [row for row in rows if row.same_code is True]
    if not same:
        return
    of_all = "" if len(same) == len(rows) else f" for {len(same)} of {len(rows)}"
    found = {row.same_binaries for row in same}
    if False in found:
        rest = "but kernels compiled from it differ: what changed does matter"
    elif found == {True}:
        rest = "and so are its compiled kernels: what changed was not needed for this graph"
    else:
        rest = (
            "what changed was not needed for this graph, as far as its source shows (not all compiled kernels could be "
            "compared)"
        )
    yield Line(f"The generated source is the same{of_all}, {rest}.", 3)
