"""The order in which torch made its lookups, which differs from the order in which it logged them.

An AOTAutograd lookup begins before the FX lookups of its graphs. On a hit its record follows theirs in every
version; on a miss its trace artifact follows them through 2.9 and precedes them from 2.10 on.
"""

from __future__ import annotations

from cachescope.frames.recorded_rows import LookupRow
from cachescope.terms import AOTAUTOGRAD


def put_in_order(lookups: list[LookupRow]) -> list[LookupRow]:
    """Order lookups that are given in the order of their lines; an AOTAutograd lookup comes before those made under it.

    The times of AOTAutograd lookups are moved before those of the lookups they contain: times then agree with the
    order.
    """
    ordered: list[LookupRow] = []
    for lookup in lookups:
        at = _place_of(lookup, ordered) if lookup.cache == AOTAUTOGRAD else len(ordered)
        if at < len(ordered):
            inner = ordered[at].time
            if inner is not None and lookup.time is not None:
                lookup.time = min(lookup.time, inner - 1)
        ordered.insert(at, lookup)
    if all(lookup.time is not None for lookup in ordered):
        ordered.sort(key=lambda lookup: lookup.time or 0)
    return ordered


def _place_of(aot: LookupRow, ordered: list[LookupRow]) -> int:
    """Where an AOTAutograd lookup belongs: before the FX lookups that were made under it."""
    at = len(ordered)
    while at > 0:
        before = ordered[at - 1]
        same_compile = (before.compile_id, before.segment) == (aot.compile_id, aot.segment)
        if before.cache == AOTAUTOGRAD or not same_compile:
            break
        # A hit contains only hits; an FX miss before it belongs to an earlier compile with the same id.
        if aot.outcome == "hit" and before.outcome != "hit":
            break
        at -= 1
    after_miss = at > 0 and ordered[at - 1].cache == AOTAUTOGRAD and ordered[at - 1].outcome != "hit"
    if after_miss and ordered[at - 1].compile_id == aot.compile_id and aot.outcome != "hit":
        # The earlier AOTAutograd miss compiled those FX lookups.
        return len(ordered)
    return at
