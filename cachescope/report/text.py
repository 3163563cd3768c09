"""The repr of a Scope."""

from __future__ import annotations

from cachescope.answers.names import lookups_of_cause
from cachescope.answers.read import Read
from cachescope.answers.summary import cause_rows, footer, headline
from cachescope.terms import UNREADABLE
from cachescope.wording import duration, harmless, harmless_line


def summary_text(scope: Read) -> str:
    """The repr of a Scope: short, and the same for the same data."""
    facts = scope.facts
    lines = [f"cachescope.Scope: {headline(scope)}"]
    for number, cause in enumerate(cause_rows(scope)[:3], 1):
        misses = lookups_of_cause(cause["verdict"], cause["misses"])
        lines.append(
            f"  {number}  {harmless(cause['summary'])}  [{cause['verdict']}]  {misses}  "
            f"{duration(cause['time_lost_ns'])}"
        )
    if facts.lookups or facts.problems:
        lines.append(f"  {footer(scope)}")
    if facts.entries:
        damaged = sum(entry["status"] == "damaged" for entry in facts.entries.values())
        unread = sum(entry["status"] == UNREADABLE for entry in facts.entries.values())
        also = f", unreadable: {unread}" if unread else ""
        lines.append(f"  entries: {len(facts.entries)}, damaged: {damaged}{also}")
    return "\n".join(map(harmless_line, lines))
