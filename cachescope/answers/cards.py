"""The causes as cards: what changed, where, what it cost and what to do about it; the costliest first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from cachescope.analysis.differences import FieldChange
from cachescope.answers.chosen import Chosen
from cachescope.answers.costs import cost_of
from cachescope.answers.explanation import Explanation, guard_miss, what_to_do
from cachescope.answers.names import (
    baseline_name,
    fields_text,
    is_named_by_fields,
    lookup_in_run,
    lookup_name,
    place_name,
    place_of,
    run_name,
    short_field,
)
from cachescope.answers.recording import MOST_BYTES_READ_AGAIN, Recording
from cachescope.answers.summary import footer
from cachescope.frames.answer_rows import CauseRow, MissRow
from cachescope.frames.recorded_rows import LookupRow
from cachescope.grouping import by_key
from cachescope.keys.key_fields import is_input
from cachescope.terms import VLLM
from cachescope.verdict_kinds import kind_of
from cachescope.wording import function_name, harmless, listed, numbered, plural, short

if TYPE_CHECKING:
    from cachescope.answers.guard_miss import GuardMiss

MOST: Final = 20
"""The number of cards in a list that is read as a whole."""
# A cause is one set of fields. Their values may differ from miss to miss.
_ROOTS_TRIED: Final = 20
_OTHER_VALUES: Final = 3
_PLACES_NAMED: Final = 2
_LONGEST_NAME: Final = 80


class Card(NamedTuple):
    """One cause, for the chosen lookups."""

    row: CauseRow  # its row, with its counts among these lookups
    title: str  # what to look at: the changed fields without the shared part of their names, or the reason
    cost: str  # what its compiles were: avoidable, or one of the others of `cachescope.answers.costs`
    roots: int  # how many of its misses do not follow from another
    first: MissRow  # the first root miss
    name: str  # the lookup of that miss
    baseline: str | None  # what that miss is compared with
    changes: tuple[FieldChange, ...]  # what changed for that miss
    is_by_guard: bool  # whether a failed guard is why: the changes in the key follow from it
    # The lines of a program or a shell that give changed fields the value of the baseline, by where they belong.
    settings: dict[str, tuple[str, ...]]
    # What else can be done; for a guard miss, about the first root, if its size is known
    advice: str | None
    # Runs in which the same fields changed to other values.
    other_values: tuple[tuple[int, str], ...]
    where: str  # the functions, runs and ranks concerned
    places: tuple[str, ...]  # the first root misses, each with the misses that follow
    # For guard misses, the size and the line of the first root, if traces show them and are small.
    guards: GuardMiss | None = None
    is_of_vllm: bool = False  # whether the misses are of vLLM's own lookups

    @classmethod
    def of(cls, chosen: Chosen, cause: CauseRow, title: str, places: int) -> Self:
        """The card of a cause, with a title and up to so many places."""
        read, facts, roots = chosen.read, chosen.read.facts, chosen.roots_of(cause.cause)
        told = roots[0]
        if kind_of(cause).is_told_by_reason:
            # The graphs below explain an AOTAutograd lookup without hash details.
            told = next((miss for miss in chosen.misses_of(cause.cause) if miss.baseline), told)
        is_by_guard = kind_of(cause).is_of_function and bool(facts.lookups[told.lookup].recompile_reasons)
        changes = () if is_by_guard else read.changes(told.lookup)
        guards = guard_miss(read, roots[0], MOST_BYTES_READ_AGAIN)
        settings, advice = what_to_do(read, told, changes, guards)
        return cls(
            row=cause,
            title=title,
            cost=cost_of(read, cause),
            roots=len(roots),
            first=told,
            name=lookup_name(facts.lookups[told.lookup]),
            baseline=baseline_name(facts, told, read.history),
            changes=changes,
            is_by_guard=is_by_guard,
            settings=settings,
            advice=None if kind_of(cause).is_advice_in_reason else advice,
            other_values=tuple(_other_values(read, roots, changes)) if is_named_by_fields(cause) else (),
            where=_where(read, cause, roots),
            places=tuple(_place(read, root) for root in roots[:places]),
            guards=guards,
            is_of_vllm=facts.lookups[told.lookup].cache == VLLM,
        )


class Cards(NamedTuple):
    """All causes except first lookups, which need no explanation: avoidable ones first, then the costliest."""

    cards: tuple[Card, ...]  # the first of them, each under a title of its own
    # The number of further causes, and of their misses.
    more: int
    more_misses: int
    rest: str  # what no card has: first lookups, misses that nothing explains, problems

    @property
    def works(self) -> tuple[Card, ...]:
        """The cards about misses."""
        return tuple(card for card in self.cards if kind_of(card.row).is_miss)

    @property
    def apart(self) -> tuple[Card, ...]:
        """The cards about lookups that never reached the cache: bypassed, or with caching switched off."""
        return tuple(card for card in self.cards if not kind_of(card.row).is_miss)

    @classmethod
    def of(cls, chosen: Chosen, most: int = 10, places: int = 2) -> Self:
        """The cards for some lookups: details for so many causes, and so many places of each."""
        every = _in_order(chosen)
        shown, rest = every[:most], every[most:]
        titles = cause_titles(chosen, shown)
        return cls(
            tuple(Card.of(chosen, cause, titles[cause.cause], places) for cause in shown),
            len(rest),
            sum(cause.misses for cause in rest),
            footer(chosen),
        )


def ways(read: Recording, cause: int, most: int) -> list[Explanation]:
    """The explanation of the costliest root of a cause, and of roots whose values changed in another way."""
    facts = read.facts
    roots = [miss.lookup for miss in facts.misses_of(cause) if miss.root]
    roots.sort(key=lambda lookup: -(facts.lookups[lookup].time_taken_ns or 0))
    found: dict[object, int] = {}
    for root in roots[:_ROOTS_TRIED]:
        # Graphs differ anyway: that all of them changed counts as one way.
        way = tuple("" if change.diff else change.summary for change in read.changes(root))
        found.setdefault(way or facts.misses[root].reason, root)
    return [Explanation.of(read, root) for root in list(found.values())[:most]]


def _other_values(
    read: Recording, roots: Sequence[MissRow], told: Sequence[FieldChange]
) -> Iterator[tuple[int, str]]:
    seen = {change.summary for change in told}
    pairs = {(change.before, change.after) for change in told}
    runs = 0
    for root in roots[1:_ROOTS_TRIED]:
        # Graphs differ anyway, and ranks that begin at once are compared with each other.
        others = [
            change
            for change in read.changes(root.lookup)
            if change.field != "gm" and change.summary not in seen
            if not (change.process_values and (change.after, change.before) in pairs)
        ]
        if not others:
            continue
        field = f"{short_field(others[0].field)}: " if len(told) > 1 else ""
        more = f", and {plural(len(others) - 1, 'more field')}" if len(others) > 1 else ""
        yield read.facts.lookups[root.lookup].run, f"{field}{others[0].summary}{more}"
        runs += 1
        if runs == _OTHER_VALUES:
            return
        seen.update(change.summary for change in others)
        pairs.update((change.before, change.after) for change in others)


def _place(read: Recording, root: MissRow) -> str:
    facts = read.facts
    name, followers = lookup_in_run(facts, facts.lookups[root.lookup]), facts.followers_of(root)
    because = f" and, because of it, {listed(map(lookup_name, followers), 3)}"
    return name + (because if followers else "")


def cause_titles(chosen: Chosen, causes: Sequence[CauseRow]) -> dict[int, str]:
    """The titles of some causes. Equal ones are told apart by their place, their compile, or else by a number."""
    read = chosen.read
    titles = {cause.cause: _title(read, cause, chosen.roots_of(cause.cause)) for cause in causes}

    def place(title: str, cause: CauseRow) -> str:
        roots = chosen.roots_of(cause.cause)
        where = _where(read, cause, roots).removeprefix("in ").partition(", in ")[0]
        # A place has the name of the function in it.
        told = _title(read, cause, roots, where)
        return f"{title} in {where}" if told == title else told

    def compile_of(title: str, cause: CauseRow) -> str:
        number = read.facts.lookups[chosen.roots_of(cause.cause)[0].lookup].compile_id
        return f"{title}, compile {number}" if number else title

    for way in (place, compile_of, lambda title, cause: f"{title} (cause {cause.cause})"):
        count = Counter(titles.values())
        alike = [cause for cause in causes if count[titles[cause.cause]] > 1]
        titles |= {cause.cause: way(titles[cause.cause], cause) for cause in alike}
    return titles


def _title(read: Recording, cause: CauseRow, roots: Sequence[MissRow], where: str = "") -> str:
    """What to look at; for code, the functions that it is of, or `where` these are."""
    if not is_named_by_fields(cause):
        return cause.summary
    named = (rows for rows in _by_place(read, roots) if rows[0].function)
    functions = list(dict.fromkeys(function_name(*rows) for rows in named))
    if functions and "gm" in cause.fields and all(one == "gm" or is_input(one) for one in cause.fields):
        what = "code" if cause.fields == ("gm",) else "code and inputs"
        return f"{what} of {where or listed(functions, _PLACES_NAMED)}"
    return fields_text(cause.fields, 4)


def _in_order(chosen: Chosen) -> list[CauseRow]:
    """All causes except first lookups: avoidable ones first, then the costliest."""
    every = [cause for cause in chosen.causes if not kind_of(cause).is_first]
    return sorted(every, key=lambda cause: cost_of(chosen.read, cause) not in ("avoidable", "at once"))


def cause_names(read: Recording) -> list[tuple[str, int]]:
    """Distinct titles, cut to one length: of misses, then what never reached the cache, then first lookups."""
    chosen = Chosen(read)
    causes = sorted(_in_order(chosen), key=lambda cause: not kind_of(cause).is_miss)
    causes += [cause for cause in chosen.causes if kind_of(cause).is_first]
    short = [(_cut(harmless(title)), cause) for cause, title in cause_titles(chosen, causes).items()]
    count = Counter(name for name, _ in short)
    return [(name if count[name] == 1 else _cut(name, f" (cause {cause})"), cause) for name, cause in short]


def _cut(name: str, end: str = "") -> str:
    return short(name, _LONGEST_NAME - len(end)) + end


def _by_place(read: Recording, roots: Sequence[MissRow]) -> Iterable[list[LookupRow]]:
    """The lookups of a cause by function, even if some lack the class: torch names it only where a compile ends."""
    rows = (read.facts.lookups[root.lookup] for root in roots[:_ROOTS_TRIED])
    return by_key((place_of(row), row) for row in rows).values()


def _where(read: Recording, cause: CauseRow, roots: Sequence[MissRow]) -> str:
    facts = read.facts
    named = (place_name(rows[0], facts.files, *rows) for rows in _by_place(read, roots))
    functions = list(dict.fromkeys(filter(None, named)))
    run = run_name(facts, cause.runs[0]) if len(cause.runs) == 1 else plural(len(cause.runs), "run")
    ranks = f", {numbered('rank', cause.ranks)}" if len(cause.ranks) > 1 else ""
    more = " or more" if functions and len(roots) > _ROOTS_TRIED else ""
    return f"{listed(functions, _PLACES_NAMED)}{more}, in {run}{ranks}" if functions else f"in {run}{ranks}"
