"""One reference from a file to another, before it is a row of the frame links."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cachescope.frames.directory_rows import EntryRow, LinkRow


@dataclass(frozen=True, slots=True)
class Link:
    """A key that a file names, its kind, where the name comes from, and the files of that key."""

    parent: EntryRow
    kind: str
    key: str
    known_by: str
    children: Sequence[EntryRow]

    def rows(self) -> Iterator[LinkRow]:
        """Rows of the frame links: one for each child, or one without a child if there is none."""
        entry, cache = self.parent.entry, self.parent.cache
        for child in self.children:
            yield LinkRow(entry, cache, child.entry, child.cache, self.key, self.known_by)
        if not self.children:
            yield LinkRow(entry, cache, None, self.kind, self.key, self.known_by)
