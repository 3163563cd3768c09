"""The report as one HTML file: six questions, redacted on request, in a document that requests nothing from any network.

Its Content-Security-Policy names the script by its hash: any other script would not run.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Final

from cachescope.answers.cards import Card, ways
from cachescope.answers.chosen import Chosen
from cachescope.answers.costs import headline
from cachescope.answers.names import cache_name
from cachescope.answers.read import Read
from cachescope.answers.summary import about_text
from cachescope.answers.time_spent import TimeSpent
from cachescope.errors import CachescopeError, telling
from cachescope.figures.compile_time import SLOWEST, compiles, phases, phases_of_slowest
from cachescope.figures.graph_grid import runs_by_graph
from cachescope.figures.key_strip import key_difference
from cachescope.figures.over_time import timeline
from cachescope.figures.picture import drawing_js
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
    Page,
    Replayable,
    Section,
    Table,
    hidden,
    shortened,
    table,
    timed,
    written,
)
from cachescope.report.contexts import contexts_blocks, predictions_group
from cachescope.report.devices import device_blocks
from cachescope.report.entries import every_file_blocks
from cachescope.report.explanation import change_blocks, told_lines
from cachescope.report.html import blocks_html, heading_html, json_html, safe
from cachescope.report.layout import Line, rest
from cachescope.report.page.replay import replay_html, replay_parts
from cachescope.report.rates import rate_numbers, rates_table, trend_blocks
from cachescope.report.subjects import SUBJECTS, told
from cachescope.report.time_spent import time_blocks
from cachescope.report.vllm import vllm_lines
from cachescope.report.what_if_forms import saving_blocks, sensitivity_lines
from cachescope.report.why_missed import failed_lines, first_cards, past_lines
from cachescope.verdict_kinds import VERDICTS, kind_of
from cachescope.whole_file import write_whole
from cachescope.wording import harmless, short_key

# The number of explanations: each has a picture, a table and a diff of code.
_EXPLAINED: Final = 10
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

_WORDS: Final = (Head("Word", "code"), Head("Meaning"))
WORDS: Final = Table("Words and verdicts", _WORDS, (*_MEANINGS, *VERDICTS.items()))
"""The words of the page, in torch's own spelling."""


def _evidence(scope: Read, card: Card) -> Iterator[Block]:
    """The explanation of one cause, for each way in which it changed, and its places."""
    yield Line(f"{card.row.verdict}: {VERDICTS[card.row.verdict]}.", style="dim")
    for place, explained in enumerate(ways(scope, card.row.cause, 3)):
        yield from [Line("In another way:")] if place else []
        yield from told_lines(explained)
        # vLLM's keys have no hash details.
        details = scope.facts.lookups[explained.lookup].detail_set
        if place == 0 and explained.changes and details is not None:
            # The hover text of a cell is one line. The values are in the table.
            every = scope.tables.hash_details.details(details)
            fields = [replace(one, value_text=one.value_text[:200]) for one in every]
            name = "All fields of the key, the changed ones numbered"
            yield Drawing(name, key_difference, (explained.changes, fields))
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
    return table(name, columns, rows, what, "scope.lookups", 2000)


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
    yield from first_cards(Chosen(scope), evidence, 8)


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


_SCRIPTS: Final = ("wording.js", "replay.js")
# Of these, notebooks have the first two as well.
_IN_THE_PAGE: Final = ("make.js", "tree.js", "page.js", "toggles.js")

_Told = tuple[str, str, Callable[[Read], Iterable[Block]], str]
# The sections in order, those of the subjects after the first: anchor, heading, blocks, and a description.
_OF_LOOKUPS: Final[tuple[_Told, ...]] = (
    ("causes", "What should be fixed first?", causes_blocks,
     ""),
    ("hits", "Did it hit?", rates_blocks,
     "A lookup is one attempt of torch.compile to find one key in one cache. The hit rate is given by count, and by compile time: the share of it that hits saved."),
    ("why", "Why did each one miss?", why_blocks,
     "Each lookup with its reason, and which earlier one it was held against; the cards above have what changed, from what to what. Hashes are compared, never texts."),
    ("time", "When and where did it miss?", when_blocks,
     "Every lookup at its time, with the compile that followed where it did not hit; then each run beside each graph, which shows whether one graph misses everywhere or one run misses everything."),
    ("spent", "Where did the time go?", spent_blocks,
     "Self times of what torch does, by the events of its traces: each moment counts once. What no event covers is a phase of its own; what a program does besides compiling is in none."),
)  # fmt: skip
_FURTHER: Final[tuple[_Told, ...]] = (
    ("what-if", "What if a field did not count?", what_if_blocks,
     "All lookups in torch's caches are replayed, in time order, as if a field were not in the key."),
    ("machines", "Would a cache made there be used here?",
     lambda scope: (*contexts_blocks(scope), predictions_group(scope)),
     "torch keys a process by its context: eight forms, from its configs to its accelerator. Two processes share a cache"
     " if their contexts are equal in the forms that count. A recorded run shows only what its hash details prove."),
    ("devices", "Which device was each key made for?",
     lambda scope: device_blocks(scope.named_devices.rows),
     "Every device that a key, an entry or a snapshot names, with the peak dense rates of the vendor's datasheet, and how the name was matched to it; a device without a datasheet gets no number."),
    ("entries", "What is in the cache directory?", every_file_blocks,
     "Every file that torch would call an entry: how big and how old it is, whether it can be loaded, what it belongs to, and what could be deleted without a later process noticing. cachescope itself removes nothing."),
    ("read", "What was read, and what could not be?", reading_blocks,
     "The processes and files from which this page was made. Damage is listed, and everything else was read; nothing was unpickled, run, or written to a cache."),
    ("words", "Words", lambda scope: (WORDS,),
     "In torch's own spelling, so that its sources and logs can be searched for them."),
)  # fmt: skip
# The number of rows in each list of a subject.
_LISTED: Final = 100
# The characters of a value that a page keeps: there may be hundreds of values.
_LONGEST: Final = 2000


