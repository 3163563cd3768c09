"""Evidence from the data on leaving a field out of the keys: entries that differ only in it, and their code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from cachescope.catalogue.facts import field_facts
from cachescope.frames.linked_rows import PastMiss
from cachescope.frames.replay_rows import EvidenceRow
from cachescope.grouping import by_key

SAFETIES: Final = ("safe", "unknown", "unsafe", "program")
"""Whether fields may be left out, as a ranking has them: what is the program itself comes last."""
_ORDER: Final = ("graph", "inputs", "generated code", "unknown", "host")


def evidence_rows(past_misses: Iterable[PastMiss]) -> list[EvidenceRow]:
    """What pairs of entries of one graph show of the fields in which they differ; fields with different code first."""
    groups = by_key((tuple(sorted(pair.changed)), pair) for pair in past_misses if pair.changed)
    found = [_evidence(names, pairs) for names, pairs in groups.items()]
    return sorted(found, key=lambda one: (-one.different_code, -one.pairs, one.fields))


def _is_different(pair: PastMiss) -> bool:
    """Whether their code, or what was compiled from it, is known to differ."""
    return pair.same_code is False or pair.same_binaries is False


def _evidence(names: tuple[str, ...], pairs: Sequence[PastMiss]) -> EvidenceRow:
    different = [pair for pair in pairs if _is_different(pair)]
    same = [pair for pair in pairs if pair.same_code and not _is_different(pair)]
    example = (different or same or pairs)[0]
    same_binaries = sum(pair.same_binaries is True for pair in same)
    counts = len(pairs), len(same), same_binaries, len(different)
    return EvidenceRow(names, *counts, example.entry, example.baseline_entry)


@dataclass(frozen=True, slots=True)
class Safety:
    """What is known about leaving some fields out of the keys.

    `affects` is the catalogue's most serious effect among them; `same_code` and `different_code` count pairs
    of entries that differ in nothing else; `safety` is one of `SAFETIES`, and `advice` puts it in words.
    """

    affects: str
    same_code: int
    different_code: int
    safety: str
    advice: str


class SafetyOfFields:
    """What entries and torch's sources show about some fields; evidence against leaving them out decides."""

    def __init__(self, evidence: Iterable[EvidenceRow]) -> None:
        self._found = [(frozenset(one.fields), one) for one in evidence]

    def on(self, fields: Iterable[str]) -> Safety:
        """Whether some fields may be left out. Pairs that differ in a subset of them count too."""
        wanted = frozenset(fields)
        speaking = [one for names, one in self._found if names <= wanted]
        same = sum(one.same_code for one in speaking)
        different = sum(one.different_code for one in speaking)
        facts = map(field_facts, wanted)
        known = {"unknown" if one is None else one.affects for one in facts}
        what = next((word for word in _ORDER if word in known), "unknown")
        return Safety(what, same, different, _safety(what, different), _advice(what, same, different))


def _safety(affects: str, different: int) -> str:
    if affects in ("graph", "inputs"):
        return "program"
    if different or affects == "generated code":
        return "unsafe"
    return "safe" if affects == "host" else "unknown"


def _advice(affects: str, same: int, different: int) -> str:
    pairs = same + different
    if different:
        return f"keep it: entries that differ only there hold other code ({different} of {pairs})"
    seen = f"entries that differ only there hold equal code ({same} of {pairs})" if same else ""
    match affects:
        case "graph" | "inputs":
            return "keep it: it is what is compiled"
        case "generated code":
            base = "keep it: torch's code generation reads it"
            return f"{base}, though {seen}" if seen else base
        case "host":
            base = "it describes the machine, and no code generation of torch reads it"
            return f"{base}; {seen or 'no entries here to compare'}"
        case _:
            return f"not known what it changes; {seen or 'no entries here to compare'}"
