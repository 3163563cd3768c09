"""Blocks as lines of a terminal; a figure has none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cachescope.report.blocks import Block, Fold, Group, Table, cell_text, shortened
from cachescope.report.layout import Line

_CELL = 40


def terminal_lines(blocks: Iterable[Block]) -> list[Line]:
    """The blocks below each other."""
    return [line for block in blocks for line in _lines(block)]


def _lines(block: Block) -> Iterator[Line]:
    match block:
        case Line():
            yield block
        case Group() | Fold():
            yield from (Line(), Line(block.title, style="bold"), *terminal_lines(block.blocks))
        case Table():
            yield Line(block.name, style="bold")
            heads = [head.title for head in block.heads]
            rows = [heads, *([shortened(cell_text(cell), _CELL) for cell in row] for row in block.rows)]
            widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
            for at, row in enumerate(rows):
                cells = zip(row, widths, block.heads, strict=True)
                text = "  ".join(
                    f"{cell:{'>' if head.kind in ('number', 'name') else '<'}{width}}"
                    for cell, width, head in cells
                )
                yield Line(text, 1, "" if at else "dim", verbatim=True)
            if block.note:
                yield Line(block.note, style="dim")
