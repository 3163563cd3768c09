"""One explanation: its sentences in order, and its changed fields as lines or as tables."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from os.path import commonprefix
from typing import Final

from cachescope.analysis.differences import FieldChange
from cachescope.answers import explanation as answer
from cachescope.grouping import by_key
from cachescope.report.blocks import Block, Column, Diff, bounded, diff_lines, table
from cachescope.report.html import Reprs
from cachescope.report.layout import Line, rest, unwrapped
from cachescope.wording import harmless, listed

_FIELDS_SHOWN: Final = 8
_DIFF_LINES: Final = 10
# A lookup that is asked for by name is shown in full, within what anyone reads.
_ALL_FIELDS: Final = 200
_ALL_DIFF_LINES: Final = 400
_SAME_CAUSE_SHOWN: Final = 4
_FIELDS_NAMED: Final = 3


def explanation_lines(explained: answer.Explanation) -> list[Line]:
    """One lookup, with every changed field and the whole diff of its graph."""
    lines = [*told_lines(explained), *change_lines(explained.changes, 2, _ALL_FIELDS, _ALL_DIFF_LINES)]
    if explained.same_cause:
        others = listed(explained.same_cause, _SAME_CAUSE_SHOWN, "; ", explained.more_of_same_cause)
        lines.append(Line(f"same cause: {others}"))
    return lines + ([Line(explained.advice, style="dim")] if explained.advice else [])


class Explanation(Reprs, answer.Explanation):
    """An explanation with its reprs."""

    __slots__ = ()

    _lines = explanation_lines

    def __repr__(self) -> str:
        return unwrapped(self._lines())


def told_lines(explained: answer.Explanation) -> Iterator[Line]:
    """Why one lookup missed, where its fields and the others of its cause have tables."""
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
    most_lines: int = _ALL_DIFF_LINES,
) -> Iterator[Block]:
    """The fields with both values in full, and the differences of changed code; nothing where no field differs."""
    columns = (
        Column("Field", "code", lambda alike: listed((one.field for one in alike), _FIELDS_NAMED)),
        Column("Differs by", "text", _differs_by, is_optional=True),
        Column(sides[0], "long", lambda alike: _sides(alike[0])[0]),
        Column(sides[1], "long", lambda alike: _sides(alike[0])[1]),
    )
    if changes:
        yield table(name, columns, _alike_changes(changes), "changed fields", source, most)
    for change in [change for change in changes if change.diff][:diffs]:
        yield Diff(f"Changed code of {change.field}", *diff_lines(change.diff, most_lines))


def _alike_changes(changes: Sequence[FieldChange]) -> list[list[FieldChange]]:
    """Changes that look the same, as the type of all inputs, in one row; those with code or a value of a process each in its own."""

    def likeness(change: FieldChange) -> Hashable:
        is_alone = change.kind == "opaque" or change.diff or change.process_values is not None
        return change.field if is_alone else (change.before, change.after, change.parts)

    return list(by_key((likeness(change), change) for change in changes).values())


def _differs_by(alike: Sequence[FieldChange]) -> str | None:
    values = alike[0].process_values
    return None if values is None else values.words


def _sides(change: FieldChange) -> tuple[str | None, str | None]:
    """Before and after: the parts that differ, or the whole."""
    if change.kind == "opaque":
        return change.summary, bounded(change.after)
    if change.parts:
        before = ", ".join(f"{name} = {side}" for name, side, _ in change.parts)
        after = ", ".join(f"{name} = {side}" for name, _, side in change.parts)
        return bounded(before), bounded(after)
    return _value(change.before), _value(change.after)


def _value(text: str | None) -> str | None:
    return "(not there)" if text is None else bounded(text) or "(empty)"


def change_lines(
    changes: Sequence[FieldChange], indent: int, fields: int = _FIELDS_SHOWN, diff_lines: int = _DIFF_LINES
) -> Iterator[Line]:
    """One line per changed field, and the diff of a changed graph."""
    for change in changes[:fields]:
        yield Line(f"{change.field}   {change.summary}", indent)
        yield from code_lines(change, indent + 2, diff_lines)
    yield from rest(len(changes) - fields, "field", indent=indent)


def code_lines(change: FieldChange, indent: int, most: int = _DIFF_LINES) -> Iterator[Line]:
    """The diff of a changed graph, without the two lines that name the files of a diff."""
    lines = change.diff.split("\n")[2:] if change.diff else []
    lines = [harmless(text) for text in lines]
    for text, alike in list(zip(lines, _alike(lines), strict=True))[:most]:
        style = {"+": "green", "-": "red", "@": "dim"}.get(text[:1], "")
        yield Line(text, indent, style, verbatim=True, alike=alike)
    yield from rest(len(lines) - most, "line", "--key shows all", indent)


def _alike(lines: list[str]) -> list[int]:
    """Of each line of a diff the number of letters with which the line that it replaces, or that replaces it, begins alike."""
    alike = [0] * len(lines)
    gone: list[int] = []
    for at, line in enumerate(lines):
        if line.startswith("-"):
            gone = [*gone, at] if lines[at - 1].startswith("-") else [at]
        elif line.startswith("+") and gone:
            before = gone.pop(0)
            alike[before] = alike[at] = 1 + len(commonprefix([lines[before][1:], line[1:]]))  # noqa: RUF071
        else:
            gone = []
    return alike
