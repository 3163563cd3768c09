"""What to fix first: the worklist, with links to the explanations."""

from __future__ import annotations

from cachescope.answers.chosen import Chosen
from cachescope.answers.read import Read
from cachescope.answers.worklist import Work, Worklist, nothing_to_fix
from cachescope.report.page.explained import anchor_of
from cachescope.report.page.parts import Part, Section, Text, WorkItem, WorkItems
from cachescope.report.page.reasons import EXPLAINED
from cachescope.report.worklist import NEVER_ASKED, changes_of, notes_of
from cachescope.verdict_kinds import kind_of


def causes_section(scope: Read) -> Section:
    """What to fix first."""
    sentence = (
        "Misses with one reason are one cause, the costliest on top. One miss brings others: an AOTAutograd miss is followed"
        " by lookups of its FX graphs, and they count with it. First lookups cannot be avoided and are listed separately."
    )
    found = Worklist.of(scope)
    order = [cause.cause for cause in scope.facts.causes if not kind_of(cause).is_first]
    anchors = {cause: anchor_of(number) for number, cause in enumerate(order[:EXPLAINED], 1)}
    parts: list[Part] = []
    if found.works:
        parts.append(WorkItems("What to fix, the costliest on top", _items(found.works, anchors)))
    if found.apart:
        parts += [Text(f"{NEVER_ASKED}:"), WorkItems(NEVER_ASKED, _items(found.apart, anchors))]
    if not parts:
        parts.append(Text(nothing_to_fix(Chosen(scope))))
    parts += [Text(note, "faint") for note in notes_of(found)]
    return Section("causes", "What should be fixed first?", sentence, tuple(parts))


def _items(works: tuple[Work, ...], anchors: dict[int, str]) -> tuple[WorkItem, ...]:
    return tuple(
        WorkItem(
            title=work.title,
            cost=work.cost,
            where=work.where,
            share=work.share,
            changes=tuple(changes_of(work)),
            advice=work.advice,
            anchor=anchors.get(work.cause),
        )
        for work in works
    )
