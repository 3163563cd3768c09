"""Collects the facts that advice depends on: from the root miss of a cause to its key, its compile and its run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cachescope.analysis.differences import FieldChange, field_changes
from cachescope.analysis.history.history import History
from cachescope.analysis.verdicts.advice import AdviceFacts, cause_advice
from cachescope.analysis.verdicts.misses import Miss
from cachescope.frames.recorded_rows import LookupRow
from cachescope.terms import FXGRAPH, VLLM

if TYPE_CHECKING:
    from cachescope.analysis.verdicts.vllm_misses import VllmMisses


class Adviser:
    """Gives the advice for root misses."""

    def __init__(self, history: History, vllm: VllmMisses | None = None) -> None:
        self._vllm = vllm
        self._history = history
        self._runs = {run.run: run for run in history.runs}

    def advice(self, root: Miss) -> str | None:
        """Advice for a cause, from its root miss; None if nothing is certain."""
        row = root.row
        if row.cache == VLLM:
            changes: tuple[FieldChange, ...] = (
                () if self._vllm is None else self._vllm.changes.get(row.lookup, ())
            )
            from cachescope.analysis.vllm.advice import vllm_advice

            return vllm_advice(root.why, changes)
        lookups = self._history.lookups
        graphs = [lookups[graph] for graph in self._history.timeline.graphs_of(root.index)]
        were_found = [graph.outcome == "hit" for graph in graphs if graph.cache == FXGRAPH]
        before = None if root.baseline is None else root.baseline.detail_set
        changes = ()
        if root.why.changed and before is not None and row.detail_set is not None:
            other = self._runs.get(root.baseline.run) if isinstance(root.baseline, LookupRow) else None
            sides = other, self._runs.get(row.run)
            changes = tuple(field_changes(self._history.details, before, row.detail_set, sides))
        run = self._runs.get(row.run)
        return cause_advice(
            AdviceFacts(
                root.why.verdict,
                root.why.kind,
                root.why.reason,
                row.cache,
                self._bypass_reason(root),
                row.bypass_exception,
                changes,
                were_graphs_found=bool(were_found) and all(were_found),
                are_lines_missing=row.details == "incomplete",
                cache_dir=None if run is None else run.cache_dir,
            )
        )

    @staticmethod
    def _bypass_reason(root: Miss) -> str | None:
        """Why torch would not look it up; of a key that it had looked up before, why it would not store it then."""
        if root.row.outcome == "bypass":
            return root.row.bypass_reason
        return root.baseline.save_bypass if isinstance(root.baseline, LookupRow) else None
