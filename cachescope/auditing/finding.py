"""One thing that was found in a cache."""

from __future__ import annotations

from dataclasses import dataclass

from cachescope.frames.audit_rules import AUDIT_RULES


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was found: the rule, where, and what, in one sentence."""

    rule: str
    path: str
    message: str
    offset: int | None = None
    kind: str | None = None
    named: str | None = None

    @property
    def level(self) -> str:
        """As its rule says."""
        return AUDIT_RULES[self.rule].level


def shown(text: str) -> str:
    """A text of a hostile file: short, and with every character that is not plain ASCII spelled out."""
    plain = text.encode("ascii", "backslashreplace").decode()
    plain = "".join(letter if letter.isprintable() else f"\\x{ord(letter):02x}" for letter in plain)
    return plain if len(plain) <= 200 else plain[:200] + "..."
