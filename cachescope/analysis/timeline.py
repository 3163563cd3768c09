"""When compiles ended and results were stored, as far as the lookups tell; and guard misses that no log names."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from cachescope.analysis.history import EntryRow, LookupRow
from cachescope.details import HashDetails
from cachescope.terms import AOTAUTOGRAD

# A text log does not say when a compile ended; a race is over by then.
_UNKNOWN_COMPILE_NS: Final = 2_000_000_000
# A size that is a symbol, as in torch.Size([s77, 8]) or ('s77',): torch/_inductor/codecache.py, `_reduce_symint`.
_SYMBOL: Final = re.compile(r"\b(?:Size\(\[[^]]*\b|\(')[su]\d+\b")


class Timeline:
    """What was compiled and stored when."""

    def __init__(self, lookups: Sequence[LookupRow]) -> None:
        self._graphs: dict[int, list[LookupRow]] = defaultdict(list)
        for row in lookups:
            if row.aot_lookup is not None:
                self._graphs[row.aot_lookup].append(row)

    def graphs_of(self, aot: LookupRow) -> list[LookupRow]:
        """The FX lookups made under an AOTAutograd lookup."""
        return self._graphs.get(aot.lookup, [])

    def end_of(self, row: LookupRow) -> int | None:
        """When the compile after a miss ended; None where no log has times."""
        if row.time is None:
            return None
        if row.time_taken_ns is not None:
            return row.time + row.time_taken_ns
        inner = [self.end_of(graph) for graph in self.graphs_of(row)]
        known = [end for end in [*inner, row.end_time] if end is not None]
        return max(known) if known and max(known) > row.time else row.time + _UNKNOWN_COMPILE_NS

    def was_compiling(self, earlier: LookupRow, row: LookupRow) -> bool:
        """Whether the compile after an earlier miss was still going on."""
        end = self.end_of(earlier)
        return row.time is not None and end is not None and row.time <= end

    def was_stored_before(self, earlier: LookupRow, row: LookupRow) -> bool:
        """Whether an entry of the key was there because of an earlier lookup of it."""
        if earlier.is_hit:
            return True
        if earlier.outcome not in ("full_miss", "guard_miss") or self.why_not_stored(earlier) is not None:
            return False
        # Two lookups of one key in one compile: the first went through the AOTAutograd entry.
        if earlier.run == row.run and earlier.compile_id == row.compile_id:
            return False
        return not self.was_compiling(earlier, row)

    def why_not_stored(self, row: LookupRow) -> str | None:
        """Why nothing was stored after a miss; None where it was, as far as can be known."""
        if row.save_bypass is not None:
            return row.save_bypass
        directions = {graph.direction for graph in self.graphs_of(row)}
        if row.cache == AOTAUTOGRAD and "forward" in directions and "backward" not in directions:
            return "the entry of a training graph is written with its backward graph, which was not compiled"
        return None


def inferred_guard_misses(
    lookups: Sequence[LookupRow], entries: Sequence[EntryRow], details: HashDetails
) -> list[int]:
    """Misses that a text log leaves open and that can only be guard misses.

    Since 2.8 text logs say nothing of guards. A key that had been stored for a graph with symbolic sizes,
    without a failure to load it and with its entry still in the cache directory where that is known, missed
    because of its guards.

    Parameters
    ----------
    lookups : sequence of LookupRow
        In time order.
    entries : sequence of EntryRow
    details : HashDetails

    Returns
    -------
    list of int
        Ids of lookups.
    """
    timeline = Timeline(lookups)
    seen: dict[tuple[str, str], list[LookupRow]] = defaultdict(list)
    of_key: dict[tuple[str, str], list[EntryRow]] = defaultdict(list)
    for entry in entries:
        of_key[entry.cache, entry.cache_key].append(entry)
    symbolic: dict[int | None, bool] = {None: False}
    found: dict[int, None] = {}
    for row in lookups:
        if row.cache_key is None:
            continue
        key = (row.cache, row.cache_key)
        is_open = row.outcome == "full_miss" and row.status_detailed is None and row.load_error is None
        if is_open and (seen[key] or of_key[key]):
            if row.detail_set is not None and row.detail_set not in symbolic:
                symbolic[row.detail_set] = _is_symbolic(row.detail_set, details)
            stored = any(timeline.was_stored_before(earlier, row) for earlier in seen[key])
            # The FX graph of an AOTAutograd guard miss has the same guards, with details or without.
            may_have_guards = symbolic[row.detail_set] or row.aot_lookup in found
            if may_have_guards and _is_there(row, stored, of_key[key]):
                found[row.lookup] = None
        seen[key].append(row)
    # Through 2.7 an AOTAutograd entry had no guards of its own: those of its graphs failed.
    for row in lookups:
        failed = [g for g in timeline.graphs_of(row) if g.outcome == "guard_miss" or g.lookup in found]
        if failed and row.outcome == "full_miss" and row.status_detailed is None:
            found[row.lookup] = None
    return list(found)


def is_older(entry: EntryRow, row: LookupRow) -> bool:
    """Whether an entry was there when a lookup was made."""
    return entry.modified_time is not None and row.time is not None and entry.modified_time < row.time


def _is_there(row: LookupRow, stored: bool, entries: list[EntryRow]) -> bool:
    """Whether a sound entry was there; where a directory was read, it has the last word."""
    if not entries:
        return stored
    older = [entry for entry in entries if is_older(entry, row)]
    return bool(older) and all(entry.status == "ok" for entry in older)


def _is_symbolic(detail_set: int, details: HashDetails) -> bool:
    texts = (d.value_text for d in details.details(detail_set) if d.field.startswith("example_inputs"))
    return any(shows_symbol(text) for text in texts)


def shows_symbol(text: str) -> bool:
    """Whether the printed value of an input has a size that is a symbol, so that its entries may have guards."""
    return _SYMBOL.search(text) is not None
