"""What was read in short: for the repr of a Scope."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from cachescope.answers.read import Read
from cachescope.answers.summary import footer, headline
from cachescope.frames.answer_rows import CauseRow
from cachescope.terms import UNREADABLE
from cachescope.verdict_kinds import kind_of


@dataclass(frozen=True, slots=True)
class InShort:
    """The rates, the costliest causes, and what is left over."""

    headline: str  # lookups, hits and misses in one line, and what stays outside the causes
    footer: str
    # Plain rows of the frame ``causes``, but for first lookups. Where they struck is not looked into: it
    # takes longer than a repr may where a fleet was read.
    causes: tuple[CauseRow, ...]
    lookups: int  # how many there are
    problems: int
    entries: int
    damaged: int
    unreadable: int

    @classmethod
    def of(cls, read: Read) -> Self:
        """Of what was read."""
        facts = read.facts
        return cls(
            headline=headline(read),
            footer=footer(read),
            causes=tuple(row for row in facts.causes if not kind_of(row).is_first),
            lookups=len(facts.lookups),
            problems=len(facts.problems),
            entries=len(facts.entries),
            damaged=sum(row.status == "damaged" for row in facts.entries.values()),
            unreadable=sum(row.status == UNREADABLE for row in facts.entries.values()),
        )
