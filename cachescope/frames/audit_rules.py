"""The rules of a cache audit, each with its level, meaning and advice, from the catalogue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from cachescope.catalogue.facts import document


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of the audit."""

    name: str
    level: str
    meaning: str
    advice: str


AUDIT_RULES: Final = {one["name"]: Rule(**one) for one in document("audit_rules.json")}
