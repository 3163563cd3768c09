"""Past misses: entries of a graph that had been stored before, folded by what made them."""

from __future__ import annotations

from dataclasses import dataclass

from cachescope.analysis.differences import FieldChange, field_changes
from cachescope.answers.recording import Recording
from cachescope.frames.linked_rows import PastMiss


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
    is_elsewhere : bool
        Whether what had been stored before lies in other directories, which torch may never have looked in.
    """

    rows: tuple[PastMiss, ...]
    keys: tuple[tuple[str, str], ...]
    changes: tuple[FieldChange, ...]
    is_elsewhere: bool

    @property
    def time_lost_ns(self) -> int:
        """What those of them cost whose time is known."""
        return _lost(self.rows)


def past_misses(read: Recording, most: int | None = None) -> list[PastMisses]:
    """The past misses of the directories that were read, the costliest reason first."""
    entries = read.facts.entries
    groups: dict[tuple[bool, str, tuple[str, ...]], list[PastMiss]] = {}
    for row in read.missed_before.rows:
        is_elsewhere = entries[row.entry].root != entries[row.baseline_entry].root
        groups.setdefault((is_elsewhere, row.verdict, tuple(sorted(row.changed))), []).append(row)
    ordered = sorted(groups.items(), key=lambda group: (-_lost(group[1]), -len(group[1])))
    return [
        PastMisses(
            tuple(rows),
            tuple((row.cache_key, entries[row.baseline_entry].cache_key or "") for row in rows),
            _changes(read, rows[0]) if most is None or number < most else (),
            is_elsewhere,
        )
        for number, ((is_elsewhere, *_), rows) in enumerate(ordered)
    ]


def _lost(rows: tuple[PastMiss, ...] | list[PastMiss]) -> int:
    return sum(row.time_taken_ns or 0 for row in rows)


def _changes(read: Recording, row: PastMiss) -> tuple[FieldChange, ...]:
    entries = read.facts.entries
    before, after = entries[row.baseline_entry].detail_set, entries[row.entry].detail_set
    if not row.changed or before is None or after is None:
        return ()
    return tuple(field_changes(read.tables.hash_details, before, after))