def page_of(scope: Read) -> Page:
    """The report of a scope, as plain data."""
    told_of: Iterable[_Told] = (
        (name, one.question, partial(told(name).blocks, most=_LISTED, where=f"scope.{name}"), one.about)
        for name, one in SUBJECTS.items()
    )
    sections = (
        Section(anchor, title, sentence, tuple(blocks(scope)))
        for anchor, title, blocks, sentence in (*_OF_LOOKUPS, *told_of, *_FURTHER)
    )
    answered = tuple(one for one in sections if one.blocks)
    said = headline(Chosen(scope))
    return Page("Compile cache report", said, about_text(scope, said), answered)


def page_script() -> tuple[str, str]:
    """The script of every report, and the source by which a Content-Security-Policy allows it."""
    parts = [*map(_file, _SCRIPTS), "(() => {\n", *map(_file, _IN_THE_PAGE), "})();\n"]
    script = "".join([drawing_js(), *parts])
    # As an HTML parser reads it, which is what the hash is compared with.
    script = script.replace("\r\n", "\n").replace("\r", "\n")
    return script, f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def document(page: Page) -> str:
    """The page as one HTML document."""
    style = _file("tree.css") + _file("page.css")
    script, allowed = page_script()
    # The marks of a figure carry their colours.
    allows = f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'"
    policy = f"{allows}; base-uri 'none'; form-action 'none'"
    drawings: list[Drawing] = []
    # Markup is escaped when a text is inserted. Here are characters that no browser shows.
    body = harmless("".join(_section(section, page, drawings) for section in page.sections))
    return (
        "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'>\n"
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        "<meta name='color-scheme' content='light dark'><meta name='referrer' content='no-referrer'>"
        f"<title>{safe(page.title)}: {safe(page.headline)}</title>\n<style>{style}</style></head>\n"
        f"<body><a class='skip' href='#causes'>Skip to the answer</a>\n<header><h1>{safe(page.title)}</h1>"
        f"<p class='headline'>{safe(page.headline)}</p><p class='cs-faint'>{safe(shortened(page.about, 400))}</p></header>\n"
        f"<div class='columns'>{_contents(page.sections)}<main>{body}</main></div>\n"
        "<noscript><p class='warn'>Without JavaScript the figures are not drawn; the tables have it all.</p></noscript>\n"
        f"<script type='application/json' id='figures'>{json_html([one.draw(*one.rows).drawn() for one in drawings])}</script>\n"
        f"<script>{script}</script></body></html>\n"
    )


def _section(section: Section, page: Page, drawings: list[Drawing]) -> str:
    """A section with a heading that links can lead to. Its figures are added to those that are written together, in order."""

    def only_here(block: Block) -> str:
        match block:
            case Replayable():
                return replay_html(block)
            case Drawing():
                drawings.append(block)
                name = safe(block.name)
                return f"<figure class='plot' aria-label='{name}'><div></div><figcaption>{name}</figcaption></figure>"
        raise TypeError(block)

    heading = heading_html(2, section.title, section.anchor)
    about = f"<p class='about'>{safe(section.sentence)}</p>" if section.sentence else ""
    content = about + blocks_html(section.blocks, _LONGEST, only_here)
    folded = f"<details><summary>{heading}</summary>{content}</details>"
    shown = heading + content if section is page.sections[0] else folded
    return f"<section aria-labelledby='{safe(section.anchor)}'>{shown}</section>"


def _contents(sections: Iterable[Section]) -> str:
    """The table of contents."""
    names = ((safe(section.anchor), safe(section.title)) for section in sections)
    links = "".join(f"<li><a href='#{anchor}'>{title}</a></li>" for anchor, title in names)
    return f"<nav aria-label='Contents'><ol>{links}</ol></nav>"


def _file(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def report(scope: Read, target: Path, *, redact: bool) -> Path:
    """Write the report of a scope; see `Scope.report`."""
    sources = {source for run in scope.facts.runs.values() for source in run.sources}
    refuse(target, sources | {row.root for row in scope.facts.entries.values() if row.root is not None})
    page = page_of(scope)
    if redact:
        from cachescope.report.redact import Redaction, identities

        page = hidden(page, Redaction(identities(scope)))
    return write_report(document(page), target)


def refuse(target: Path, read: Iterable[str]) -> None:
    """Check that a report can be written there before the work is done."""
    if target.is_dir():
        example = f"name a file for the report, such as {target / 'report.html'}"
        raise CachescopeError(f"{target} is a directory: {example}")
    if not target.parent.is_dir():
        raise CachescopeError(f"{target}: there is no directory {target.parent}; make it, or name another")
    place = Path(os.path.realpath(target))
    for source in map(os.path.realpath, read):
        if place == Path(source) or (os.path.isdir(source) and place.is_relative_to(source)):
            raise CachescopeError(f"{target} belongs to what was read: write the report to another place")


def write_report(text: str, target: Path) -> Path:
    """Write a report; an existing file is replaced."""
    with telling(f"{target}: the report cannot be written"):
        # A browser cannot show a file name that is not UTF-8: its bytes become question marks.
        write_whole(target, text.encode("utf-8", "replace"))
    return target
