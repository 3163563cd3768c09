"""What predictions come to: how many entries would be found, and why the others would not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Self

import pandas as pd

from cachescope.analysis.contexts.prediction import OWN_FIELDS
from cachescope.columns import rows_of
from cachescope.frames.sharing_rows import PredictionRow

_ANSWERS: Final = ("yes", "no", "unknown")
_WORST_FIRST: Final = ("no", "unknown", "yes")


@dataclass(frozen=True, slots=True)
class Reason:
    """A reason shared by some predictions: plain rows of the frame ``predictions``."""

    text: str
    rows: tuple[PredictionRow, ...]


@dataclass(frozen=True, slots=True, eq=False)
class PredictionSummary:
    """What predictions come to."""

    # Plain rows of the frame ``predictions``; what is unsafe comes first, then what would not be found.
    rows: tuple[PredictionRow, ...]
    # How many entries would be found (yes), would not (no), and of how many it is not known (unknown).
    counts: dict[str, int]
    # The entries of which that is so, folded by why; the most frequent reason first.
    unsafe: tuple[Reason, ...]
    perhaps_unsafe: tuple[Reason, ...]
    not_found: tuple[Reason, ...]
    unknown: tuple[Reason, ...]
    takes_own_fields_as_equal: bool  # whether that is taken for granted of some

    @classmethod
    def of(cls, predictions: pd.DataFrame) -> Self:
        """From the frame."""
        rows = rows_of(predictions, PredictionRow)
        counts = {answer: sum(row.will_hit == answer for row in rows) for answer in _ANSWERS}
        return cls(
            tuple(sorted(rows, key=lambda row: (not row.is_unsafe, _WORST_FIRST.index(row.will_hit)))),
            counts,
            _folded((row.unsafe_reason or "", row) for row in rows if row.is_unsafe),
            _folded((row.unsafe_reason, row) for row in rows if row.unsafe_reason and not row.is_unsafe),
            _folded((row.reason, row) for row in rows if row.will_hit == "no"),
            _folded((row.reason, row) for row in rows if row.will_hit == "unknown"),
            any(OWN_FIELDS in row.assuming for row in rows),
        )

    @property
    def unsafe_count(self) -> int:
        """How many entries torch would load and should not."""
        return sum(len(reason.rows) for reason in self.unsafe)


def _folded(rows: Iterable[tuple[str, PredictionRow]]) -> tuple[Reason, ...]:
    """The rows by the reason that each comes with."""
    groups: dict[str, list[PredictionRow]] = {}
    for reason, row in rows:
        groups.setdefault(reason, []).append(row)
    ordered = sorted(groups.items(), key=lambda item: -len(item[1]))
    return tuple(Reason(text, tuple(members)) for text, members in ordered)
