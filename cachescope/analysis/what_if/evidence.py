"""Evidence from the data on leaving a field out of the keys: entries that differ only in it, and their code."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import pandas as pd

from cachescope.catalogue.facts import field_facts
from cachescope.columns import frame_of, rows_of
from cachescope.frames.replay_rows import EvidenceRow

SAFETIES: Final = ("safe", "unknown", "unsafe", "program")
"""Whether fields may be left out, as a ranking has them: what is the program itself comes last."""
_ORDER: Final = ("graph", "inputs", "generated code", "unknown", "host")


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two entries of one graph: a row of the frame past_misses."""

    entry: int
    baseline_entry: int
    changed: tuple[str, ...]
    same_code: bool | None
    same_binaries: bool | None

    @property
    def is_different(self) -> bool:
        """Whether their code, or what was compiled from it, is known to differ."""
        return self.same_code is False or self.same_binaries is False


def evidence_frame(past_misses: pd.DataFrame) -> pd.DataFrame:
    """The frame evidence, from the frame past_misses; fields with different code first."""
    groups: dict[tuple[str, ...], list[_Pair]] = defaultdict(list)
    for pair in _pairs(past_misses):
        if pair.changed:
            groups[tuple(sorted(pair.changed))].append(pair)
    found = [_evidence(names, pairs) for names, pairs in groups.items()]
    found.sort(key=lambda one: (-one.different_code, -one.pairs, one.fields))
    return frame_of(found, EvidenceRow)


def _pairs(past_misses: pd.DataFrame) -> list[_Pair]:
    return rows_of(past_misses, _Pair)


def _evidence(names: tuple[str, ...], pairs: Sequence[_Pair]) -> EvidenceRow:
    different = [pair for pair in pairs if pair.is_different]
    same = [pair for pair in pairs if pair.same_code and not pair.is_different]
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
    """What the frame evidence and torch's sources show about some fields; evidence against leaving them out decides."""

    def __init__(self, evidence: pd.DataFrame) -> None:
        self._found = [(frozenset(one.fields), one) for one in rows_of(evidence, EvidenceRow)]

    def on(self, fields: Iterable[str]) -> Safety:
        """Whether some fields may be left out. Pairs that differ in a subset of them count too."""
        wanted = frozenset(fields)
        speaking = [one for names, one in self._found if names <= wanted]
        same = sum(one.same_code for one in speaking)
        different = sum(one.different_code for one in speaking)
        known = {_affects(name) for name in wanted}
        affects = next((word for word in _ORDER if word in known), "unknown")
        return Safety(
            affects, same, different, _safety(affects, different), _advice(affects, same, different)
        )


def _safety(affects: str, different: int) -> str:
    if affects in ("graph", "inputs"):
        return "program"
    if different or affects == "generated code":
        return "unsafe"
    return "safe" if affects == "host" else "unknown"


def left_out_text(field: str) -> str:
    """Whether a field may be left out of the keys, from torch's sources alone.

    Examples
    --------
    >>> left_out_text("inductor_config[epilogue_fusion]")
    "not safe to leave out of the key: torch's code generation reads it"
    >>> left_out_text("a_field_of_no_torch")
    'not known whether the key could do without it'
    """
    match _affects(field):
        case "graph" | "inputs":
            return "not safe to leave out of the key: it is what is compiled"
        case "generated code":
            return "not safe to leave out of the key: torch's code generation reads it"
        case "host":
            return (
                "it describes the machine: no code generation of torch reads it, so the key may do without it"
            )
        case _:
            return "not known whether the key could do without it"


def _affects(name: str) -> str:
    facts = field_facts(name)
    return "unknown" if facts is None else facts.affects


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
