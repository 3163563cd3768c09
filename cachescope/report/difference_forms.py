"""A difference as lines for the terminal, and as an object for JSON."""

from __future__ import annotations

from typing import Final

from cachescope.answers.difference import Difference, Pair, SeenKey
from cachescope.json_types import JsonObject
from cachescope.report.as_json import change_object
from cachescope.report.explanation import change_lines
from cachescope.report.layout import Line
from cachescope.wording import and_more, harmless, listed, plural, short_key

_PAIRS_SHOWN: Final = 3
_NAMES_SHOWN: Final = 5


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
            lines.append(Line(and_more(len(pairs) - _PAIRS_SHOWN, "key"), 3, "dim"))
    if found.unknown:
        lines += [Line(), Line("differ, and their hash details were not recorded:", style="bold")]
        lines += [Line(_pair_text(pair), 3, "dim") for pair in found.unknown[:_PAIRS_SHOWN]]
    for title, rows in (("only before", found.only_before), ("only after", found.only_after)):
        if rows:
            lines += [Line(), Line(f"{title}: {listed(map(_name, rows), _NAMES_SHOWN)}")]
    return lines


def difference_object(found: Difference) -> JsonObject:
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


def _name(row: SeenKey) -> str:
    backward = " backward" if row.direction == "backward" else ""
    return f"{row.cache}{backward} {harmless(short_key(row.cache_key))}"


def _pair_text(pair: Pair) -> str:
    a, b = pair
    place = f", compile {harmless(b.compile_id)}" if b.compile_id is not None else ""
    place += f" of {harmless(b.function)}" if place and b.function is not None else ""
    return f"{_name(a)} -> {harmless(short_key(b.cache_key))}{place}"


def _row_object(row: SeenKey) -> JsonObject:
    return {
        "cache": row.cache,
        "direction": row.direction,
        "cache_key": row.cache_key,
        "compile_id": row.compile_id,
        "function": row.function,
        "lookup": row.lookup,
        "entry": row.entry,
    }


def _pair_object(pair: Pair) -> JsonObject:
    return {"before": _row_object(pair[0]), "after": _row_object(pair[1])}
