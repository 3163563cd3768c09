"""Lookups: what to fix first, did they hit, when, and where the time went; why each missed, and what if a field did not count."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from cachescope.answers.cards import Card, ways
from cachescope.answers.chosen import Chosen
from cachescope.answers.names import cache_name
from cachescope.answers.read import Read
from cachescope.answers.time_spent import TimeSpent
from cachescope.figures.compile_time import compiles, phases
from cachescope.figures.graph_grid import runs_by_graph
from cachescope.figures.key_strip import key_difference
from cachescope.figures.over_time import timeline
from cachescope.figures.rates import outcomes
from cachescope.frames.answer_rows import MissRow
from cachescope.report.blocks import Block, Column, Drawing, Group, Numbers, Table, table, timed
from cachescope.report.cards import first_cards
from cachescope.report.explanation import change_blocks, told_lines
from cachescope.report.layout import Line, rest
from cachescope.report.page.replay import replay_parts
from cachescope.report.rates import rate_numbers, rates_table, trend_blocks
from cachescope.report.time_spent import time_blocks
from cachescope.report.vllm import vllm_lines
from cachescope.report.what_if_forms import saving_blocks, sensitivity_lines
from cachescope.report.why_missed import past_lines
from cachescope.verdict_kinds import VERDICTS, kind_of
from cachescope.wording import short_key

_WAYS: Final = 3
# Each is a picture, a table and a diff of code.
_EXPLAINED: Final = 10
_PLACES: Final = 8
_LOOKUPS: Final = 2000
_STRIP: Final = "All fields of the key, the changed ones numbered"
# Sets of fields that would help.
_RANKED: Final = 100


def _evidence(scope: Read, card: Card) -> Iterator[Block]:
    """The explanation of one cause, in each way in which it changed, and where it struck."""
    yield Line(f"{card.row.verdict}: {VERDICTS[card.row.verdict]}.", style="dim")
    for place, explained in enumerate(ways(scope, card.row.cause, _WAYS)):
        yield from [Line("In another way:")] if place else []
        yield from told_lines(explained)
        # A key of vLLM is no list of hash details.
        details = scope.facts.lookups[explained.lookup].detail_set
        if place == 0 and explained.changes and details is not None:
            # The hover text of a cell is a line: the values are in the table.
            fields = [
                replace(one, value_text=one.value_text[:200])
                for one in scope.tables.hash_details.details(details)
            ]
            yield Drawing(_STRIP, key_difference, (explained.changes, fields))
        source = f"scope.explain({explained.lookup}).frame"
        yield from change_blocks(explained.changes, source, most=20, diffs=2, most_lines=120)
    yield Line("Where it struck:")
    yield from (Line(place, 2) for place in card.places)
    yield from rest(card.roots - len(card.places), "lookup", "in the table of lookups below", 2)


def why_blocks(scope: Read) -> Iterator[Block]:
    """Question 2: why, lookup by lookup, with what the directory says of earlier misses, and warnings."""
    if scope.facts.lookups:
        yield Group("misses", "Every lookup", (_lookups(scope),))
    if past := past_lines(scope):
        intro = Line("Read from the directory itself: which field made each further entry of a graph.")
        yield Group("past", "Past misses", (intro, *past))
    if vllm := vllm_lines(scope):
        yield Group("vllm", "vLLM's torch_compile_cache", tuple(vllm))


def what_if_blocks(scope: Read) -> Iterator[Block]:
    """Question 3: would it have hit without that field."""
    if not scope.asked_torch:
        return
    yield from sensitivity_lines(scope.sensitivity_rows(), _RANKED)
    yield from replay_parts(scope)
    yield from saving_blocks(scope)


def _lookups(scope: Read) -> Table:
    """Every lookup, those that missed first, by time lost."""
    facts = scope.facts
    rows = [(row, facts.misses.get(row.lookup)) for row in facts.lookups.values()]
    rows.sort(key=lambda row: (row[1] is None, -(row[0].time_taken_ns or 0)))
    columns = (
        Column("Lookup", "name", lambda row: row[0].lookup),
        Column("Run", "name", lambda row: row[0].run),
        Column("Rank", "name", lambda row: facts.runs[row[0].run].rank, is_optional=True),
        Column("Cache", "word", lambda row: cache_name(row[0])),
        Column("Compile", "word", lambda row: row[0].compile_id),
        Column("Function", "word", lambda row: row[0].function, is_optional=True),
        Column("Key", "word", lambda row: row[0].cache_key and short_key(row[0].cache_key)),
        Column("Outcome", "word", lambda row: row[0].outcome),
        Column("Compile time", "number", lambda row: timed(row[0].time_taken_ns)),
        Column("Beside", "word", lambda row: row[1] and row[1].baseline, is_optional=True),
        Column("Why", "text", lambda row: row[1] and _reason(row[1]), is_optional=True),
    )
    name, what = "Lookups, those that missed first", "lookups by time lost"
    return table(name, columns, rows, what, "scope.lookups", _LOOKUPS)


def _reason(miss: MissRow) -> str:
    evidence = "" if miss.evidence == "recorded" else f" ({miss.evidence.replace('_', ' ')})"
    role = "" if miss.root else "; follows another miss"
    return f"{miss.verdict}: {miss.reason}{evidence}{role}"


def causes_blocks(scope: Read) -> Iterator[Block]:
    """What to fix first: the first screen."""
    explained = [cause.cause for cause in scope.facts.causes if not kind_of(cause).is_first][:_EXPLAINED]

    def evidence(card: Card) -> tuple[Block, ...]:
        return tuple(_evidence(scope, card)) if card.row.cause in explained else ()

    # What each start spent its time on, where a trace has events.
    if spent := scope.phases_read[0].rows:
        yield Drawing("Self time of each phase, by run", phases, (spent, scope.tables.runs.rows))
    yield from first_cards(Chosen(scope), evidence, _PLACES)


def rates_blocks(scope: Read) -> Iterator[Block]:
    """Question 1: did it hit."""
    if not scope.facts.lookups:
        return
    yield Numbers(rate_numbers(Chosen(scope)))
    yield from trend_blocks(scope)
    yield Drawing("Outcomes by cache and run", outcomes, (scope.shown.rows, scope.tables.runs.rows))
    yield rates_table(scope)


def when_blocks(scope: Read) -> Iterator[Block]:
    """Where in a job the misses are."""
    if not scope.facts.lookups:
        return
    drawn = (scope.shown.rows, scope.tables.runs.rows)
    yield Drawing("Lookups over time", timeline, drawn)
    yield Drawing("Outcomes, runs by graphs", runs_by_graph, drawn)


def spent_blocks(scope: Read) -> Iterator[Block]:
    """Where the time of compiling went."""
    # What vLLM says of its starts, and what could not be read, stands in sections of their own.
    yield from time_blocks(replace(TimeSpent.of(scope), starts=(), problems=()))
    if made := scope.compiles_read[0].rows:
        yield Drawing("Compiles over time", compiles, (made, scope.tables.runs.rows))
