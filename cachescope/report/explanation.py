"""One explanation: its sentences in order, and its changed fields as lines or as tables."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Final, TypeVar

from cachescope.analysis.differences import FieldChange
from cachescope.answers import explanation as answer
from cachescope.grouping import by_key
from cachescope.keys.key_fields import TORCH_VERSION
from cachescope.report.blocks import Block, Column, Diff, bounded, diff_lines, table
from cachescope.report.html import Reprs
from cachescope.report.layout import Line, rest, unwrapped
from cachescope.report.terminal import terminal_lines
from cachescope.wording import listed, plural

Member = TypeVar("Member")

_GROUPS: Final = 40
# A lookup that is asked for by name is shown in full, up to what anyone would read.
_ALL_FIELDS: Final = 200


def explanation_blocks(explained: answer.Explanation) -> Iterator[Block]:
    """One lookup, with every changed field and the whole diff of its graph."""
    yield from told_lines(explained)
    source = f"scope.explain({explained.lookup}).frame"
    yield from change_blocks(explained.changes, source, most=_ALL_FIELDS)
    if explained.same_cause:
        others = listed(explained.same_cause, 4, "; ", explained.more_of_same_cause)
        yield Line(f"same cause: {others}")
    yield from to_do_lines(explained)


def setting_lines(settings: Mapping[str, Sequence[str]]) -> tuple[tuple[str, str], ...]:
    """What to do where, and the line to copy."""
    return tuple((f"do, {where}:", "; ".join(lines)) for where, lines in settings.items())


def to_do_lines(explained: answer.Explanation) -> Iterator[Line]:
    """How to give the fields the values of the baseline, and what else can be done."""
    yield from (Line(" ".join(told)) for told in setting_lines(explained.settings))
    if explained.advice:
        yield Line(explained.advice, style="dim")


class Explanation(Reprs, answer.Explanation):
    """An explanation with its reprs."""

    __slots__ = ()

    _blocks = explanation_blocks

    def __repr__(self) -> str:
        return unwrapped(terminal_lines(self._blocks()))


def told_lines(explained: answer.Explanation) -> Iterator[Line]:
    """Why one lookup missed, without its fields and the other misses of its cause, which have tables."""
    yield Line(explained.title, style="dim")
    yield Line(f"{explained.word}: {explained.reason}", style="bold")
    if explained.sizes is not None:
        yield Line(explained.sizes)
    known = explained.evidence.replace("_", " ")
    yield Line(f"evidence: {known} ({explained.evidence_text})", style="dim")
    if explained.baseline is not None:
        yield Line(f"compared with {explained.baseline}", style="dim")


def change_blocks(
    changes: Sequence[FieldChange],
    source: str,
    name: str = "Changed fields of the key",
    sides: tuple[str, str] = ("Before", "After"),
    most: int = 40,
    diffs: int = 3,
    most_lines: int = 400,
) -> Iterator[Block]:
    """The fields, how each changed, and both values if that does not show them; then the diffs of changed code. Nothing if no field differs."""
    columns = [
        Column("Field", "code", lambda alike: listed((one.field for one in alike), 3)),
        Column("Change", "text", lambda alike: alike[0].summary),
    ]
    if any(change.summary != f"{change.before} -> {change.after}" for change in changes):
        columns.append(Column(sides[0], "whole", lambda alike: _sides(alike[0])[0]))
        columns.append(Column(sides[1], "whole", lambda alike: _sides(alike[0])[1]))
    if changes:
        yield table(name, columns, _alike_changes(changes), "changed fields", source, most)
    for change in [change for change in changes if change.diff][:diffs]:
        yield Diff(f"Changed code of {change.field}", *diff_lines(change.diff, most_lines))


def folded_blocks(
    groups: Sequence[tuple[Sequence[FieldChange], Sequence[Member]]],
    title_of: Callable[[Sequence[Member]], str],
    source: str,
    sides: tuple[str, str],
) -> Iterator[Block]:
    """Differences that several lookups share, the most frequent first; an upgrade of torch is one, whatever follows from it."""
    told = [
        (next((one.summary for one in changes if one.field == TORCH_VERSION), ""), changes, members)
        for changes, members in groups
    ]
    others = [(changes, members) for upgrade, changes, members in told if not upgrade]
    for upgrade, alike in by_key((one[0], one[1:]) for one in told if one[0]).items():
        yield Line(title_of([member for _, members in alike for member in members]), style="bold")
        counts = sorted({len(changes) - 1 for changes, _ in alike})
        fields = plural(counts[-1], "other field")
        fields = fields if len(counts) == 1 else f"{counts[0]} to {fields}"
        yield Line(f"{upgrade}; with it each key differs in {fields}; --json and {source} have all", 3)
    for changes, members in others[:_GROUPS]:
        title = title_of(members)
        yield from change_blocks(changes, source, title, sides)
        if not changes:
            yield Line(f"{title}: the keys differ, and no recorded field does.")
    yield from rest(len(others) - _GROUPS, "difference", "the frame has all", 0)


def _alike_changes(changes: Sequence[FieldChange]) -> list[list[FieldChange]]:
    """Changes that look the same, such as the type of all inputs, in one row; each with code or a value of a process in its own row."""

    def likeness(change: FieldChange) -> Hashable:
        is_alone = change.kind == "opaque" or change.diff or change.process_values is not None
        return change.field if is_alone else (change.before, change.after, change.parts)

    return list(by_key((likeness(change), change) for change in changes).values())


def _sides(change: FieldChange) -> tuple[str | None, str | None]:
    """Before and after: the parts that differ, or the whole; stand-ins for opaque bytes."""
    if change.kind == "opaque":
        return None, bounded(change.after)
    if change.parts:
        before = ", ".join(f"{name} = {side}" for name, side, _ in change.parts)
        after = ", ".join(f"{name} = {side}" for name, _, side in change.parts)
        return bounded(before), bounded(after)
    return _value(change.before), _value(change.after)


def _value(text: str | None) -> str | None:
    return "(not there)" if text is None else bounded(text) or "(empty)"
