"""Why lookups missed, in short: the answer, then causes by time lost; for the terminal, a Scope's repr, and a recorded block."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from cachescope.analysis.rates import known_sum
from cachescope.answers.cards import MOST, Card, Cards
from cachescope.answers.chosen import Chosen
from cachescope.answers.costs import WORDS, headline, is_spread
from cachescope.answers.explanation import Explanation
from cachescope.answers.names import lookups_of_cause, short_fields
from cachescope.answers.recording import Recording
from cachescope.answers.starts import differing_ranks
from cachescope.answers.summary import counts_text, footer, why_no_lookup
from cachescope.frames.answer_rows import RankDifference
from cachescope.frames.checks import FalseHit
from cachescope.frames.linked_rows import PastMiss
from cachescope.grouping import by_key
from cachescope.keys.key_fields import is_input
from cachescope.readers.directory.default_root import default_root
from cachescope.report.blocks import Block, CardText, Diff, Group, WorkItems, diff_lines
from cachescope.report.explanation import explanation_blocks, setting_lines
from cachescope.report.html import answer_html, lines_html, safe
from cachescope.report.layout import Line, parted, problem_lines, rest, titled
from cachescope.report.terminal import terminal_lines
from cachescope.report.vllm import vllm_lines
from cachescope.terms import UNREADABLE
from cachescope.verdict_kinds import KINDS, kind_of
from cachescope.wording import (
    A_MESH_MAY_DIFFER,
    duration,
    harmless_line,
    listed,
    plural,
    rank_names,
    short,
    short_key,
)

_CHANGES: Final = 4
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
        code=None if changed is None else Diff("", *diff_lines(changed.diff, 10)),
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


_GROUPS_SHOWN: Final = 10
_KEYS_SHOWN: Final = 2
_FAILED_SHOWN: Final = 4
_RANKS_SHOWN: Final = 8
_TENSOR: Final = re.compile(
    r"TensorMetadata\(dtype=torch\.(?P<dtype>\w+), shape=torch\.Size\((?P<shape>\[[^\]]*\])\)"
)
_NOTHING: Final = "Functions that this process compiled before the block are not compiled again: torch._dynamo.reset() forgets them, and so does a recording with fresh=True."


def past_lines(read: Recording) -> list[Line]:
    """The misses that directories show without a log, by reason, the costliest first; no line if there are none."""
    past, entries = read.missed_before.rows, read.facts.entries

    def reason_of(row: PastMiss) -> tuple[bool, str, tuple[str, ...]]:
        # The earlier entry may lie in another directory, where torch may never have looked.
        is_elsewhere = entries[row.entry].root != entries[row.baseline_entry].root
        return is_elsewhere, row.verdict, tuple(sorted(row.changed))

    groups = by_key((reason_of(row), row) for row in past)
    ordered = sorted(groups.items(), key=lambda group: (-_lost(group[1]), -len(group[1])))
    parts = (
        _past_lines(read, number, rows, is_elsewhere)
        for number, ((is_elsewhere, *_), rows) in enumerate(ordered[:_GROUPS_SHOWN], 1)
    )
    more = rest(len(ordered) - _GROUPS_SHOWN, "reason", "see scope.past_misses", 0, "")
    if all(row.is_order_known for row in past):
        title = f"{plural(len(past), 'entry was', 'entries were')} made although the graph had been stored before:"
    else:
        title = f"{plural(len(past), 'entry is', 'entries are')} of a graph that has another entry:"
    return titled(title, [*parted(parts), *more])


def _lost(rows: Iterable[PastMiss]) -> int:
    return sum(row.time_taken_ns or 0 for row in rows)


def _past_lines(read: Recording, number: int, rows: Sequence[PastMiss], is_elsewhere: bool) -> Iterator[Line]:
    changes = read.past_changes(rows[0])
    if not changes:
        kind = KINDS[rows[0].verdict, ""]
        title = (is_elsewhere and kind.in_other_directory) or kind.in_directory
    elif len(changes) == 1:
        title = f"{changes[0].field}   {changes[0].summary}"
    else:
        title = f"{len(changes)} fields changed"
    right = f"{plural(len(rows), 'miss'):>8}  {duration(_lost(rows) or None):>6}"
    yield Line(f"{number}  {title}", style="bold", right=right)
    if len(changes) > 1:
        yield from (Line(f"{change.field}   {change.summary}", 3) for change in changes)
    for row in rows[:_KEYS_SHOWN]:
        direction = f" {row.direction}" if row.direction == "backward" else ""
        before = read.facts.entries[row.baseline_entry].cache_key or ""
        yield Line(f"fxgraph{direction} {short_key(row.cache_key)} beside {short_key(before)}", 3)
    yield from rest(len(rows) - _KEYS_SHOWN, style="")
    if not all(row.is_order_known for row in rows):
        yield Line(
            "their modification times do not show that one was stored before the other was compiled", 3, "dim"
        )
    if changes:
        yield from _same_code(rows)


def _same_code(rows: Sequence[PastMiss]) -> Iterator[Line]:
    same = [row for row in rows if row.same_code is True]
    if not same:
        return
    of_all = "" if len(same) == len(rows) else f" for {len(same)} of {len(rows)}"
    found = {row.same_binaries for row in same}
    if False in found:
        rest = "but kernels compiled from it differ: what changed does matter"
    elif found == {True}:
        rest = "and so are its compiled kernels: what changed was not needed for this graph"
    else:
        shown = "as far as its source shows (not all compiled kernels could be compared)"
        rest = f"what changed was not needed for this graph, {shown}"
    yield Line(f"The generated source is the same{of_all}, {rest}.", 3)


def answer_blocks(read: Recording, runs: Collection[int] | None = None, most: int = 10) -> Iterator[Block]:
    """The answer to "Why did it miss?": rates, causes by time lost, and the rest; for all runs or some."""
    chosen = Chosen(read) if runs is None else Chosen.of_runs(read, runs)
    said = headline(chosen) if runs is None or len(chosen) else _why_no_lookup(read, runs)
    if failed := failed_lines(read, runs):
        yield from (*failed, Line())
    yield Line(said, style="bold")
    if counts := counts_beside(chosen, said):
        yield Line(counts, style="dim")
    if not read.facts.lookups:
        from cachescope.report.compiled import again_lines

        if again := again_lines(read, 3):
            yield from (Line(), *again, Line())
    yield from first_cards(chosen, most=most, where="--causes N shows more")
    if not read.asked_torch:
        yield from parted([past_lines(read)])
    if runs is None:
        yield from parted([rank_lines(differing_ranks(read).rows), vllm_lines(read), _trend(read)])
    yield from problem_lines(read.tables.problems.rows)
    yield from false_hit_lines(read.suspected.rows)


def _why_no_lookup(read: Recording, runs: Collection[int]) -> str:
    return f"no lookup of this run is recorded: {why_no_lookup(read, runs)}"


def counts_beside(chosen: Chosen, said: str) -> str:
    """Lookups, hits and misses in one line; nothing if there are none, or if the headline said it."""
    counts = counts_text(chosen.read, chosen.rows) if len(chosen) else ""
    return "" if counts == said else counts


def _trend(read: Recording) -> list[Block]:
    if not is_spread(read):
        return []
    from cachescope.report.rates import trend_blocks

    return trend_blocks(read, 14)


def failed_lines(read: Recording, runs: Collection[int] | None) -> list[Line]:
    """The compiles that failed, by error; no line if none did."""
    of_runs = [row for row in read.facts.runs.values() if runs is None or row.run in runs]
    failed = dict.fromkeys(text for row in of_runs for text in row.failed_compiles)
    if not failed:
        return []
    parts = (text.partition(": ") for text in failed)
    of_error = by_key((_in_short(error), place) for place, _, error in parts)
    lines = []
    for error, places in islice(of_error.items(), _FAILED_SHOWN):
        lines.append(Line(short(error, 300), 3, hang=3))
        lines.append(Line(listed(map(short, places), _FAILED_SHOWN), 6, "dim", hang=3))
    lines += rest(len(of_error) - _FAILED_SHOWN, "error", "in scope.runs", 3)
    numbers = {row.run for row in of_runs}
    compiles = [row for row in read.compiles_read[0].rows if row.run in numbers]
    # Collected logs have only the errors, each once.
    count = max(sum(row.error is not None for row in compiles), len(failed))
    of = f"{count:,} of {plural(max(len(compiles), count), 'compile')}"
    return titled(f"{of} failed (torch ran these functions without compiling them, or raised):", lines)


def _in_short(error: str) -> str:
    """A compiler's error without its command (triton/runtime/build.py, `_build`), which names a temporary folder."""
    before, is_command, command = error.partition("Command '['")
    compiler, _, arguments = command.partition("'")
    _, has_output, rest = arguments.partition("'-o', '")
    output, _, rest = rest.partition("'")
    ends = [at for word in ("' returned", "' died") if (at := rest.find(word)) >= 0]
    if not (is_command and has_output and ends):
        return error
    return f"{before}{compiler} could not build {output.rpartition('/')[2]}: it {rest[min(ends) + 2 :]}"


