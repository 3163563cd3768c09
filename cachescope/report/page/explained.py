"""One cause explained: its costliest miss in full, its other forms, and where it occurred."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from cachescope.answers.causes import Struck, ways
from cachescope.answers.explanation import Explanation
from cachescope.answers.names import lookups_of_cause
from cachescope.answers.read import Read
from cachescope.figures.key_strip import key_difference
from cachescope.report.explanation import sentences
from cachescope.report.page.cuts import bounded, diff_lines
from cachescope.report.page.parts import Cell, Diff, Drawing, Group, Head, Items, Part, Text
from cachescope.report.page.tables import table
from cachescope.report.terminal import place_text
from cachescope.verdict_kinds import VERDICTS
from cachescope.wording import duration, plural

if TYPE_CHECKING:
    from cachescope.analysis.differences import FieldChange

_WAYS: Final = 3
_FIELDS: Final = 20
_DIFFS: Final = 2
_CHANGES: Final = (Head("Field", "code"), Head("Before", "long"), Head("After", "long"))
_NOT_THERE: Final = "(not there)"
_EMPTY: Final = "(empty)"


def anchor_of(number: int) -> str:
    """Where a cause is explained."""
    return f"cause-{number}"


def cause_group(scope: Read, number: int, struck: Struck) -> Group:
    """The explanation of one cause."""
    cause = struck.row
    lost = "" if cause.time_lost_ns is None else f", {duration(cause.time_lost_ns)} lost"
    told = f"{cause.verdict}: {VERDICTS[cause.verdict]}. {lookups_of_cause(cause, cause.misses)}{lost}."
    parts: list[Part] = [Text(told, "faint")]
    found = ways(scope, cause.cause, _WAYS)
    for place, explained in enumerate(found):
        parts += _explained(scope, explained, first=place == 0)
    if struck.advice:
        parts.append(Text(f"What to do: {struck.advice}"))
    parts += _places(struck)
    return Group(anchor_of(number), f"{number}. {cause.summary}{_one_change(found)}", tuple(parts))


def _one_change(found: Sequence[Explanation]) -> str:
    """The change from one value to another, if there is only one."""
    changes = found[0].changes if len(found) == 1 else ()
    return f": {changes[0].summary}" if len(changes) == 1 else ""


def _explained(scope: Read, explained: Explanation, *, first: bool) -> list[Part]:
    said = {sentence.kind: sentence.text for sentence in sentences(explained)}
    baseline = f"; {said['baseline']}" if "baseline" in said else ""
    opening = "" if first else "In another way: "
    parts: list[Part] = [
        Text(f"{opening}{explained.reason}", "strong"),
        Text(f"{said['evidence']}.", "faint"),
        Text(f"{said['title']}{baseline}.", "faint"),
    ]
    if explained.sizes is not None:
        parts.insert(1, Text(f"{explained.sizes}."))
    changes = explained.changes
    # A key of vLLM is no list of hash details.
    if first and changes and scope.facts.lookups[explained.lookup].detail_set is not None:
        parts.append(_strip(scope, explained))
    if changes:
        source = f"scope.explain({explained.lookup}).frame"
        rows = [_change_row(change) for change in changes]
        name = "Changed fields of the key, before and after"
        parts.append(table(name, _CHANGES, rows, "changed fields", source, most=_FIELDS))
    # The table has both values in full, where the other forms say in one line what they are.
    recognised = [(one.field, one.process_values.words) for one in changes if one.process_values is not None]
    if recognised:
        parts.append(Items(tuple(f"{field} {words}" for field, words in recognised[:_FIELDS])))
    for change in [change for change in changes if change.diff][:_DIFFS]:
        lines, more = diff_lines(change.diff)
        parts.append(Diff(f"Changed code of {change.field}", lines, more))
    return parts


def _strip(scope: Read, explained: Explanation) -> Drawing:
    fields = scope.hash_details(lookup=explained.lookup)
    # The hover text of a cell is a line: the values are in the table.
    fields = fields.assign(value_text=fields["value_text"].str.slice(0, 200))
    frame = replace(explained, changes=explained.changes).frame.drop(columns=["before", "after"])
    return Drawing("All fields of the key, the changed ones numbered", key_difference, (frame, fields))


def _change_row(change: FieldChange) -> tuple[Cell, ...]:
    """Before and after: the parts that differ, or the whole."""
    if change.kind == "opaque":
        return change.field, change.summary, bounded(change.after)
    if change.parts:
        before, after = (
            ", ".join(f"{name} = {side}" for name, side in sides)
            for sides in (
                [(name, before) for name, before, _ in change.parts],
                [(name, after) for name, _, after in change.parts],
            )
        )
        return change.field, bounded(before), bounded(after)
    return change.field, _value(change.before), _value(change.after)


def _value(text: str | None) -> str | None:
    return _NOT_THERE if text is None else bounded(text) or _EMPTY


def _places(struck: Struck) -> list[Part]:
    more = struck.roots - len(struck.places)
    rest = (f"and {plural(more, 'more lookup')}, in the table of misses below",) if more else ()
    return [Text("Where it struck:"), Items((*map(place_text, struck.places), *rest))]
