"""Misses inferred from a cache directory alone: why one graph has several entries.

Every entry of a graph after the first was made by a miss. A directory has no runs, so the baseline of an entry
is the earlier entry of its graph that differs in the fewest fields.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from cachescope.analysis.directory.equal_code import OTHER_SOURCE, Compared, GeneratedCode, KernelBinaries
from cachescope.analysis.history.entry_times import resolution_ns
from cachescope.analysis.key_distance import EarlierKeys, KeyDistances
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.linked_rows import PastMiss
from cachescope.grouping import by_key
from cachescope.rows import like
from cachescope.terms import FXGRAPH


def past_misses(
    entries: Sequence[EntryRow], keys: KeyDistances, code: GeneratedCode, binaries: KernelBinaries
) -> list[PastMiss]:
    """The rows of the frame past_misses."""
    of_root = by_key((entry.root, entry) for entry in entries)
    resolutions = {root: resolution_ns(found) for root, found in of_root.items()}
    sound = [e for e in entries if e.cache == FXGRAPH and e.status == "ok"]
    sound.sort(key=lambda e: (e.modified_time or 0, e.entry))
    # Equal bytes are copies of one entry: another compile stores other bytes, since they contain the time that it took.
    distinct = {(e.cache_key, os.path.basename(e.path), e.size_bytes): e for e in reversed(sound)}
    graphs = by_key(
        ((graph, keys.details.direction(entry.detail_set)), entry)
        for entry in reversed(distinct.values())
        if entry.detail_set is not None and (graph := keys.graph(entry.detail_set)) is not None
    )

    def of_graph(graph: int, direction: str | None, made: list[EntryRow]) -> Iterator[PastMiss]:
        sets = [cast("int", entry.detail_set) for entry in made]
        earlier = EarlierKeys(keys, list(enumerate(sets)))
        of_key = defaultdict(list, {made[0].cache_key: [made[0]]})
        for at, entry in enumerate(made[1:], 1):
            same_key = of_key[entry.cache_key]
            if same_key:
                others = {e.guards_expr for e in same_key}
                verdict = "entry_unavailable" if entry.guards_expr in others else "guard_failed"
                baseline, changed = same_key[-1], tuple[str, ...]()
            else:
                nearest, _ = earlier.nearest(at, sets[at])
                assert nearest is not None
                baseline, changed = made[nearest], keys.details.changed_fields(sets[nearest], sets[at])
                verdict = "key_changed" if changed else "no_detail_differs"
            same_key.append(entry)
            same_code, compared = _same_code(entry, baseline, code, binaries)
            yield like(
                PastMiss,
                entry,
                cache_key=entry.cache_key or "",
                graph=graph,
                direction=direction,
                made_time=entry.modified_time,
                verdict=verdict,
                baseline_entry=baseline.entry,
                is_order_known=_is_stored_before(baseline, entry, resolutions),
                changed=changed,
                same_code=same_code,
                same_binaries=compared.same,
                same_code_known_by=compared.known_by,
            )

    numbered = enumerate(graphs.items())
    return [miss for number, ((_, direction), made) in numbered for miss in of_graph(number, direction, made)]


def _is_stored_before(baseline: EntryRow, entry: EntryRow, resolutions: Mapping[str, int | None]) -> bool:
    """Whether the times of two entries show that one was stored before the other was compiled."""
    found = {resolutions[entry.root], resolutions[baseline.root]}
    if None in found or entry.modified_time is None or baseline.modified_time is None:
        return False
    began = entry.modified_time - (entry.time_taken_ns or 0)
    return began - baseline.modified_time >= max(one or 1 for one in found)


def _same_code(
    entry: EntryRow, baseline: EntryRow, code: GeneratedCode, binaries: KernelBinaries
) -> tuple[bool | None, Compared]:
    """Whether two entries hold the same generated source, and the comparison of their kernels."""
    same = code.are_same(entry, baseline)
    if same is None:
        return None, Compared(None, "the generated source of one is not stored, or could not be read")
    if not same:
        return False, Compared(None, OTHER_SOURCE)
    return True, binaries.compare(entry, baseline)
