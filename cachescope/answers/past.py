"""Past misses: entries of a graph that had been stored before, folded by what made them."""

from __future__ import annotations

from dataclasses import dataclass

from cachescope.analysis.differences import FieldChange, field_changes
from cachescope.answers.read import Read
from cachescope.columns import rows_of
from cachescope.frames.directory_rows import PastMiss


@dataclass(frozen=True, slots=True)
class PastMisses:
    """Past misses of one reason.

    Attributes
    ----------
    rows : tuple of dict
        Plain rows of the frame ``past_misses``.
    keys : tuple of (key, key)
        For each the key of the entry, and of the one that had been stored before.
    changes : tuple of FieldChange
        What changed for the first of them.
    """

    rows: tuple[PastMiss, ...]
    keys: tuple[tuple[str, str], ...]
    changes: tuple[FieldChange, ...]

    @property
    def time_lost_ns(self) -> int:
        """What those of them cost whose time is known."""
        return _lost(self.rows)


def past_misses(read: Read, most: int | None = None) -> list[PastMisses]:
    """The past misses of the directories that were read, the costliest reason first.

    Parameters
    ----------
    read : Read
    most : int, optional
        Beyond so many reasons, what changed is not looked into.
    """
    groups: dict[tuple[str, tuple[str, ...]], list[PastMiss]] = {}
    for row in rows_of(read.past_misses, PastMiss):
        groups.setdefault((row.verdict, tuple(sorted(row.changed))), []).append(row)
    ordered = sorted(groups.values(), key=lambda rows: (-_lost(rows), -len(rows)))
    entries = read.facts.entries
    return [
        PastMisses(
            tuple(rows),
            tuple((row.cache_key, entries[row.baseline_entry].cache_key or "") for row in rows),
            _changes(read, rows[0]) if most is None or number < most else (),
        )
        for number, rows in enumerate(ordered)
    ]


def _lost(rows: tuple[PastMiss, ...] | list[PastMiss]) -> int:
    return sum(row.time_taken_ns or 0 for row in rows)


def _changes(read: Read, row: PastMiss) -> tuple[FieldChange, ...]:
    entries = read.facts.entries
    before, after = entries[row.baseline_entry].detail_set, entries[row.entry].detail_set
    if not row.changed or before is None or after is None:
        return ()
    return tuple(field_changes(read.tables.hash_details, before, after))
