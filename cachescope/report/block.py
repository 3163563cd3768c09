"""The report of a recorded block: how its lookups went, and why those that missed did."""

from __future__ import annotations

from typing import Final

from cachescope.answers.why import Block
from cachescope.report.explanation import explanation_html
from cachescope.report.html import CODE_STYLE, STYLE, safe
from cachescope.report.layout import Line, wrapped
from cachescope.report.terminal import answer_lines, run_lines
from cachescope.wording import plural

_NOTHING: Final = (
    "Functions that this process compiled before the block are not compiled again: torch._dynamo.reset() forgets "
    "them, and so does a recording with fresh=True."
)


def block_lines(block: Block) -> list[Line]:
    """How the lookups of the block went in one line, then its causes."""
    went = run_lines(block.went)
    if block.why is None:
        return [*went, Line(_NOTHING, style="dim")]
    earlier = f"compared with {plural(block.earlier, 'earlier run')}"
    return [*went, *answer_lines(block.why), *([Line(earlier, style="dim")] if block.earlier else [])]


def block_text(block: Block) -> str:
    """The text repr of a recording."""
    return wrapped(block_lines(block))


def block_html(block: Block) -> str:
    """The HTML repr: the same lines, and the costliest miss that has a reason with everything that changed."""
    first, *rest = block_text(block).split("\n")
    shown = f"<p><b>{safe(first)}</b></p>"
    if any(rest):
        lines = "\n".join(safe(text) for text in rest).strip("\n")
        shown += f"<pre style='{CODE_STYLE}'>{lines}</pre>"
    return f"<div style='{STYLE}'>{shown}{_costliest(block)}</div>"


def _costliest(block: Block) -> str:
    if block.costliest is None:
        return ""
    summary, explained = block.costliest
    return f"<details><summary>{safe(summary)}, in full</summary>{explanation_html(explained)}</details>"
