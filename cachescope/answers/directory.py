"""Entries of cache directories: their sizes and order, and what changed for the misses that they show without a log."""

from __future__ import annotations

from collections.abc import Iterable

from cachescope.analysis.differences import FieldChange, field_changes
from cachescope.answers.recording import Recording
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.linked_rows import PastMiss, RemovableRow


def size_of(rows: Iterable[EntryRow] | Iterable[RemovableRow]) -> int:
    """What files take, as far as it is known."""
    return sum(row.size_bytes or 0 for row in rows)


def newest_first(rows: Iterable[EntryRow]) -> list[EntryRow]:
    """Entries by the time at which they were written."""
    return sorted(rows, key=lambda row: row.modified_time or 0, reverse=True)


def past_changes(read: Recording, row: PastMiss) -> tuple[FieldChange, ...]:
    """What changed for a past miss, as far as it was recorded."""
    entries = read.facts.entries
    before, after = entries[row.baseline_entry].detail_set, entries[row.entry].detail_set
    if not row.changed or before is None or after is None:
        return ()
    return tuple(field_changes(read.tables.hash_details, before, after))
