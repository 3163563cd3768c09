"""Lines of text, and their layout for a width.

Lines are plain data: tests and `--redact` work on them before anything is wrapped or coloured. Whatever a
line quotes from a source, its rows do nothing: wrapping may bring any of its words to the beginning of a row.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from cachescope.frames.recorded_rows import ProblemRow
from cachescope.wording import and_more, harmless_cut, harmless_line, short, without_commands

_NARROWEST: Final = 20
_PROBLEMS_SHOWN: Final = 3
# Of a line of code that is cut: its beginning, and the room for what differs.
_BEGINNING: Final = 12
_SHOWN_OF_A_DIFFERENCE: Final = 30


class Line(NamedTuple):
    """One line before it is wrapped.

    A `label` stands before the text, in `hang` columns. `right` is set at the right edge, `rows` is the most that wrapping may make of it (0: any number), `hang` is
    the indentation of its further rows. A `verbatim` line is cut, not wrapped; a `whole` one is neither: it
    contains a path that is meant to be copied. Of a verbatim line that does not fit, most of the first `alike`
    letters are left out: those in which it does not differ from the line that it is shown beside.
    """

    text: str = ""
    indent: int = 0
    style: str = ""
    right: str = ""
    rows: int = 0
    verbatim: bool = False
    hang: int = 0
    whole: bool = False
    alike: int = 0
    label: str = ""


def rest(count: int, what: str = "", where: str = "", indent: int = 3, style: str = "dim") -> Iterator[Line]:
    """The line below the first of many, which says how many more there are; nothing if all are shown."""
    if count > 0:
        yield Line(and_more(count, what, where), indent, style)


def firsts(
    items: Iterable[Line | Iterable[Line]],
    most: int,
    what: str = "",
    where: str = "",
    indent: int = 3,
    style: str = "dim",
) -> Iterator[Line]:
    """The first of many items, each a line or a few, and how many more there are."""
    every = list(items)
    for item in every[:most]:
        yield from [item] if isinstance(item, Line) else item
    yield from rest(len(every) - most, what, where, indent, style)


def parted(parts: Iterable[Iterable[Any]]) -> Iterator[Any]:
    """The parts that have lines or other blocks, each below an empty line."""
    for part in parts:
        if every := list(part):
            yield Line()
            yield from every


def titled(title: str, lines: Iterable[Line]) -> list[Line]:
    """Lines below a title; nothing if there are none."""
    every = list(lines)
    return [Line(title, style="bold"), *every] if every else []


def first_items(
    title: str, items: Iterable[Iterable[Line]], most: int, where: str, indent: int = 3
) -> list[Line]:
    """The first of some items, each of a few lines, below a title; nothing if there are none."""
    return titled(title, firsts(items, most, where=where, indent=indent))


def problem_lines(problems: Sequence[ProblemRow]) -> Iterator[Line]:
    """The first things that could not be read."""
    for row in problems[:_PROBLEMS_SHOWN]:
        where = f" ({row.where})" if row.where else ""
        more = f"; and {row.count - 1:,} like it" if row.count > 1 else ""
        # The message is cut alone: a long path would leave nothing of it.
        yield Line(f"{row.source}{where}: {row.kind}: {short(row.message)}{more}", 2, "dim")
    yield from rest(len(problems) - _PROBLEMS_SHOWN, where="--json lists all", indent=2)


def laid_out(lines: Iterable[Line], width: int) -> Iterator[tuple[str, str]]:
    """The lines wrapped to a width, each row with its style; no row controls a terminal or commands a CI system."""
    for line in lines:
        text = f"{line.label:<{line.hang}}{line.text}" if line.label else line.text
        shown = line._replace(text=harmless_cut(text), right=harmless_cut(line.right, width))
        for row in _rows(shown, width):
            yield without_commands(row.rstrip().replace("\n", "\\n")), line.style


def wrapped(lines: Iterable[Line], width: int = 100) -> str:
    """The lines as one text, for a repr."""
    return "\n".join(text for text, _ in laid_out(lines, width))


def unwrapped(lines: Iterable[Line]) -> str:
    """Each line in one row, however long: values compared by eye stay in one place."""
    return "\n".join(harmless_line(" " * line.indent + line.text) for line in lines)


def _rows(line: Line, width: int) -> Iterator[str]:
    pad = " " * line.indent
    room = max(width - line.indent, _NARROWEST)
    if line.whole:
        yield pad + line.text
        return
    if line.verbatim:
        yield pad + _cut(line.text, room, line.alike)
        return
    if line.right:
        room = max(room - len(line.right) - 2, _NARROWEST)
    hang = "   " if line.right else " " * min(line.hang, room // 2)
    wrapped = textwrap.wrap(
        line.text,
        room,
        subsequent_indent=hang,
        break_on_hyphens=False,
        max_lines=line.rows or None,
        placeholder=" …",
    ) or [""]
    if line.right:
        wrapped[0] = f"{wrapped[0]:<{room}}  {line.right}"
    yield from (pad + text for text in wrapped)


def _cut(code: str, width: int, alike: int = 0) -> str:
    """A line of code cut at a width, its inner spaces kept."""
    alike = len(code[:alike].expandtabs(4))
    code = code.expandtabs(4)
    if len(code) > width and alike > width - _SHOWN_OF_A_DIFFERENCE:
        # Both lines are cut at one place, and as much as fits of what stands before it is kept.
        before = max(width - _BEGINNING - 1 - _SHOWN_OF_A_DIFFERENCE, 0)
        code = f"{code[:_BEGINNING]}…{code[alike - before :]}"
    return code if len(code) <= width else code[: width - 1] + "…"
