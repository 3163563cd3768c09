"""A file in an audit, and one finding about it."""

from __future__ import annotations

import os
from dataclasses import dataclass

from cachescope.frames.audit_rules import AUDIT_RULES


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding: the rule, the place, and a message of one sentence."""

    rule: str
    path: str
    message: str
    offset: int | None = None
    kind: str | None = None
    named: str | None = None
    sha256: str | None = None

    @property
    def level(self) -> str:
        """The level of its rule."""
        return AUDIT_RULES[self.rule].level


def shown(text: str) -> str:
    """A text from a hostile file, shortened, with every character that is not printable ASCII escaped."""
    plain = text.encode("ascii", "backslashreplace").decode()
    plain = "".join(letter if letter.isprintable() else f"\\x{ord(letter):02x}" for letter in plain)
    return plain if len(plain) <= 200 else plain[:200] + "..."


@dataclass(frozen=True, slots=True)
class File:
    """One regular file whose bytes were read."""

    path: str
    name: str  # the last part of the path
    kind: str  # as in `cachescope.terms`
    key: str | None  # whose folder it is in
    data: bytes

    @property
    def ending(self) -> str:
        """The ending of its name, without the dot."""
        return os.path.splitext(self.name)[1][1:].lower()

    def finding(self, rule: str, message: str, offset: int | None = None) -> Finding:
        """A finding about it."""
        return Finding(rule, self.path, message, offset, self.kind)