def rank_lines(rows: Sequence[RankDifference]) -> Iterator[Line]:
    """The fields in which ranks of a job differ from the majority; nothing if there are none."""
    if not rows:
        return
    yield Line("ranks that differ from the others", style="bold")
    names = short_fields(row.field for row in rows)
    # Ranks with different batches differ in many inputs.
    alike = ((is_input(row.field) or row.field, row.ranks, row.has_majority, row.values) for row in rows)
    told = by_key(zip(alike, rows, strict=True))
    for row, *others in islice(told.values(), _RANKS_SHOWN):
        more = f" and {plural(len(others), 'more input')}" if others else ""
        where = f"{plural(row.graphs, 'graph')}, {plural(row.misses, 'miss')}{more and ' or more'}"
        yield Line(f"{names[row.field]}{more}   {_difference(row)}", 3, right=where)
    yield from rest(len(told) - _RANKS_SHOWN, "field", "scope.rank_differences")


def _difference(row: RankDifference) -> str:
    ranks, compared = row.ranks, row.ranks_compared
    if row.has_majority:
        of = f"{plural(len(ranks), 'rank')} of {compared} ({rank_names(ranks)})"
        one, most = map(_value, _where_they_differ(row.other_value, row.majority_value))
        return f"{of}: {one}, the others {most}"
    # The first line of a graph is the same everywhere.
    value = "" if "\n" in (row.other_value or "") else f": {_value(row.other_value)}"
    if row.values == compared:
        return f"each of {compared} ranks has its own{value and f'{value} in rank {ranks[0]}'}"
    return f"{row.values} values among {compared} ranks, none in most{value and f'{value} in one'}"


