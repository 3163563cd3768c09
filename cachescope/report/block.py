"""What is shown of a recorded block: how its lookups went, and why those that missed did."""

from __future__ import annotations

from typing import Final

from cachescope.answers.explanation import Explanation
from cachescope.answers.read import Read
from cachescope.answers.summary import is_cold_start
from cachescope.report.explanation import explanation_html
from cachescope.report.html import CODE_STYLE, STYLE, safe
from cachescope.report.layout import Line, laid_out, wrapped
from cachescope.report.terminal import answer_lines, run_lines
from cachescope.wording import plural

_WIDTH: Final = 100
_NOTHING: Final = (
    "Functions that this process compiled before the block are not compiled again: torch._dynamo.reset() forgets "
    "them, and so does a recording with fresh=True."
)


def block_lines(scope: Read, run: int) -> list[Line]:
    """How the lookups of the block went in one line, then the causes that struck in it."""
    looked_up = any(row["run"] == run for row in scope.facts.lookups.values())
    if not looked_up:
        return [*run_lines(scope, {run}), Line(_NOTHING, style="dim")]
    earlier = len(scope.runs) - 1
    beside = [Line(f"compared with {plural(earlier, 'earlier run')}", style="dim")] if earlier else []
    return [*run_lines(scope, {run}), *answer_lines(scope, {run}), *beside]


def block_text(scope: Read, run: int) -> str:
    """The text repr of a recording."""
    return wrapped(block_lines(scope, run))


def block_html(scope: Read, run: int) -> str:
    """The HTML repr: the same lines, and the costliest miss that has a reason with everything that changed."""
    first, *rest = (text for text, _ in laid_out(block_lines(scope, run), _WIDTH))
    shown = f"<p><b>{safe(first)}</b></p>"
    if any(rest):
        lines = "\n".join(safe(text) for text in rest).strip("\n")
        shown += f"<pre style='{CODE_STYLE}'>{lines}</pre>"
    return f"<div style='{STYLE}'>{shown}{_costliest(scope, run)}</div>"


def _costliest(scope: Read, run: int) -> str:
    facts = scope.facts
    for cause in facts.causes:
        if is_cold_start(cause):
            continue
        for miss in facts.misses_of(cause["cause"]):
            if miss["root"] and facts.lookups[miss["lookup"]]["run"] == run:
                body = explanation_html(Explanation.of(scope, miss["lookup"]))
                return f"<details><summary>{safe(cause['summary'])}, in full</summary>{body}</details>"
    return ""
