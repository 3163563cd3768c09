"""The sections on lookups (what to fix first, did they hit, when, where the time went, why each missed, what if a field did not count),
what was read and what could not be, and the words of the page.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from cachescope.answers.cards import Card, ways
from cachescope.answers.chosen import Chosen
from cachescope.answers.names import cache_name
from cachescope.answers.read import Read
from cachescope.answers.time_spent import TimeSpent
from cachescope.figures.compile_time import SLOWEST, compiles, phases, phases_of_slowest
from cachescope.figures.graph_grid import runs_by_graph
from cachescope.figures.key_strip import key_difference
from cachescope.figures.over_time import timeline
from cachescope.figures.rates import outcomes
from cachescope.frames.answer_rows import MissRow
from cachescope.readers.kinds import shown
from cachescope.report.blocks import (
    Block,
    Column,
    Drawing,
    Group,
    Head,
    Numbers,
    Table,
    table,
    timed,
    written,
)
from cachescope.report.cards import first_cards
from cachescope.report.explanation import change_blocks, told_lines
from cachescope.report.layout import Line, rest
from cachescope.report.page.replay import replay_parts
from cachescope.report.rates import rate_numbers, rates_table, trend_blocks
from cachescope.report.time_spent import time_blocks
from cachescope.report.vllm import vllm_lines
from cachescope.report.what_if_forms import saving_blocks, sensitivity_lines
from cachescope.report.why_missed import failed_lines, past_lines
from cachescope.verdict_kinds import VERDICTS, kind_of
from cachescope.wording import short_key

_WAYS: Final = 3
# The number of explanations: each has a picture, a table and a diff of code.
_EXPLAINED: Final = 10
_PLACES: Final = 8
_LOOKUPS: Final = 2000
_STRIP: Final = "All fields of the key, the changed ones numbered"
# The number of rows about sets of fields that would help.
_RANKED: Final = 100


_PROBLEMS: Final = (
    Column("Kind", "word", "kind"),
    Column("What is wrong", "text", "message"),
    Column("Where", "word", "where", is_optional=True),
    Column("Source", "code", "source"),
)

_FALSE_HITS: Final = (
    Column("Kind", "word", "kind"),
    Column("Cache", "word", "cache"),
    Column("Key", "word", lambda row: None if row.cache_key is None else short_key(row.cache_key)),
    Column("Hits", "number", "hits"),
    Column("What was seen", "text", "evidence"),
)

_WORDS: Final = (Head("Word", "code"), Head("Meaning"))

# The page's own words. Verdicts come with their meanings.
_MEANINGS: Final = (
    ("run", "one process that was recorded"),
    ("cache key", "what torch looks up: a hash of everything that the compiled code may depend on"),
    ("field", "one part of a key, such as one config or one input"),
    ("aotautograd", "the cache of joint, forward and backward graphs; asked first"),
    ("fxgraph", "the cache of compiled FX graphs, which AOTAutograd entries point to"),
    (
        "vllm",
        "vLLM's own: a part of a model of one rank, which it found compiled or compiled when it started",
    ),
    ("guard", "a condition on sizes that must hold for a stored entry to be used"),
    (
        "context",
        "what torch tells processes apart by: configs, versions, accelerator; a schema says which count",
    ),
    ("root, follows", "a miss of its own, or one that only comes with another miss"),
)

WORDS: Final = Table("Words and verdicts", _WORDS, (*_MEANINGS, *VERDICTS.items()))
"""The words of the page, in torch's own spelling."""