def _where_they_differ(one: str | None, other: str | None) -> tuple[str | None, str | None]:
    """The first lines in which two texts differ, such as the code of two graphs; the whole texts if one has no such line."""
    if one is None or other is None:
        return one, other
    lines = zip(one.split("\n"), other.split("\n"), strict=False)
    return next(((a.strip(), b.strip()) for a, b in lines if a != b), (one, other))


def _value(text: str | None) -> str:
    if text is None:
        return "no such field"
    tensor = _TENSOR.match(text)
    return short(text if tensor is None else f"{tensor['dtype']}, shape {tensor['shape']}", 60)


def false_hit_lines(found: Sequence[FalseHit]) -> Iterator[Line]:
    """The first warnings of keys that seem to stand for more than one thing."""
    if not found:
        return
    where = "in --json and scope.false_hits; a warning, no certainty"
    yield Line(f"possible false hits: {len(found)}, {where}")
    for row in found[:2]:
        key = "" if row.cache_key is None else f"{row.cache} {short_key(row.cache_key)}: "
        yield Line(f"{key}{row.evidence}", 2, "dim", rows=5)


def recorded_blocks(read: Recording, run: int, keys_beside: int) -> Iterator[Block]:
    """The answer for a recorded block of code, the number of earlier blocks that it is compared with, and that of further keys in the cache directory."""
    if all(row.run != run for row in read.facts.lookups.values()):
        failed, said = failed_lines(read, {run}), Line(_why_no_lookup(read, {run}), style="bold")
        yield from (*failed, Line(), said) if failed else (said, Line(_NOTHING, style="dim"))
        yield from problem_lines(read.tables.problems.rows)
        return
    yield from answer_blocks(read, {run})
    if earlier := len(read.facts.runs) - 1:
        yield Line(f"compared with {plural(earlier, 'earlier run')}", style="dim")
    if keys_beside:
        root = default_root()
        others = f"not compared with {plural(keys_beside, 'key')} that {root} holds besides"
        how = f"%%cachescope --against {shlex.quote(root)}, or cachescope.recording(against=[{root!r}])"
        yield Line(f"{others}: {how}, does that", style="dim")


def block_html(read: Recording, run: int, keys_beside: int) -> str:
    """The HTML repr: the same lines, and the costliest explained miss with everything that changed."""
    below, facts = "", read.facts
    causes = (cause for cause in read.explained.rows if not kind_of(cause).is_first)
    roots = ((cause, miss.lookup) for cause in causes for miss in facts.roots_of(cause.cause))
    costliest = next((one for one in roots if facts.lookups[one[1]].run == run), None)
    if costliest is not None:
        cause, lookup = costliest
        whole = lines_html(terminal_lines(explanation_blocks(Explanation.of(read, lookup))))
        below = f"<details><summary>{safe(cause.summary)}, in full</summary>{whole}</details>"
    return answer_html(recorded_blocks(read, run, keys_beside), below)


def summary_text(read: Recording) -> str:
    """The text repr: what was avoidable, and the costliest causes. Their places are left out, which may take long to find."""
    facts, chosen = read.facts, Chosen(read)
    said = headline(chosen)
    lines = [f"cachescope.Scope: {said}", *(f"  {text}" for text in (counts_beside(chosen, said),) if text)]
    causes = [row for row in read.explained.rows if not kind_of(row).is_first]
    for number, cause in enumerate(causes[:3], 1):
        cost = f"{lookups_of_cause(cause)}  {duration(cause.time_lost_ns)}"
        lines.append(f"  {number}  {cause.summary}  [{cause.verdict}]  {cost}")
    if facts.lookups or read.tables.problems.rows:
        lines.append(f"  {footer(chosen)}")
    if facts.entries:
        statuses = Counter(row.status for row in facts.entries.values())
        also = f", unreadable: {statuses[UNREADABLE]}" if statuses[UNREADABLE] else ""
        lines.append(f"  entries: {len(facts.entries)}, damaged: {statuses['damaged']}{also}")
    return "\n".join(map(harmless_line, lines))


def summary_html(read: Recording) -> str:
    """The HTML repr: the answer, with the costliest causes."""
    return answer_html(answer_blocks(read, most=5))
