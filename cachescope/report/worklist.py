"""The worklist in words that the explorer and the page share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from cachescope.answers.worklist import FieldWork, Work, Worklist, short_field
from cachescope.grouping import by_key
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
    changes = _said_once(list(_texts(work.changes, names)))
    changes += [ChangeText(f"run {run}", change) for run, change in work.other_values]
    if work.more_changes:
        changes.append(ChangeText("", f"and {plural(work.more_changes, 'more field')}"))
    return changes


def _said_once(changes: list[ChangeText]) -> list[ChangeText]:
    """Whether a key needs several fields, at the last of them if it is the same of all."""
    names = by_key((one.left_out, one.name) for one in changes)
    for text, of in names.items():
        if not text or len(of) < 2:
            continue
        said = "Each of these" if len(names) == 1 else ", ".join(of)
        at = max(at for at, one in enumerate(changes) if one.left_out == text)
        changes = [replace(one, left_out="") if one.left_out == text else one for one in changes]
        changes[at] = replace(changes[at], left_out=f"{said}: {text[0].lower()}{text[1:]}")
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
