"""The first screen of the report as Markdown, for a pull request or an issue: the answer, its causes, and the hit rates folded away."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from cachescope.answers.chosen import Chosen
from cachescope.answers.costs import headline
from cachescope.answers.read import Read
from cachescope.answers.summary import about_text
from cachescope.report.blocks import (
    Block,
    CardText,
    Group,
    Hiding,
    Table,
    WorkItems,
    cell_text,
    hidden,
    shortened,
)
from cachescope.report.layout import Line
from cachescope.report.rates import rates_table, trend_blocks
from cachescope.report.why_missed import failed_lines, first_cards
from cachescope.wording import and_more, harmless_line

_SENTENCE: Final = 600
_CELL: Final = 80
_ROWS: Final = 6
_ITEMS: Final = 5
# First characters of Markdown, HTML, and GitHub's references to people, issues and addresses.
_COMMANDS: Final = re.compile(r"[\\`*_{}\[\]<>|#!~$&]|@|(?<=:)//")


def markdown(scope: Read, *, redact: bool) -> str:
    """The answer as Markdown."""
    chosen = Chosen(scope)
    blocks: tuple[Block, ...] = (*failed_lines(scope, None), *first_cards(chosen), *trend_blocks(scope))
    said = headline(chosen)
    told = said, about_text(scope, said), blocks, rates_table(scope) if scope.facts.lookups else None
    if redact:
        from cachescope.report.redact import Redaction, identities

        told = hidden(told, Redaction(identities(scope)))
    title, about, blocks, rates = told
    lines = [f"### {_safe(title, _SENTENCE)}", "", f"<sub>{_safe(about, _SENTENCE)}</sub>", ""]
    lines += _blocks(blocks)
    if rates is not None:
        lines += _folded(rates.name, [*_table(rates), ""])
    return "\n".join(lines).rstrip() + "\n"


def markdown_of(blocks: Iterable[Block], hiding: Hiding | None = None) -> list[Line]:
    """Blocks as lines of Markdown."""
    shown = tuple(blocks) if hiding is None else hidden(tuple(blocks), hiding)
    return [Line(line, whole=True) for line in _blocks(shown)]


def _blocks(blocks: Iterable[Block]) -> Iterator[str]:
    for block in blocks:
        match block:
            case WorkItems():
                for number, card in enumerate(block.cards[:_ITEMS], block.start):
                    yield from _card(number, card)
                if len(block.cards) > _ITEMS:
                    yield from (f"- {and_more(len(block.cards) - _ITEMS)}", "")
            case Group():
                yield from _folded(block.title, _blocks(block.blocks))
            case Table():
                yield from (f"**{_safe(block.name, _CELL)}**", "", *_table(block), "")
            case Line():
                beside = f" · {_safe(block.right, _CELL)}" if block.right else ""
                yield from (f"{_safe(block.text, _SENTENCE)}{beside}", "")


def _card(number: int, card: CardText) -> Iterator[str]:
    yield f"{number}. **{_safe(card.title, _SENTENCE)}** · {_safe(card.cost, _CELL)}  "
    yield f"   {_safe(card.where, _SENTENCE)}  "
    for name, change in card.changes:
        yield f"   - {f'{_safe(name, _CELL)} ' if name else ''}{_safe(change, _SENTENCE)}"
    for do, line in card.lines:
        # A fence that none of its lines can end.
        fence = "`" * max(3, 1 + max(map(len, re.findall("`+", line)), default=0))
        yield from (f"   {_safe(do, _SENTENCE)}", f"   {fence}", f"   {harmless_line(line)}", f"   {fence}")
    if card.advice:
        # Else the last change would go on with it.
        yield from [""] if card.changes else []
        yield f"   {_safe(card.advice, _SENTENCE)}"
    yield ""


def _folded(title: str, lines: Iterable[str]) -> Iterator[str]:
    yield from (f"<details><summary>{_safe(title, _CELL)}</summary>", "", *lines, "</details>", "")


def _table(table: Table) -> Iterator[str]:
    yield _row(head.title for head in table.heads)
    yield _row("--:" if head.kind == "number" else "---" for head in table.heads)
    for row in table.rows[:_ROWS]:
        yield _row(_safe(cell_text(cell), _CELL) for cell in row)
    if len(table.rows) > _ROWS:
        yield f"\n{and_more(len(table.rows) - _ROWS)}"


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _safe(text: str, most: int) -> str:
    r"""A text on one line in which nothing is markup.

    Examples
    --------
    >>> _safe("a_b <i> @me #1  2", 20)
    'a\\_b \\<i\\> &#64;me \\#1 &nbsp;2'
    """
    shown = _COMMANDS.sub(
        lambda found: {"@": "&#64;", "//": "&#47;/"}.get(found[0], f"\\{found[0]}"),
        shortened(text, most, keeps_blanks=True),
    )
    # The number of blanks may be all that changed in a value.
    return re.sub("(?<= ) ", "&nbsp;", shown)
