"""Blocks as lines of a terminal; a figure has none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from os.path import commonprefix
from typing import Final

from cachescope.report.blocks import (
    Block,
    CardText,
    Cell,
    Diff,
    Group,
    Head,
    Numbers,
    Table,
    WorkItems,
    cell_text,
    shortened,
)
from cachescope.report.layout import Line

# What a last column of long texts needs, which is cut at the edge.
_LAST: Final = 12
_KEY: Final = 16
_LABEL: Final = 24
_EMPTY: Final = ("", "–")
_GAP: Final = "  "


def terminal_lines(blocks: Iterable[Block], width: int = 100) -> list[Line]:
    """The blocks below each other, text apart from the items above it; tables that fit a width are aligned."""
    lines = list[Line]()
    above: Block | None = None
    for block in blocks:
        if isinstance(above, WorkItems | Group) and isinstance(block, Line) and block.text:
            lines.append(Line())
        lines += _lines(block, width)
        above = block
    return lines


def _lines(block: Block, width: int) -> Iterator[Line]:
    match block:
        case Line():
            yield block
        case Group():
            if lines := terminal_lines(block.blocks, width):
                yield from (Line(), Line(block.title, style="bold"), *lines)
        case Numbers():
            for label, number, of in block.cells:
                yield Line(f"{label}: {number}{of and f' ({of})'}", style="bold")
        case WorkItems():
            for at, card in enumerate(block.cards, block.start):
                yield from (Line(), *_card(at, card))
        case Table():
            yield Line(block.name, style="bold")
            yield from _rows(block, width)
            if block.note:
                yield Line(block.note, style="dim")
        case Diff():
            yield Line(block.name, style="bold")
            yield from _code(block)


def _code(diff: Diff) -> Iterator[Line]:
    for text, alike in zip(diff.lines, _alike(diff.lines), strict=True):
        style = {"+": "green", "-": "red", "@": "dim"}.get(text[:1], "")
        yield Line(text, 5, style, verbatim=True, alike=alike)
    yield from [Line(diff.note, 5, "dim")] if diff.note else []


def _alike(lines: Sequence[str]) -> list[int]:
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


def _card(number: int, card: CardText) -> Iterator[Line]:
    yield Line(f"{number}  {card.title}", style="bold", right=card.cost)
    yield from (Line(f"{name}   {change}" if name else change, 3) for name, change in card.changes)
    yield from () if card.code is None else _code(card.code)
    yield from (Line(text, 3) for text in (card.where, *card.told, *map(" ".join, card.lines)))
    # Where lines give some fields their earlier values, what is to be said of the others is in the explanation of the lookup.
    if card.advice and (not card.lines or len(card.changes) <= 1):
        yield Line(card.advice, 3, "dim", rows=5)


def _cell(head: Head, cell: Cell) -> str:
    text = shortened(cell_text(cell), 600)
    return text if head.kind != "key" or len(text) <= _KEY else f"{text[:_KEY]}…"


def _rows(table: Table, width: int) -> Iterator[Line]:
    """The cells below each other; where they are too wide for that, each row in lines of its own."""
    # A terminal cannot open them.
    seen = [at for at, head in enumerate(table.heads) if head.kind != "whole"]
    of_columns = [table.heads[at] for at in seen]
    heads = [head.title for head in of_columns]
    rows = [[_cell(table.heads[at], row[at]) for at in seen] for row in table.rows]
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    last = min(widths[-1], _LAST) if of_columns[-1].kind == "long" else widths[-1]
    if sum(widths[:-1]) + len(_GAP) * len(widths) + last <= width:
        for at, row in enumerate([heads, *rows]):
            sides = (">" if head.kind in ("number", "name") else "<" for head in of_columns)
            aligned = (f"{cell:{side}{room}}" for cell, side, room in zip(row, sides, widths, strict=True))
            yield Line(_GAP.join(aligned).rstrip(), 1, "" if at else "dim", verbatim=True)
        return
    hang = max((len(first) for first, *_ in rows), default=0) + len(_GAP)
    for first, *others in rows:
        told = (f"{name}: {cell}" for name, cell in zip(heads[1:], others, strict=True) if cell not in _EMPTY)
        if hang <= _LABEL:
            yield Line("; ".join(told), 1, label=first, hang=hang)
        else:
            yield from (Line(first, 1), Line("; ".join(told), 3))
