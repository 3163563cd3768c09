"""Why it missed: what to fix first, each cause explained, every miss, and what if a field did not count."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from cachescope.answers.cards import MOST, Card, Cards, nothing_to_fix, ways
from cachescope.answers.chosen import Chosen
from cachescope.answers.directory import past_misses
from cachescope.answers.explanation import Explanation
from cachescope.answers.names import cache_name
from cachescope.answers.read import Read
from cachescope.answers.vllm import VllmFolders
from cachescope.columns import rows_of
from cachescope.figures.key_strip import key_difference
from cachescope.figures.texts import run_labels
from cachescope.frames.checks import FalseHit
from cachescope.frames.replay_rows import CauseSaving
from cachescope.report.blocks import Block, Drawing, Fold, Group, Section, WorkItems, table
from cachescope.report.cards import NEVER_ASKED, FirstCards, cost_text, place_text, title_of
from cachescope.report.explanation import change_blocks, told_lines
from cachescope.report.layout import Line, rest
from cachescope.report.page.compiling import path_drawing
from cachescope.report.page.lookups import lookup_table
from cachescope.report.page.replay import replay_parts
from cachescope.report.tables import FALSE_HITS, Column, timed
from cachescope.report.vllm import vllm_lines
from cachescope.report.what_if_forms import BY_CAUSE, CAUSE_SAVINGS, sensitivity_lines
from cachescope.report.why_missed import past_lines
from cachescope.verdict_kinds import VERDICTS, kind_of
from cachescope.wording import listed, plural, short_key

_WAYS: Final = 3
# Each is a picture, a table and a diff of code.
EXPLAINED: Final = 10
_PLACES: Final = 8
# Sets of fields that would help.
_RANKED: Final = 100


def anchor_of(number: int) -> str:
    """Where a cause is explained."""
    return f"cause-{number}"


def cause_group(scope: Read, number: int, card: Card) -> Group:
    """The explanation of one cause."""
    cause = card.row
    told = f"{cause.verdict}: {VERDICTS[cause.verdict]}. {cost_text(card)}."
    blocks: list[Block] = [Line(told, style="dim")]
    found = ways(scope, cause.cause, _WAYS)
    for place, explained in enumerate(found):
        blocks += [] if place == 0 else [Line("In another way:")]
        blocks += told_lines(explained)
        # A key of vLLM is no list of hash details.
        is_of_details = scope.facts.lookups[explained.lookup].detail_set is not None
        if place == 0 and explained.changes and is_of_details:
            blocks.append(_strip(scope, explained))
        source = f"scope.explain({explained.lookup}).frame"
        blocks += change_blocks(explained.changes, source, most=20, diffs=2, most_lines=120)
    if card.advice:
        blocks.append(Line(f"What to do: {card.advice}"))
    blocks.append(Line("Where it struck:"))
    blocks += (Line(place_text(place), 2) for place in card.places)
    blocks += rest(card.roots - len(card.places), "lookup", "in the table of lookups below", 2)
    # Where it changed in several ways, none of them is the title.
    title = title_of(card) if len(found) == 1 else card.title
    return Group(anchor_of(number), f"{number}. {title}", tuple(blocks))


def _strip(scope: Read, explained: Explanation) -> Drawing:
    fields = scope.hash_details(lookup=explained.lookup)
    # The hover text of a cell is a line: the values are in the table.
    fields = fields.assign(value_text=fields["value_text"].str.slice(0, 200))
    frame = explained.frame.drop(columns=["before", "after"])
    return Drawing("All fields of the key, the changed ones numbered", key_difference, (frame, fields))


def why_section(scope: Read) -> Section:
    """Question 2: why, cause by cause, then every miss, then warnings."""
    sentence = (
        "Each cause with its costliest miss: which fields of the key changed, from what to what, against which earlier lookup"
        " it was held, and where else it struck. Hashes are compared, never texts."
    )
    causes = Cards.of(scope, most=EXPLAINED, places=_PLACES)
    blocks: list[Block] = [cause_group(scope, number, card) for number, card in enumerate(causes.cards, 1)]
    if not causes.cards:
        blocks.append(Line(nothing_to_fix(Chosen(scope))))
    if causes.more:
        more = plural(causes.more, "more cause is", "more causes are")
        blocks.append(Line(f"{more} in the list above and in scope.causes.", style="dim"))
    if past := past_lines(past_misses(scope)):
        intro = Line("Read from the directory itself: which field made each further entry of a graph.")
        blocks.append(Group("past", "Past misses", (intro, *past)))
    if (vllm := VllmFolders.of(scope)) is not None:
        blocks.append(Group("vllm", "vLLM's torch_compile_cache", tuple(vllm_lines(vllm))))
    explained = {card.row.cause: number for number, card in enumerate(causes.cards, 1)}
    if scope.facts.lookups:
        # All of them to sort and to filter; those that missed for paper, and where no script runs.
        blocks.append(Group("misses", "Every lookup", (lookup_table(scope, explained), *_misses(scope))))
    if false_hits := rows_of(scope.false_hits, FalseHit):
        intro = Line(
            "Keys that seem to stand for more than one thing: warnings with their evidence, not certainties."
        )
        shown = table("Possible false hits", FALSE_HITS, false_hits, "warnings", "scope.false_hits")
        blocks.append(Group("false-hits", "Possible false hits", (intro, shown)))
    return Section("why", "Why did each one miss?", sentence, tuple(blocks))


def what_if_section(scope: Read) -> Section:
    """Question 3: would it have hit without that field."""
    sentence = "All lookups in torch's caches are replayed, in time order, as if a field were not in the key."
    blocks: tuple[Block, ...] = (Line("No lookup in torch's caches was read, so none can be replayed."),)
    if scope.asked_torch:
        ranking = sensitivity_lines(scope.sensitivity(), _RANKED, "scope.sensitivity() has all")
        blocks = (*ranking, *replay_parts(scope), *_by_cause(scope))
    return Section("what-if", "What if a field did not count?", sentence, blocks)


def _by_cause(scope: Read) -> Iterator[Block]:
    """What leaving out the changed fields of each cause would do, as the worklist names them."""
    named = {card.row.cause: card.title for card in Cards.of(scope, most=MOST, places=0).cards}
    if rows := rows_of(scope.cause_savings(), CauseSaving):
        titled = [(named.get(row.cause) or listed(row.fields, 8) or row.summary, row) for row in rows]
        yield table(BY_CAUSE, CAUSE_SAVINGS, titled, "causes by time lost", "scope.cause_savings()")


def _misses(scope: Read) -> Iterator[Block]:
    """The misses once more, for paper and where no script runs."""
    facts, labels = scope.facts, run_labels(scope.runs)
    rows = [(facts.lookups[miss.lookup], miss) for miss in facts.misses.values()]
    rows.sort(key=lambda row: -(row[0].time_taken_ns or 0))
    columns = (
        Column("Lookup", "name", lambda row: row[0].lookup),
        Column("Run", "word", lambda row: labels[row[0].run]),
        Column("Cache", "word", lambda row: cache_name(row[0])),
        Column("Compile", "word", lambda row: row[0].compile_id),
        Column("Function", "word", lambda row: row[0].function),
        Column("Key", "word", lambda row: row[0].cache_key and short_key(row[0].cache_key)),
        Column("Verdict", "word", lambda row: row[1].verdict),
        Column("Role", "word", lambda row: "root" if row[1].root else "follows"),
        Column("Time lost", "number", lambda row: timed(row[0].time_taken_ns)),
        Column("Why", "text", lambda row: row[1].reason),
    )
    if rows:
        title = "Lookups that missed, by time lost"
        yield table(title, columns, rows, "misses by time lost", "scope.misses")


def causes_section(scope: Read) -> Section:
    """What to fix first: the first screen."""
    found = FirstCards.of(Chosen(scope))
    order = [cause.cause for cause in scope.facts.causes if not kind_of(cause).is_first]
    anchors = {cause: anchor_of(number) for number, cause in enumerate(order[:EXPLAINED], 1)}
    blocks: list[Block] = []
    if found.first:
        blocks.append(WorkItems("What to fix, the costliest on top", found.first, anchors))
    if found.later:
        later = WorkItems("What to fix besides", found.later, anchors)
        blocks.append(Fold(found.later_title, (later,)))
    if found.apart:
        blocks += [Line(f"{NEVER_ASKED}:"), WorkItems(NEVER_ASKED, found.apart, anchors)]
    blocks += [Line(note, style="dim") for note in found.notes]
    return Section("causes", "What should be fixed first?", "", (*path_drawing(scope), *blocks))
