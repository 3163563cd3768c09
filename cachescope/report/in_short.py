"""The reprs of a Scope: short, and the same for the same data."""

from __future__ import annotations

from typing import Final

from cachescope.answers.causes import Causes, Struck
from cachescope.answers.in_short import InShort
from cachescope.answers.names import lookups_of_cause
from cachescope.report.html import FAINT_STYLE, STYLE, safe
from cachescope.report.terminal import place_text
from cachescope.wording import and_more, duration, harmless, harmless_line

_CAUSES_IN_TEXT: Final = 3


def summary_text(found: InShort) -> str:
    """The text repr."""
    lines = [f"cachescope.Scope: {found.headline}"]
    for number, cause in enumerate(found.causes[:_CAUSES_IN_TEXT], 1):
        misses = lookups_of_cause(cause, cause.misses)
        lines.append(
            f"  {number}  {harmless(cause.summary)}  [{cause.verdict}]  {misses}  "
            f"{duration(cause.time_lost_ns)}"
        )
    if found.lookups or found.problems:
        lines.append(f"  {found.footer}")
    if found.entries:
        also = f", unreadable: {found.unreadable}" if found.unreadable else ""
        lines.append(f"  entries: {found.entries}, damaged: {found.damaged}{also}")
    return "\n".join(map(harmless_line, lines))


def summary_html(found: InShort, causes: Causes) -> str:
    """The HTML repr: the rates first, then the costliest causes, then the rest."""
    parts = [f"<p><b>{safe(found.headline)}</b></p>"]
    parts += [_cause_html(number, struck) for number, struck in enumerate(causes.struck, 1)]
    if causes.more:
        more = and_more(causes.more, "cause")
        parts.append(f"<p>{more}, see <code>scope.causes</code></p>")
    parts.append(f"<p style='{FAINT_STYLE}'>{safe(found.footer.replace('    ', ' · '))}</p>")
    return f"<div style='{STYLE}'>{''.join(parts)}</div>"


def _cause_html(number: int, struck: Struck) -> str:
    cause = struck.row
    misses = lookups_of_cause(cause, cause.misses)
    # Old and new value, if one field alone made the cause.
    change = f"{safe(struck.changes[0].summary)} " if len(struck.changes) == 1 else ""
    where = "".join(f"<li>{safe(place_text(place))}</li>" for place in struck.places)
    sizes = f"<div>{safe(struck.guards.text)}</div>" if struck.guards else ""
    advice = f"<div style='{FAINT_STYLE}'>{safe(struck.advice)}</div>" if struck.advice else ""
    return (
        f"<details {'open' if number == 1 else ''}><summary>{number}. <code>{safe(cause.summary)}</code> "
        f"{change}({safe(cause.verdict)}) · {misses} · {duration(cause.time_lost_ns)}</summary>"
        f"{sizes}<ul>{where}</ul>{advice}</details>"
    )
