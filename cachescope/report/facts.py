"""The rows that reports are made of, as plain dictionaries: missing values None, times in nanoseconds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cachescope.columns import records

if TYPE_CHECKING:
    from cachescope.scope import Scope

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Facts:
    """The frames of a scope by id; misses by the lookup that missed."""

    runs: dict[int, Row]
    lookups: dict[int, Row]
    misses: dict[int, Row]
    causes: list[Row]
    entries: dict[int, Row]
    contexts: int
    problems: list[Row]

    @classmethod
    def of(cls, scope: Scope) -> Facts:
        """Take them from a scope."""
        return cls(
            runs={row["run"]: row for row in records(scope.runs)},
            lookups={row["lookup"]: row for row in records(scope.lookups)},
            misses={row["lookup"]: row for row in records(scope.misses)},
            causes=records(scope.causes),
            entries={row["entry"]: row for row in records(scope.entries)},
            contexts=len(scope.tables.contexts),
            problems=records(scope.problems),
        )

    def misses_of(self, cause: int) -> list[Row]:
        """The misses of one cause, in the order of the lookups."""
        return [miss for miss in self.misses.values() if miss["cause"] == cause]
