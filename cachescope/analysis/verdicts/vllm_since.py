"""First starts of vLLM whose part another scope had compiled into another folder: what has changed since then."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from cachescope.analysis.verdicts.misses import Miss
from cachescope.analysis.verdicts.since_baseline import ChangedSince
from cachescope.analysis.verdicts.vllm_misses import VllmMisses
from cachescope.analysis.vllm.changes import Beside, field_changes_of
from cachescope.analysis.vllm.factors import CODE, CONFIGURATION
from cachescope.analysis.vllm.starts import part_of
from cachescope.frames.vllm import StartRow
from cachescope.terms import VLLM
from cachescope.verdict_kinds import kind_of


def vllm_changed_since(misses: Iterable[Miss], mine: VllmMisses, before: VllmMisses) -> list[ChangedSince]:
    """What changed for first starts among `misses` whose part `before` has in other folders only."""
    firsts = [miss for miss in misses if miss.row.cache == VLLM and kind_of(miss.why).is_first]
    found: dict[tuple[str, ...], list[Miss]] = defaultdict(list)
    nearest_of: dict[tuple[str, ...], Beside] = {}
    for miss in firsts:
        row = mine.starts[miss.row.lookup]
        others = [
            one
            for one in before.starts.values()
            if part_of(one) == part_of(row) and one.outcome != "not_known"
        ]
        beside = _nearest(row, others, mine, before)
        if beside is not None:
            found[beside.changed].append(miss)
            nearest_of.setdefault(beside.changed, beside)
    return [
        ChangedSince(
            fields,
            field_changes_of(nearest_of[fields]),
            same[0].cause,
            tuple(miss.row.lookup for miss in same),
        )
        for fields, same in found.items()
    ]


def _nearest(
    row: StartRow, others: Sequence[StartRow], mine: VllmMisses, before: VllmMisses
) -> Beside | None:
    """The folder of another start that differs in the fewest factors; None if the folder is one of theirs, or none is known."""
    folders = {one.folder for one in others if one.folder is not None}
    if row.folder is None or row.folder in folders:
        return None
    known = [
        beside for name in sorted(folders) if (beside := mine.beside(row.folder, name, before)) is not None
    ]
    # As of starts of one scope: with another configuration and other code it may be another model.
    of_model = [one for one in known if one.changed and not {CONFIGURATION, CODE} <= set(one.changed)]
    return min(of_model, key=lambda one: (CONFIGURATION in one.changed, len(one.changed)), default=None)