def _evidence(scope: Read, card: Card) -> Iterator[Block]:
    """The explanation of one cause, for each way in which it changed, and its places."""
    yield Line(f"{card.row.verdict}: {VERDICTS[card.row.verdict]}.", style="dim")
    for place, explained in enumerate(ways(scope, card.row.cause, _WAYS)):
        yield from [Line("In another way:")] if place else []
        yield from told_lines(explained)
        # vLLM's keys have no hash details.
        details = scope.facts.lookups[explained.lookup].detail_set
        if place == 0 and explained.changes and details is not None:
            # The hover text of a cell is one line. The values are in the table.
            every = scope.tables.hash_details.details(details)
            fields = [replace(one, value_text=one.value_text[:200]) for one in every]
            yield Drawing(_STRIP, key_difference, (explained.changes, fields))
        source = f"scope.explain({explained.lookup}).frame"
        yield from change_blocks(explained.changes, source, most=20, diffs=2, most_lines=120)
    yield Line("Where it struck:")
    yield from (Line(place, 2) for place in card.places)
    yield from rest(card.roots - len(card.places), "lookup", "in the table of lookups below", 2)


def why_blocks(scope: Read) -> Iterator[Block]:
    """Question 2: why, lookup by lookup, with earlier misses that the directory shows, and warnings."""
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
    """Every lookup: misses come first, by time lost."""
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
    explained = [cause.cause for cause in scope.explained.rows if not kind_of(cause).is_first][:_EXPLAINED]

    def evidence(card: Card) -> tuple[Block, ...]:
        return tuple(_evidence(scope, card)) if card.row.cause in explained else ()

    yield from failed_lines(scope, None)
    # What each start spent its time on, where a trace has events.
    if spent := scope.phases_read[0].rows:
        yield Drawing("Self time of each phase, by run", phases_of_slowest, (spent, scope.tables.runs.rows))
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
    # vLLM's starts, and what could not be read, have sections of their own.
    yield from time_blocks(replace(TimeSpent.of(scope), starts=(), problems=()))
    spent = scope.phases_read[0].rows
    if len({row.run for row in spent}) > SLOWEST:
        yield Drawing("Self time of each phase, every run", phases, (spent, scope.tables.runs.rows))
    if made := scope.compiles_read[0].rows:
        yield Drawing("Compiles over time", compiles, (made, scope.tables.runs.rows))


def reading_blocks(scope: Read) -> Iterator[Block]:
    """What was read, and what could not be."""
    yield _runs(scope)
    wrong = list(wrong_blocks(scope))
    yield from wrong or [Line("Every record and file that was looked at could be read.")]


def _runs(scope: Read) -> Block:
    runs = scope.tables.runs.rows
    if not runs:
        roots = sorted({shown(row.root) for row in scope.facts.entries.values()})
        found = f"No run was read, only {', '.join(roots[:8])}." if roots else "No run was read."
        return Line(found)
    looked_up = Counter(row.run for row in scope.shown.rows)
    columns = (
        Column("Run", "name", "run"),
        Column("Rank", "name", "rank", is_optional=True),
        Column("Process", "name", "pid"),
        Column("Started (UTC)", "word", lambda row: written(row.start_time)),
        Column("torch", "word", "torch_version"),
        Column("Python", "word", "python_version"),
        Column("Lookups", "number", lambda row: looked_up[row.run]),
        Column("Source", "code", "source"),
        Column("Cache directory", "code", "cache_dir", is_optional=True),
    )
    return table("Runs", columns, runs, "runs", "scope.runs")


def wrong_blocks(scope: Read) -> Iterator[Block]:
    """Keys that seem to stand for more than one thing, and what could not be read; nothing if there is neither."""
    false_hits, problems = scope.suspected.rows, scope.tables.problems.rows
    if false_hits:
        note = (
            "Keys that seem to stand for more than one thing: warnings with their evidence, not certainties."
        )
        shown = table("Possible false hits", _FALSE_HITS, false_hits, "warnings", "scope.false_hits")
        yield Group("false-hits", f"Possible false hits: {len(false_hits)}", (Line(note), shown))
    if problems:
        name = "What could not be read; the rest was"
        shown = table(name, _PROBLEMS, problems, "problems", "scope.problems")
        yield Group("problems", f"Problems: {sum(row.count for row in problems):,}", (shown,))
