"""Roles that mark where a column, a word or a field is described, so that links and the search lead there.

``{column}`misses.evidence` `` shows ``evidence`` and is its place; ``{column-link}`misses.evidence` `` links to it.
"""

from __future__ import annotations

import re
from typing import Any, Final

from docutils import nodes
from sphinx.util.docutils import SphinxRole

KINDS: Final = ("column", "word", "field")


def anchor_of(kind: str, name: str) -> str:
    """The fragment of the place on its page."""
    if kind == "column":
        return name.split(".", 1)[1]
    return re.sub(r"[^\w.-]+" if kind == "field" else r"[^\w-]+", "-", name).strip("-")


class Described(SphinxRole):
    """The place where something is described."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Its name, as the target of links and of the search."""
        anchor = anchor_of(self.name, self.text)
        shown = self.text if self.name == "field" else self.text.split(".", 1)[1]
        node = nodes.literal(shown, shown, ids=[anchor])
        self.env.domains.standard_domain.note_object(f"{self.name}-place", self.text, anchor, location=node)
        return [node], []


def setup(app: Any) -> dict[str, bool]:
    """Register them."""
    for kind in KINDS:
        app.add_object_type(f"{kind}-place", f"{kind}-link", objname=kind)
        app.add_role(kind, Described())
    return {"parallel_read_safe": True}
