"""The cards of causes in words: for the terminal, notebooks, the explorer and the page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from cachescope.analysis.rates import known_sum
from cachescope.answers.cards import MOST, Card, Cards, nothing_to_fix
from cachescope.answers.chosen import Chosen
from cachescope.answers.costs import WORDS
from cachescope.answers.names import lookups_of_cause, short_field
from cachescope.report.blocks import Block, CardText, Fold, WorkItems
from cachescope.report.explanation import change_lines, code_lines
from cachescope.report.layout import Line
from cachescope.verdict_kinds import kind_of
from cachescope.wording import duration, plural, short

_ADVICE_ROWS: Final = 5
_CHANGES: Final = 4
# Of the cards on a first screen.
_FIRST: Final = 3
_NEVER_ASKED: Final = "Never reached the cache: bypassed, or with caching switched off"


def first_cards(
    chosen: Chosen, evidence: Callable[[Card], tuple[Block, ...] | None] = lambda card: None, places: int = 0
) -> Iterator[Block]:
    """What to fix first: the first cards of some lookups, further ones folded away, and what is not to be fixed by keys."""
    found = Cards.of(chosen.read, chosen, most=MOST, places=places)

    def items(name: str, cards: Sequence[Card], start: int = 1) -> WorkItems:
        return WorkItems(name, tuple(card_text(card, evidence(card)) for card in cards), start)

    first, later = found.works[:_FIRST], found.works[_FIRST:]
    if first:
        yield items("What to fix first, the costliest on top", first)
    if later:
        time = known_sum(card.row.time_lost_ns for card in later)
        together = "" if time is None else f", {duration(time)} together"
        yield Fold(f"{len(later)} more{together}", (items("What to fix besides", later, _FIRST + 1),))
    if found.apart:
        yield Line(f"{_NEVER_ASKED}:")
        yield items(_NEVER_ASKED, found.apart)
    if not found.cards:
        yield Line(nothing_to_fix(chosen), style="dim")
    if found.more:
        causes = plural(found.more, "more cause", "more causes")
        misses = plural(found.more_misses, "miss", "misses")
        yield Line(f"{causes} with {misses}: see scope.causes.", style="dim")
    yield Line(found.rest.replace("    ", " · "), style="dim")


def card_text(card: Card, evidence: tuple[Block, ...] | None = None) -> CardText:
    """A card in words."""
    return CardText(
        cause=card.row.cause,
        lookup=card.first.lookup,
        title=title_of(card),
        cost=cost_text(card),
        where=card.where,
        changes=tuple(_changes_of(card)),
        lines=tuple(_what_to_do(card)),
        advice=card.advice,
        evidence=evidence,
    )


def title_of(card: Card) -> str:
    """What is to be looked at, and how it changed where that is one thing."""
    if len(card.changes) != 1 or kind_of(card.row).is_told_by_reason:
        return card.title
    return f"{card.title}: {card.changes[0].summary}"


def _changes_of(card: Card) -> list[tuple[str, str]]:
    kind = kind_of(card.row)
    is_said = kind.is_upgrade or (len(card.changes) == 1 and not kind.is_told_by_reason)
    shown = [] if is_said else card.changes[:_CHANGES]
    changes = [(short_field(one.field), one.summary) for one in shown]
    changes += [(f"run {run}", change) for run, change in card.other_values]
    if shown and len(card.changes) > len(shown):
        changes.append(("", f"and {plural(len(card.changes) - len(shown), 'more field')}"))
    return changes


def _what_to_do(card: Card) -> list[str]:
    return [f"do, {where}: {'; '.join(lines)}" for where, lines in card.settings.items()]


def cost_text(card: Card) -> str:
    """What a cause cost: seconds, what they were spent on, and misses."""
    count = lookups_of_cause(card.row)
    return _amount(card, count) + ("" if card.row.time_lost_ns is None else f" · {count}")


def _amount(card: Card, count: str) -> str:
    """The seconds that a cause cost, or its misses where no time is recorded, and what they were."""
    amount = count if card.row.time_lost_ns is None else duration(card.row.time_lost_ns)
    ranks = f" in {len(card.row.ranks)} ranks," if len(card.row.ranks) > 1 else ""
    return f"{amount}{ranks} {WORDS[card.cost][0]}"


def card_lines(number: int, card: Card) -> Iterator[Line]:
    """A card for the terminal."""
    cause, changes, first = card.row, card.changes, card.first
    kind, count = kind_of(cause), lookups_of_cause(cause)
    title = title_of(card)
    if len(changes) > 1 and not (kind.is_told_by_reason or kind.is_upgrade):
        title = f"{len(cause.fields):,} fields changed"
    yield Line(f"{number}  {title}", style="bold", right=_amount(card, count))
    if kind.is_told_by_reason:
        yield Line(short(first.reason, 400), 3)
        yield from change_lines(changes, 3)
    elif len(changes) == 1:
        yield from code_lines(changes[0], 5)
        for run, summary in card.other_values:
            yield Line(f"and in run {run}: {summary}", 3)
    elif changes and not kind.is_upgrade:
        yield from change_lines(changes, 3)
    elif not kind.is_upgrade or "besides" in first.reason:
        yield Line(short(first.reason, 400), 3)
    if card.guards is not None:
        yield Line(card.guards.text, 3)
    yield Line(f"{card.where}: {count}, the first {card.name}", 3)
    if card.baseline is not None:
        yield Line(f"compared with {card.baseline}{_sameness(card)}", 3)
    if first.evidence != "recorded":
        known = first.evidence.replace("_", " ")
        yield Line(short(f"{known}: {first.evidence_text}"), 3, "dim")
    yield from _advice_lines(card)


def _advice_lines(card: Card) -> Iterator[Line]:
    lines = _what_to_do(card)
    yield from (Line(line, 3) for line in lines)
    # Where lines give some fields their earlier values, what is to be said of the others is in the explanation of the lookup.
    if card.advice and (not lines or len(card.changes) == 1):
        yield Line(card.advice, 3, "dim", rows=_ADVICE_ROWS)


def _sameness(card: Card) -> str:
    if not card.row.fields:
        return ""
    if card.is_of_vllm:
        return ", the same part of a model; nothing else differs"
    return "; nothing else differs" if "gm" in card.row.fields else ", the same graph; nothing else differs"
