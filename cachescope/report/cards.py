"""The cards of causes in words: for the terminal, notebooks, the explorer and the page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from cachescope.analysis.differences import short
from cachescope.answers.cards import Card, Cards, FieldWork, Place
from cachescope.answers.names import lookups_of_cause, short_field
from cachescope.grouping import by_key
from cachescope.report.explanation import change_lines, code_lines
from cachescope.report.html import FAINT_STYLE, safe
from cachescope.report.layout import Line
from cachescope.verdict_kinds import kind_of
from cachescope.wording import duration, harmless, listed, percent, plural

_ADVICE_ROWS: Final = 5
_FOLLOWERS_SHOWN: Final = 3
# What the compiles after the misses of a cause were, in a word or two.
_CHIPS: Final = {
    "avoidable": "avoidable",
    "at once": "at once",
    "first": "first compiles",
    "edited": "edited",
    "inputs": "other inputs",
    "guards": "other sizes or values",
    "machine": "another machine",
    "upgrade": "upgrade",
    "factors": "other factors",
    "not cached": "not cached",
    "unknown": "not known",
}
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


def changes_of(card: Card) -> list[ChangeText]:
    """What changed. The title names the field where there is only one."""
    names = [short_field(one.field) for one in card.fields]
    names = ["" if name == card.title else name for name in names]
    changes = _said_once(list(_texts(card.fields, names)))
    changes += [ChangeText(f"run {run}", change) for run, change in card.other_values]
    if card.more_changes:
        changes.append(ChangeText("", f"and {plural(card.more_changes, 'more field')}"))
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


def notes_of(found: Cards) -> list[str]:
    """What the items leave out."""
    more = []
    if found.more:
        causes = plural(found.more, "more cause", "more causes")
        more.append(f"{causes} with {plural(found.more_misses, 'miss', 'misses')}: see scope.causes.")
    return [*more, found.rest.replace("    ", " · ")]


def place_text(place: Place) -> str:
    """Where a miss was, and what missed because of it."""
    if not place.followers:
        return place.name
    return f"{place.name} and, because of it, {listed(place.followers, _FOLLOWERS_SHOWN)}"


def cost_text(card: Card) -> str:
    """What a cause cost: seconds, what they were spent on, their share of the time lost, and misses."""
    count = lookups_of_cause(card.row, card.misses)
    share = "" if card.share is None else f" · {percent(card.share)} of the time lost"
    return _amount(card, count) + (share if card.time_lost_ns is None else f"{share} · {count}")


def _amount(card: Card, count: str) -> str:
    """The seconds that a cause cost, or its misses where no time is recorded, and what they were."""
    amount = count if card.time_lost_ns is None else duration(card.time_lost_ns)
    ranks = f" in {len(card.row.ranks)} ranks," if len(card.row.ranks) > 1 else ""
    return f"{amount}{ranks} {_CHIPS[card.cost]}"


def card_lines(number: int, card: Card) -> Iterator[Line]:
    """A card for the terminal."""
    cause, changes, first = card.row, card.changes, card.first
    kind, count = kind_of(cause), lookups_of_cause(cause, card.misses)
    title = card.title
    if len(changes) > 1 and not (kind.is_recompile or kind.is_upgrade):
        title = f"{len(cause.fields):,} fields changed"
    elif len(changes) == 1 and not kind.is_recompile:
        title += f"   {changes[0].summary}"
    yield Line(f"{number}  {harmless(title)}", style="bold", right=_amount(card, count))
    if kind.is_recompile:
        yield Line(harmless(short(first.reason, 400)), 3)
        yield from change_lines(changes, 3)
    elif len(changes) == 1:
        yield from code_lines(changes[0], 5)
        for run, summary in card.other_values:
            yield Line(f"and in run {run}: {harmless(summary)}", 3)
    elif changes and not kind.is_upgrade:
        yield from change_lines(changes, 3)
    elif not kind.is_upgrade or "besides" in first.reason:
        yield Line(harmless(short(first.reason, 400)), 3)
    if card.guards is not None:
        yield Line(harmless(card.guards.text), 3)
    yield Line(harmless(f"{card.where}: {count}, the first {card.name}"), 3)
    if card.baseline is not None:
        yield Line(f"compared with {card.baseline}{_sameness(card)}", 3)
    if first.evidence != "recorded":
        known = first.evidence.replace("_", " ")
        yield Line(harmless(short(f"{known}: {first.evidence_text}")), 3, "dim")
    yield from _advice_lines(card)


def _advice_lines(card: Card) -> Iterator[Line]:
    settings = by_key((one.where, line) for one in card.fields for line in one.lines)
    for where, lines in settings.items():
        yield Line(harmless(f"do, {where}: {'; '.join(dict.fromkeys(lines))}"), 3)
    # What gives each field its earlier value says what sets it.
    is_said = card.changes and len(card.changes) == sum(bool(one.lines) for one in card.fields)
    if card.advice and not is_said and not kind_of(card.row).is_advice_in_reason:
        yield Line(harmless(card.advice), 3, "dim", rows=2 if settings else _ADVICE_ROWS)


def _sameness(card: Card) -> str:
    if not card.row.fields:
        return ""
    if card.is_of_vllm:
        return ", the same part of a model; nothing else differs"
    return "; nothing else differs" if "gm" in card.row.fields else ", the same graph; nothing else differs"


def card_html(number: int, card: Card) -> str:
    """A card for a notebook."""
    # Old and new value, if one field alone made the cause.
    change = f" {safe(card.changes[0].summary)}" if len(card.changes) == 1 else ""
    where = "".join(f"<li>{safe(place_text(place))}</li>" for place in card.places)
    sizes = f"<div>{safe(card.guards.text)}</div>" if card.guards else ""
    advice = "".join(f"<div style='{FAINT_STYLE}'>{safe(line.text)}</div>" for line in _advice_lines(card))
    return (
        f"<details {'open' if number == 1 else ''}><summary>{number}. <code>{safe(card.title)}</code>{change}"
        f" · {safe(cost_text(card))}</summary>{sizes}<ul>{where}</ul>{advice}</details>"
    )
