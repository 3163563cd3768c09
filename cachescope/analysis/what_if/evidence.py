"""Evidence from the data on leaving a field out of the keys: entries that differ only in it, and their code."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd

from cachescope.catalogue.facts import field_facts
from cachescope.columns import records
from cachescope.frames.replay import EVIDENCE

Row = dict[str, Any]

_ORDER: Final = ("graph", "inputs", "generated code", "unknown", "host")


def evidence_frame(past_misses: pd.DataFrame) -> pd.DataFrame:
    """The frame evidence, from the frame past_misses; fields with different code first."""
    groups: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in records(past_misses):
        if row["changed"]:
            groups[tuple(sorted(row["changed"]))].append(row)
    rows = [_row(fields, pairs) for fields, pairs in groups.items()]
    return EVIDENCE.build(
        sorted(rows, key=lambda row: (-row["different_code"], -row["pairs"], row["fields"]))
    )


def _row(fields: tuple[str, ...], pairs: Sequence[Row]) -> Row:
    different = [row for row in pairs if row["same_code"] is False or row["same_binaries"] is False]
    same = [row for row in pairs if row["same_code"] and row["same_binaries"] is not False]
    example = (different or same or pairs)[0]
    return {
        "fields": fields,
        "pairs": len(pairs),
        "same_code": len(same),
        "same_binaries": sum(row["same_binaries"] is True for row in same),
        "different_code": len(different),
        "entry": example["entry"],
        "other_entry": example["baseline_entry"],
    }


@dataclass(frozen=True, slots=True)
class Safety:
    """What is known about leaving some fields out of the keys.

    `affects` is the catalogue's most serious effect among them; `same_code` and `different_code` count pairs
    of entries that differ in nothing else; `advice` puts it in words.
    """

    affects: str
    same_code: int
    different_code: int
    advice: str


class SafetyOfFields:
    """What the frame evidence and torch's sources show about some fields; evidence against leaving them out decides."""

    def __init__(self, evidence: pd.DataFrame) -> None:
        self._rows = [(frozenset(row["fields"]), row) for row in records(evidence)]

    def on(self, fields: Iterable[str]) -> Safety:
        """Whether some fields may be left out. Pairs that differ in a subset of them count too."""
        wanted = frozenset(fields)
        speaking = [row for there, row in self._rows if there <= wanted]
        same = sum(row["same_code"] for row in speaking)
        different = sum(row["different_code"] for row in speaking)
        known = {_affects(name) for name in wanted}
        affects = next((word for word in _ORDER if word in known), "unknown")
        return Safety(affects, same, different, _advice(affects, same, different))


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
