"""What the page shows of what was dropped; it runs in the worker, on the standard library alone."""

import os
from collections.abc import Iterator

import cachescope
from cachescope.answers.cards import Card
from cachescope.answers.chosen import Chosen
from cachescope.answers.directory import Directory
from cachescope.answers.explanation import Explanation
from cachescope.answers.summary import about_text
from cachescope.answers.time_spent import TimeSpent
from cachescope.answers.why import Why
from cachescope.errors import SourceError
from cachescope.readers.reading import WHOLE_SOURCE
from cachescope.report.as_json import explain_object
from cachescope.report.blocks import Block
from cachescope.report.cards import first_cards
from cachescope.report.entry_table import entry_lines
from cachescope.report.explanation import change_blocks, told_lines
from cachescope.report.html import blocks_html, heading_html, prose_html
from cachescope.report.identifying_values import identities
from cachescope.report.json_text import json_text
from cachescope.report.layout import Line
from cachescope.report.page.markdown import markdown
from cachescope.report.redact import Redaction
from cachescope.report.subjects import SUBJECTS, told
from cachescope.report.time_spent import time_lines
from cachescope.report.vllm import vllm_lines
from cachescope.report.what_if_forms import sensitivity_lines
from cachescope.report.why_missed import failed_lines, false_hit_lines, past_lines, problem_lines, rank_lines
from cachescope.wording import harmless

_VALUE = 2000
_RANKING = "cachescope what-if lists all"


class Answers:
    """Of some paths: first why, then the rest, section by section."""

    def __init__(self, folder: str, paths: list[str]) -> None:
        os.chdir(folder)
        self.paths = paths
        self.scope = cachescope.read(*paths, index=False)

    def first(self) -> str:
        """The answer, its cards, and what could not be read."""
        scope, why = self.scope, Why.of(self.scope)
        unread = [row for row in scope.facts.problems if row.where == WHOLE_SOURCE]
        blocks: list[Block] = [
            Line(str(SourceError(row.source, row.message)), style="bold red") for row in unread
        ]
        blocks += failed_lines(why)
        if scope.facts.lookups:
            blocks += [*first_cards(Chosen(scope), self._evidence, places=8), Line()]
        blocks += [*past_lines(why.past), *rank_lines(why.rank_differences)]
        blocks += [] if why.vllm is None else vllm_lines(why.vllm)
        blocks += problem_lines([row for row in why.problems if row.where != WHOLE_SOURCE])
        blocks += false_hit_lines(why.false_hits)
        headline = why.headline or why.counts
        about = about_text(scope).removeprefix(f"{headline} · ")
        before = f"{heading_html(2, headline, '')}<p class='about'>{prose_html(about, 600)}</p>"
        return _made(before, blocks)

    def _evidence(self, card: Card) -> tuple[Block, ...]:
        explained = Explanation.of(self.scope, card.first.lookup)
        return (*told_lines(explained), *change_blocks(explained.changes, "", most=20, diffs=2))

    def rest(self) -> Iterator[str]:
        """The other questions, folded; of those that nothing was read for, none."""
        scope = self.scope
        if scope.facts.runs:
            yield _folded("Where did the time go?", time_lines(TimeSpent.of(scope, self.paths)))
            for name, subject in SUBJECTS.items():
                yield _folded(subject.question, told(name).blocks(scope))
        if scope.asked_torch:
            ranking = sensitivity_lines(scope.sensitivity_rows(), where=_RANKING)
            yield _folded("What if a field did not count?", ranking)
        if scope.facts.entries:
            yield _folded("What is in the directory?", entry_lines(Directory.of(scope)))

    def markdown(self, redact: bool) -> str:
        """The answer for an issue."""
        return markdown(self.scope, redact=redact)

    def json(self, redact: bool) -> str:
        """What `cachescope explain --json` prints."""
        value = {"cachescope": cachescope.__version__, **explain_object(self.scope)}
        return json_text(Redaction(identities(self.scope))(value) if redact else value) + "\n"


def _folded(title: str, blocks: list[Block]) -> str:
    return f"<details><summary>{heading_html(2, title, '')}</summary>{_made('', blocks)}</details>"


def _made(before: str, blocks: list[Block]) -> str:
    return harmless(before + blocks_html(blocks, _VALUE))
