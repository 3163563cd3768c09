"""Another key for the same graph: what changed in it, of what kind that is, and how far it is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from cachescope.analysis.differences import field_change
from cachescope.analysis.fields import is_input
from cachescope.analysis.history.history import History
from cachescope.analysis.history.places_by_group import NONE, Numbers
from cachescope.analysis.history.rows import EntryRow, LookupRow
from cachescope.analysis.verdicts.baselines import Baselines, Candidate, Compared
from cachescope.analysis.verdicts.change_kinds import TORCH_VERSION, ChangeKinds
from cachescope.analysis.verdicts.changed_fields import Component
from cachescope.analysis.verdicts.misses import Why
from cachescope.components import parse_component
from cachescope.details import HashDetails
from cachescope.keys.paths import is_in_remote_cache
from cachescope.terms import Evidence
from cachescope.verdict_kinds import UPGRADE
from cachescope.wording import plural

OF_ITS_OWN: Final = -1
"""The number of a pair whose sentence no other pair shares."""


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields that changed in some pairs."""

    names: tuple[str, ...]
    are_inputs: bool
    is_of_its_own: bool
    """Whether more than these fields and their values decides about the sentence: torch itself is another."""


class ChangedKeys:
    """Says why a key is another one than the key it is compared with.

    Parameters
    ----------
    history : History
    details : HashDetails
    baselines : Baselines
    """

    def __init__(self, history: History, details: HashDetails, baselines: Baselines) -> None:
        self._rows = history.lookups
        self._details = details
        self._baselines = baselines
        self._kinds = ChangeKinds(details, history.runs)
        self._named: dict[bytes, Fields] = {}
        self._summaries: dict[Component, str] = {}

    def named(self, codes: bytes) -> Fields:
        """The fields of some codes, given as the bytes of an array."""
        found = self._named.get(codes)
        if found is None:
            names = tuple(
                self._details.fields[code] for code in np.frombuffer(codes, dtype=np.int32).tolist()
            )
            are_inputs = bool(names) and all(map(is_input, names))
            found = self._named[codes] = Fields(names, are_inputs, TORCH_VERSION in names)
        return found

    def alike(self, at: Numbers, compared: Compared) -> list[int]:
        """A number for each pair: pairs with the same number whose fields changed in the same way share one sentence."""
        rows, is_entry = self._rows, compared.entry != NONE
        is_plain = self._baselines.are_of_one_graph(at, compared)
        is_plain &= is_entry | (rows.run[compared.lookup] != rows.run[at])
        number = self._baselines.running.were_running(compared.lookup, at) + 2 * is_entry
        numbers: list[int] = np.where(is_plain, number, OF_ITS_OWN).tolist()
        return numbers

    def why(self, row: LookupRow, baseline: Candidate, fields: Fields, alone: Component, apart: int) -> Why:
        """Why a lookup missed whose key is another one than that of its baseline.

        Parameters
        ----------
        row : LookupRow
        baseline : LookupRow or EntryRow
        fields : Fields
            What changed; no field at all if torch hashes what its list of fields cannot show.
        alone : tuple of int
            The components of the one field that changed.
        apart : int
            How many fields separate it from the lookup of the run before, if the baseline is a nearer one; else 0.
        """
        changed = fields.names
        if not changed:
            return _NO_DETAIL_DIFFERS
        assert baseline.detail_set is not None and row.detail_set is not None
        sides = baseline.detail_set, row.detail_set
        runs = (baseline.run if isinstance(baseline, LookupRow) else None), row.run
        kind = self._kinds.kind(*sides, runs)
        if TORCH_VERSION in changed:
            # The others follow from it.
            changed = tuple(sorted(changed, key=lambda field: field != TORCH_VERSION))
            follow = plural(
                len(changed) - 1, "other field of the key follows", "other fields of the key follow"
            )
            reason = f"{kind.removeprefix(UPGRADE)}; {follow}"
            if besides := self._kinds.changed_besides(*sides, runs):
                reason += f"; also changed: {_listed(besides)}"
        else:
            reason = self._what_changed(row, baseline, changed, alone)
        if len(changed) < apart:
            reason += f" (compared with the run before it, {apart} fields differ)"
        return Why("key_changed", reason, *self._how_known(baseline, row), changed, kind)

    def _what_changed(
        self, row: LookupRow, baseline: Candidate, changed: tuple[str, ...], alone: Component
    ) -> str:
        graph = "the same graph" if baseline.gm == row.gm else "another form of the graph"
        if self._baselines.are_of_one_process(baseline, row):
            graph = f"compiled again in one process, after compile {getattr(baseline, 'compile_id', '')}"
        if len(changed) > 1:
            return f"{graph}, and {len(changed)} fields of the key differ: {_listed(changed)}"
        summary = self._summary(changed[0], alone)
        return f"{graph}, and one field of the key differs: {changed[0]}, {summary}"

    def _how_known(self, baseline: Candidate, row: LookupRow) -> tuple[Evidence, str]:
        """The evidence that the key of a baseline has changed into this one."""
        if self._baselines.are_of_one_process(baseline, row):
            return "recorded", "torch's compile ids count the compiles of one function in one process"
        if baseline.gm != row.gm:
            return "inferred", f"the graphs are taken for one: {self._baselines.are_alike_by(baseline, row)}"
        if self._baselines.are_concurrent(baseline, row):
            return "inferred", "the processes ran at the same time, and their keys differ by their rank alone"
        if isinstance(baseline, EntryRow) and is_in_remote_cache(baseline.path):
            return "inferred", "predicted: the program would ask the remote cache that holds the entry"
        if isinstance(baseline, EntryRow):
            return "inferred", "by its time of modification the entry had been stored before"
        return "recorded", "torch recorded the hash details of both keys"

    def _summary(self, field: str, components: Component) -> str:
        """What changed in a field, in one line."""
        if components not in self._summaries:
            details = (
                None if code == NONE else parse_component(self._details.components[code])
                for code in components
            )
            texts = [None if detail is None else detail.value_text for detail in details]
            self._summaries[components] = field_change(field, *texts).summary
        return self._summaries[components]


_NO_DETAIL_DIFFERS: Final = Why(
    "no_detail_differs",
    "the keys differ and every recorded field is equal: what torch pickles for the key differs "
    "where its list of fields cannot show it",
    "recorded",
    "torch recorded the hash details of both keys",
)


def _listed(changed: tuple[str, ...]) -> str:
    return (
        ", ".join(changed) if len(changed) <= 4 else f"{', '.join(changed[:3])} and {len(changed) - 3} more"
    )
