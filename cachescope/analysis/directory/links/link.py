"""One reference from a file to another, before it is a row of the frame links."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Link:
    """A key that a file names, its kind, where the name comes from, and the files of that key."""

    parent: dict[str, Any]
    kind: str
    key: str
    known_by: str
    children: Sequence[dict[str, Any]]

    def rows(self) -> Iterator[dict[str, Any]]:
        """Rows of the frame links: one for each child, or one without a child if there is none."""
        children: list[dict[str, Any] | None] = [*self.children]
        for child in children or [None]:
            yield {
                "parent": self.parent["entry"],
                "parent_kind": self.parent["cache"],
                "child": None if child is None else child["entry"],
                "child_kind": self.kind if child is None else child["cache"],
                "child_key": self.key,
                "known_by": self.known_by,
            }
