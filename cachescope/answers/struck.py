"""Where a cause struck, in lines: its root misses, each with the lookups that missed because of it."""

from __future__ import annotations

from cachescope.answers.names import in_compile, lookup_name, run_name
from cachescope.answers.read import Read


def miss_lines(read: Read, cause: int, most: int | None = None) -> list[str]:
    """Where a cause struck: one line per root miss, or per each of the first, with the misses that follow from it."""
    facts = read.facts
    lines = []
    for root in facts.roots_of(cause)[:most]:
        row = facts.lookups[root["lookup"]]
        text = f"{run_name(facts.runs[row['run']])}{in_compile(row)}: {lookup_name(row)}"
        if following := facts.followers_of(root):
            text += " and, because of it, " + ", ".join(lookup_name(other) for other in following)
        lines.append(text)
    return lines
