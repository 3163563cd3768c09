"""One finding of an audit."""

from __future__ import annotations

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

    @property
    def level(self) -> str:
        """The level of its rule."""
        return AUDIT_RULES[self.rule].level


def shown(text: str) -> str:
    """A text from a hostile file, shortened, with every character that is not printable ASCII escaped."""
    plain = text.encode("ascii", "backslashreplace").decode()
    plain = "".join(letter if letter.isprintable() else f"\\x{ord(letter):02x}" for letter in plain)
    return plain if len(plain) <= 200 else plain[:200] + "..."
