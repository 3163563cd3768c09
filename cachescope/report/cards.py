"""What to fix first: the cards of causes in words, for every form."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from cachescope.analysis.rates import known_sum
from cachescope.answers.cards import MOST, Card, Cards
from cachescope.answers.chosen import Chosen
from cachescope.answers.costs import WORDS
from cachescope.answers.names import lookups_of_cause, short_fields
from cachescope.report.blocks import Block, CardText, Diff, Group, WorkItems, diff_lines
from cachescope.report.explanation import setting_lines
from cachescope.report.layout import Line
from cachescope.verdict_kinds import kind_of
from cachescope.wording import A_MESH_MAY_DIFFER, duration, plural, short

_CHANGES: Final = 4
_DIFF_LINES: Final = 10
_REASON: Final = 400
# The number of cards on a first screen.
_FIRST: Final = 3
_NEVER_ASKED: Final = "Never reached the cache: bypassed, or with caching switched off"


def first_cards(
    chosen: Chosen,
    evidence: Callable[[Card], tuple[Block, ...] | None] = lambda card: None,
    places: int = 0,
    most: int = MOST,
    where: str = "see scope.causes",
) -> Iterator[Block]:
    """What to fix first: the first cards, further ones folded away, what keys do not fix, and `where` all of them are."""
    found = Cards.of(chosen, most, places)

    def items(name: str, cards: Sequence[Card], start: int = 1) -> WorkItems:
        return WorkItems(name, tuple(card_text(card, evidence(card)) for card in cards), start)

    first, later = found.works[:_FIRST], found.works[_FIRST:]
    if first:
        yield items("What to fix first, the costliest on top", first)
    if later:
        time = known_sum(card.row.time_lost_ns for card in later)
        together = "" if time is None else f", {duration(time)} together"
        besides = items("What to fix besides", later, _FIRST + 1)
        yield Group("", f"{len(later)} more{together}", (besides,), is_folded=True)
    if found.apart:
        yield Line(f"{_NEVER_ASKED}:")
        yield items(_NEVER_ASKED, found.apart, len(found.works) + 1)
    if found.more:
        causes = plural(found.more, "more cause")
        misses = plural(found.more_misses, "miss")
        yield Line(f"{causes} with {misses}: {where}.", style="dim")
    yield Line(found.rest.replace("    ", " · "), style="dim")


def card_text(card: Card, evidence: tuple[Block, ...] | None = None) -> CardText:
    """A card in words."""
    changed = next((one for one in card.changes if one.diff), None)
    return CardText(
        cause=card.row.cause,
        lookup=card.first.lookup,
        title=title_of(card),
        cost=cost_text(card),
        where=card.where,
        changes=tuple(_changes_of(card)),
        code=None if changed is None else Diff("", *diff_lines(changed.diff, _DIFF_LINES)),
        told=tuple(_told(card)),
        lines=setting_lines(card.settings),
        advice=card.advice,
        evidence=evidence,
    )


def title_of(card: Card) -> str:
    """What to look at, and how it changed if that is one thing."""
    if len(card.changes) != 1 or kind_of(card.row).is_told_by_reason:
        return card.title
    return f"{card.title}: {card.changes[0].summary}"


def _changes_of(card: Card) -> list[tuple[str, str]]:
    if card.is_by_guard:
        return [("", short(card.first.reason, _REASON))]
    kind = kind_of(card.row)
    is_said = kind.is_upgrade or (len(card.changes) == 1 and not kind.is_told_by_reason)
    shown = [] if is_said else card.changes[:_CHANGES]
    names = short_fields(one.field for one in shown)
    changes = [(names[one.field], one.summary) for one in shown]
    if shown and len(card.changes) > len(shown):
        changes.append(("", f"and {plural(len(card.changes) - len(shown), 'more field')}"))
    return changes + [(f"run {run}", change) for run, change in card.other_values]


def cost_text(card: Card) -> str:
    """The cost of a cause: seconds, what they were spent on, and misses; only misses if no time is recorded."""
    count, ns = lookups_of_cause(card.row), card.row.time_lost_ns
    ranks = f" in {len(card.row.ranks)} ranks," if len(card.row.ranks) > 1 else ""
    what = WORDS[card.cost][0]
    return f"{count}{ranks} {what}" if ns is None else f"{duration(ns)}{ranks} {what} · {count}"


def _told(card: Card) -> Iterator[str]:
    """The evidence in short."""
    first, kind = card.first, kind_of(card.row)
    how = "" if first.evidence == "recorded" else f"{first.evidence.replace('_', ' ')}: "
    is_reason_told = not card.is_by_guard and (
        kind.is_told_by_reason or (not card.changes and (not kind.is_upgrade or "besides" in first.reason))
    )
    is_evidence_told = is_reason_told and first.evidence_text in first.reason
    if is_reason_told:
        yield short(f"{how if is_evidence_told else ''}{first.reason}", _REASON)
    if card.guards is not None:
        yield card.guards.text
    is_compared = card.baseline is not None and not card.is_by_guard
    beside = f", compared with {card.baseline}{_sameness(card)}" if is_compared else ""
    yield f"the first: {card.name}{beside}"
    if how and not is_evidence_told:
        yield short(f"{how}{first.evidence_text}")


def _sameness(card: Card) -> str:
    if not card.row.fields:
        return ""
    if card.is_of_vllm:
        return ", the same part of a model; nothing else differs"
    is_other = any(change.field == "gm" for change in card.changes)
    more = "" if A_MESH_MAY_DIFFER in card.first.evidence_text else "; nothing else differs"
    return more if is_other else f", the same graph{more}"
