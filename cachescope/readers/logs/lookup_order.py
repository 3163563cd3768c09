"""The order in which torch made its lookups, which differs from the order in which it logged them, and where a new process begins.

An AOTAutograd lookup begins before the FX lookups of its graphs. On a hit its record follows theirs in every
version; on a miss its trace artifact follows them through 2.9 and precedes them from 2.10 on.

In containers every process is pid 1, even after a restart. ``torch._dynamo.reset()`` restarts compile ids too, and a program may idle
for hours: neither shows a new process. These do: the clock goes back, torch is another build, or a function of torch has another
address. The address is printed for ``fx_kwargs[get_decomp_fn]`` (2.12 to 2.14). Without such a sign, the log stays one process.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

from cachescope.details import HashDetails
from cachescope.frames.recorded_rows import LookupRow
from cachescope.readers.logs.log_prefix import on_from
from cachescope.terms import AOTAUTOGRAD

_FIRST_ID: Final = "0/0"
_BACK_US: Final = 60_000_000


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


def run_starts(lookups: Sequence[LookupRow], clocks: Sequence[int | None], details: HashDetails) -> list[int]:
    """The positions at which a process begins, among lookups in the order of their lines; 0 is always one."""
    begins = [at for at in range(1, len(lookups)) if _begins_first_compile(lookups, at)]
    if not begins:
        return [0]
    starts = {at for at in begins if _goes_back(clocks[at - 1], clocks[at])}
    for field, compares_texts in (("torch_version", False), ("fx_kwargs[get_decomp_fn]", True)):
        last, last_at = None, 0
        for at, lookup in enumerate(lookups):
            sign = _sign(lookup, field, details, compares_texts=compares_texts)
            if sign is None:
                continue
            before = bisect_right(begins, at)
            if last is not None and sign != last and before and begins[before - 1] > last_at:
                starts.add(begins[before - 1])
            last, last_at = sign, at
    return [0, *sorted(starts)]


def _begins_first_compile(lookups: Sequence[LookupRow], at: int) -> bool:
    """Whether this lookup begins the first compile of a process, or the first after a reset."""
    one, before = lookups[at], lookups[at - 1]
    if one.compile_id != _FIRST_ID:
        return False
    # Without the AOTAutograd cache nothing distinguishes the lookups of two first compiles.
    return (one.compile_id, one.segment) != (before.compile_id, before.segment) or one.segment == 0


def _goes_back(before: int | None, now: int | None) -> bool:
    return before is not None and now is not None and before - on_from(now, before) > _BACK_US


def _sign(lookup: LookupRow, field: str, details: HashDetails, *, compares_texts: bool) -> int | None:
    """A number that all keys of a process share; None if the details do not contain it."""
    if lookup.detail_set is None:
        return None
    component = details.component_of(lookup.detail_set, field)
    return component if compares_texts or component is None else details.hash_codes[component]
