"""What was read and what could not be, and the words of the page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from cachescope.answers.read import Read
from cachescope.readers.kinds import shown
from cachescope.report.blocks import Block, Column, Group, Head, Table, table, written
from cachescope.report.layout import Line
from cachescope.verdict_kinds import VERDICTS
from cachescope.wording import short_key

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
# These meanings are the page's own; verdicts come with theirs.
_MEANINGS: Final = (
    ("run", "one process that was recorded"),
    ("cache key", "what torch looks up: a hash of everything that the compiled code may depend on"),
    ("field", "one part of a key, such as one config or one input"),
    ("aotautograd", "the cache of joint, forward and backward graphs; asked first"),
    ("fxgraph", "the cache of compiled FX graphs, which AOTAutograd entries point to"),
    (
        "vllm",
        "vLLM's own: one part of a model of one rank, which it found compiled or compiled when it started",
    ),
    ("guard", "a condition on sizes that must hold for a stored entry to be used"),
    (
        "context",
        "what torch distinguishes processes by: configs, versions, accelerator; a schema says which of these count",
    ),
    ("root, follows", "a miss of its own, or one that only comes with another miss"),
)
WORDS: Final = Table("Words and verdicts", _WORDS, (*_MEANINGS, *VERDICTS.items()))
"""The words of the page, in torch's own spelling."""


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
    false_hits, problems = scope.suspected.rows, scope.facts.problems
    if false_hits:
        note = (
            "Keys that seem to stand for more than one thing: warnings with their evidence, not certainties."
        )
        shown = table("Possible false hits", _FALSE_HITS, false_hits, "warnings", "scope.false_hits")
        yield Group("false-hits", f"Possible false hits: {len(false_hits)}", (Line(note), shown))
    if problems:
        shown = table(
            "What could not be read; the rest was", _PROBLEMS, problems, "problems", "scope.problems"
        )
        yield Group("problems", f"Problems: {sum(row.count for row in problems):,}", (shown,))
