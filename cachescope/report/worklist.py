"""The worklist in words that the explorer and the page share."""

from __future__ import annotations

from typing import Final

from cachescope.answers.worklist import Work, Worklist
from cachescope.wording import plural

NEVER_ASKED: Final = "Never reached the cache: bypassed, or with caching switched off"


def changes_of(work: Work) -> list[tuple[str, str]]:
    """What changed: a field, and before and after. The title names the field where there is only one."""
    changes = list(work.changes)
    if changes and changes[0][0] == work.title:
        changes[0] = ("", changes[0][1])
    if work.more_changes:
        changes.append(("", f"and {plural(work.more_changes, 'more field')}"))
    return changes


def notes_of(found: Worklist) -> list[str]:
    """What the items leave out."""
    more = []
    if found.more:
        causes = plural(found.more, "more cause", "more causes")
        more.append(f"{causes} with {plural(found.more_misses, 'miss', 'misses')}: see scope.causes.")
    return [*more, found.rest.replace("    ", " · ")]
