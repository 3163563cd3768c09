"""When compiles ended and what of them was stored, as far as the lookups tell."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from cachescope.analysis.history import EntryRow, LookupRow
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

    def why_not_stored(self, row: LookupRow) -> str | None:
        """Why nothing was stored after a miss; None where it was, as far as can be known."""
        if row.save_bypass is not None:
            return row.save_bypass
        directions = {graph.direction for graph in self.graphs_of(row)}
        if row.cache == AOTAUTOGRAD and "forward" in directions and "backward" not in directions:
            return "the entry of a training graph is written with its backward graph, which was not compiled"
        return None


def is_older(entry: EntryRow, row: LookupRow) -> bool:
    """Whether an entry was there when a lookup was made."""
    return entry.modified_time is not None and row.time is not None and entry.modified_time < row.time


def shows_symbol(text: str) -> bool:
    """Whether the printed value of an input has a size that is a symbol, so that its entries may have guards."""
    return _SYMBOL.search(text) is not None
