"""What was read in short: for the repr of a Scope."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

from cachescope.answers.causes import Causes
from cachescope.answers.read import Read
from cachescope.answers.summary import footer, headline
from cachescope.terms import UNREADABLE

_CAUSES: Final = 5
_PLACES: Final = 3


@dataclass(frozen=True, slots=True)
class InShort:
    """The rates, the costliest causes, and what is left over.

    Attributes
    ----------
    headline, footer : str
        Lookups, hits and misses in one line, and what stays outside the causes.
    causes : Causes
        The first of them.
    lookups, problems, entries, damaged, unreadable : int
        How many there are.
    """

    headline: str
    footer: str
    causes: Causes
    lookups: int
    problems: int
    entries: int
    damaged: int
    unreadable: int

    @classmethod
    def of(cls, read: Read) -> Self:
        """Of what was read."""
        facts = read.facts
        status = read.tables.entries["status"]
        return cls(
            headline=headline(read),
            footer=footer(read),
            causes=Causes.of(read, most=_CAUSES, places=_PLACES),
            lookups=len(facts.lookups),
            problems=len(facts.problems),
            entries=len(facts.entries),
            damaged=int((status == "damaged").sum()),
            unreadable=int((status == UNREADABLE).sum()),
        )
