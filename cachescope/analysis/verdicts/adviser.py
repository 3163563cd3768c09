"""Collects the facts that advice depends on: from the root miss of a cause to its key, its compile and its run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from cachescope.analysis.differences import FieldChange, field_changes
from cachescope.analysis.history.rows import LookupRow, RunRow
from cachescope.analysis.verdicts.advice import AdviceFacts, cause_advice
from cachescope.analysis.verdicts.misses import Miss
from cachescope.details import HashDetails
from cachescope.terms import FXGRAPH


class Adviser:
    """Gives the advice for root misses.

    Parameters
    ----------
    lookups : sequence of LookupRow
    runs : sequence of RunRow
    details : HashDetails
    """

    def __init__(self, lookups: Sequence[LookupRow], runs: Sequence[RunRow], details: HashDetails) -> None:
        self._details = details
        self._directory = {run.run: run.cache_dir for run in runs}
        self._graphs: dict[int, list[LookupRow]] = defaultdict(list)
        for row in lookups:
            if row.cache == FXGRAPH and row.aot_lookup is not None:
                self._graphs[row.aot_lookup].append(row)

    def advice(self, root: Miss) -> str | None:
        """Advice for a cause, from its root miss; None if nothing is certain."""
        row = root.row
        graphs = self._graphs.get(row.lookup, [])
        before = None if root.baseline is None else root.baseline.detail_set
        changes: tuple[FieldChange, ...] = ()
        if root.changed and before is not None and row.detail_set is not None:
            changes = tuple(field_changes(self._details, before, row.detail_set))
        return cause_advice(
            AdviceFacts(
                root.verdict,
                root.kind,
                root.reason,
                changes,
                were_graphs_found=bool(graphs) and all(graph.is_hit for graph in graphs),
                are_lines_missing=row.details == "incomplete",
                cache_dir=self._directory.get(row.run),
            )
        )
