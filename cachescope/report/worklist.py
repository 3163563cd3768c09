"""The worklist in words that the explorer and the page share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from cachescope.answers.field_work import FieldWork
from cachescope.answers.worklist import Work, Worklist, short_field
from cachescope.wording import plural

NEVER_ASKED: Final = "Never reached the cache: bypassed, or with caching switched off"


@dataclass(frozen=True, slots=True)
class ChangeText:
    """A changed field in words: its name, before and after, what to do, lines of code after a lead, and whether a key needs it."""

    name: str
    change: str
    advice: tuple[str, ...] = ()
    lead: str = ""
    lines: tuple[str, ...] = ()
    left_out: str = ""


def changes_of(work: Work) -> list[ChangeText]:
    """What changed. The title names the field where there is only one."""
    names = [short_field(one.field) for one in work.changes]
    names = ["" if name == work.title else name for name in names]
    changes = list(_texts(work.changes, names))
    changes += [ChangeText(f"run {run}", change) for run, change in work.other_values]
    if work.more_changes:
        changes.append(ChangeText("", f"and {plural(work.more_changes, 'more field')}"))
    return changes


def _texts(works: tuple[FieldWork, ...], names: list[str]) -> Iterator[ChangeText]:
    seen: dict[tuple[str, ...], str] = {}
    for one, name in zip(works, names, strict=True):
        advice = one.advice
        if advice and advice in seen:
            advice = (f"As for {seen[advice]}.",)
        seen.setdefault(one.advice, name)
        lead = f"To get the earlier value, {one.where}:" if one.lines else ""
        left_out = f"{one.left_out[0].upper()}{one.left_out[1:]}." if one.left_out else ""
        yield ChangeText(name, one.change, advice, lead, one.lines, left_out)


def notes_of(found: Worklist) -> list[str]:
    """What the items leave out."""
    more = []
    if found.more:
        causes = plural(found.more, "more cause", "more causes")
        more.append(f"{causes} with {plural(found.more_misses, 'miss', 'misses')}: see scope.causes.")
    return [*more, found.rest.replace("    ", " · ")]
