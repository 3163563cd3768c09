"""A page as HTML: what only a page has; the rest of its blocks is made as everywhere, by `report.html`."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from cachescope.report.blocks import Block, Drawing, Fold, Group, Replayable, Section, WorkItems
from cachescope.report.html import blocks_html, heading_html, safe
from cachescope.report.page.replay import replay_html


def section_html(section: Section, *, is_folded: bool) -> str:
    """A section with its heading, which can be linked to."""
    heading = heading_html(2, section.title, section.anchor)
    about = f"<p class='about'>{safe(section.sentence)}</p>" if section.sentence else ""
    content = about + _blocks(section.blocks)
    folded = f"<details><summary>{heading}</summary>{content}</details>"
    return f"<section aria-labelledby='{safe(section.anchor)}'>{folded if is_folded else heading + content}</section>"


def contents_html(sections: Iterable[Section]) -> str:
    """The table of contents."""
    names = ((safe(section.anchor), safe(section.title)) for section in sections)
    links = "".join(f"<li><a href='#{anchor}'>{title}</a></li>" for anchor, title in names)
    return f"<nav aria-label='Contents'><ol>{links}</ol></nav>"


def drawings_of(blocks: Iterable[Block]) -> list[Drawing]:
    """The figures in the order of the page."""
    found = []
    for block in blocks:
        if isinstance(block, Drawing):
            found.append(block)
        elif isinstance(block, Group | Fold):
            found += drawings_of(block.blocks)
        elif isinstance(block, WorkItems):
            found += [drawing for card in block.cards for drawing in drawings_of(card.evidence or ())]
    return found


def _block(block: Block) -> str:
    match block:
        case Replayable():
            return replay_html(block)
        case Drawing():
            # Figures are written together with the others, in order.
            name = safe(block.name)
            return f"<figure class='plot' aria-label='{name}'><div></div><figcaption>{name}</figcaption></figure>"
    raise TypeError(block)


# Of a value, what a page keeps: it may have hundreds of them.
_blocks = partial(blocks_html, longest=2000, other=_block)
