"""Parts of the Overview that are of all that was read: vLLM's folders, problems and possible false hits."""

from __future__ import annotations

from typing import Any

from cachescope.answers.read import Read
from cachescope.answers.vllm import VllmFolders
from cachescope.columns import rows_of
from cachescope.frames.checks import FalseHit
from cachescope.report.vllm import vllm_lines
from cachescope.views import html
from cachescope.views.controls import markup
from cachescope.views.table import Head, ListedRows, Table

_PROBLEMS = (
    Head("kind", "Kind"),
    Head("source", "Source"),
    Head("where", "Where"),
    Head("message", "What is wrong", wide=True),
)
_FALSE_HITS = (
    Head("kind", "Kind"),
    Head("cache_key", "Key"),
    Head("hits", "Hits", number=True),
    Head("evidence", "What was seen", wide=True),
)


def vllm(scope: Read) -> list[Any]:
    """Why vLLM compiled again, if anything of it was read."""
    found = VllmFolders.of(scope)
    if found is None:
        return []
    return [markup(html.title("vLLM's torch_compile_cache") + html.lines(vllm_lines(found)))]


def wrong(scope: Read) -> list[Any]:
    """Problems and false hits, or that there are none."""
    problems, false_hits = scope.facts.problems, rows_of(scope.false_hits, FalseHit)
    parts: list[Any] = []
    if false_hits:
        note = "Keys that seem to stand for more than one thing: warnings with their evidence."
        rows = [[row.kind, row.cache_key, row.hits, row.evidence] for row in false_hits]
        parts += [
            markup(html.title(f"Possible false hits: {len(rows)}", note)),
            Table(ListedRows(_FALSE_HITS, list(enumerate(rows))), "possible false hits", page_size=10),
        ]
    if problems:
        rows = [[row.kind, row.source, row.where, row.message] for row in problems]
        note = "What could not be read; the rest was."
        parts += [
            markup(html.title(f"Problems: {len(rows):,}", note)),
            Table(ListedRows(_PROBLEMS, list(enumerate(rows))), "problems", page_size=10),
        ]
    if not parts:
        parts.append(
            markup(
                html.paragraph(
                    "No problems while reading, and no key that seems to stand for two things.", "faint"
                )
            )
        )
    return parts
