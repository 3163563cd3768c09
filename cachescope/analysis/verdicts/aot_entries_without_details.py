"""AOTAutograd misses in a directory that runs without a record had filled.

Such an entry stores no hash details of its key. The FX entries that it points to do, and most of their fields belong to
its own key as well (torch/_functorch/_aot_autograd/autograd_cache.py, `AOTAutogradCacheDetails`, is a kind of
`FxGraphHashDetails`). So these misses are judged by the graphs below them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from cachescope.analysis.history.entry_times import NEVER, EntryTimes
from cachescope.analysis.history.history import History, set_of
from cachescope.analysis.verdicts.misses import VerdictsSoFar, Why
from cachescope.frames.directory_rows import EntryRow
from cachescope.keys.key_fields import is_input, is_of_the_program
from cachescope.terms import AOTAUTOGRAD
from cachescope.verdict_kinds import EXPLAINED_BY_GRAPHS, NOT_KNOWN
from cachescope.wording import listed

_Graph = tuple[str, str | None]
"""A directory, and the key of an FX entry in it."""
_NO_DETAILS: Final = "AOTAutograd entries in the directory store no hash details of their keys"


def judge_by_graphs(
    history: History, found: VerdictsSoFar, times: EntryTimes, autograd: Sequence[int]
) -> None:
    """Judge AOTAutograd misses without a baseline in another process, once the graphs below them are judged."""
    above = _EntriesAbove(history, found, times)
    for at in autograd:
        why = found.why[at]
        assert why is not None
        is_first, baseline = why.what.may_be_first, found.baseline[at]
        if is_first or (
            isinstance(baseline, int) and history.lookups[baseline].run == history.lookups[at].run
        ):
            # An earlier compile of another form in the same process is not the reason where an entry of this form exists, nor
            # where the graphs of this form had been compiled before.
            by_graphs = above.why(at)
            is_reason = by_graphs in (_FOUND_BELOW, _OF_OTHER_INPUTS) or is_first
            if by_graphs is not None and (is_reason or by_graphs.changed):
                found.record(at, by_graphs)


class _EntriesAbove:
    """The AOTAutograd entries that no recorded miss wrote, and the graphs that they point to."""

    def __init__(self, history: History, found: VerdictsSoFar, times: EntryTimes) -> None:
        self._history = history
        self._found = found
        self._pointing_to: dict[_Graph, dict[int, int]] = defaultdict(dict)
        described = {(row.root, row.cache_key) for row in history.entries if row.detail_set is not None}
        self._first = self._first_undescribed = NEVER
        for entry in history.entries:
            if entry.cache == AOTAUTOGRAD and not history.is_of_a_miss(entry):
                begin, end = times.interval(entry)
                self._first = min(self._first, begin)
                graphs = {(entry.root, key) for key in entry.fx_keys}
                if not graphs or not graphs <= described:
                    self._first_undescribed = min(self._first_undescribed, begin)
                for key in entry.fx_keys:
                    self._pointing_to[entry.root, key][entry.entry] = end

    def why(self, at: int) -> Why | None:
        """What the graphs below an AOTAutograd miss say about it."""
        below = [
            (self._found.why[graph], self._found.baseline[graph])
            for graph in self._history.timeline.graphs_of(at)
        ]
        whys = [why for why, _ in below if why is not None]
        changed = [
            (why, baseline)
            for why, baseline in below
            if why is not None and why.changed and isinstance(baseline, EntryRow)
        ]
        time = self._history.lookups[at].time
        if changed and self._one_points_to([entry for _, entry in changed], time):
            fields = {field for why, _ in changed for field in why.changed}
            if own := tuple(sorted(field for field in fields if self._belongs_to(at, field))):
                return _changed(own)
            # What another compile in the process takes as well did not change with a guard of it.
            others = self._found.why[at]
            if (
                others is not None
                and not {"gm", *others.changed} & fields
                and not any(map(is_input, others.changed))
            ):
                return _OF_OTHER_INPUTS
        are_new = bool(whys) and all(why.what.is_first or why.what.is_of_function for why in whys)
        # An entry is of another graph if its graphs are known and differ.
        first = self._first_undescribed if are_new else self._first
        may_be_there = first != NEVER and (time is None or first <= time)
        doubt = next((why for why in whys if why.what.is_other_key), None)
        if changed or may_be_there or doubt is not None:
            return doubt or _NOT_DETERMINED
        if self._history.found_below(at):
            return _FOUND_BELOW
        return MADE_OTHERWISE if MADE_OTHERWISE in whys else None

    def _one_points_to(self, graphs: list[EntryRow], time: int | None) -> bool:
        """Whether one entry, stored before a time, points to all of some graphs."""
        pointing = [self._pointing_to.get((graph.root, graph.cache_key), {}) for graph in graphs]
        ends = (end for entry, end in pointing[0].items() if all(entry in others for others in pointing))
        return time is not None and any(end <= time for end in ends)

    def _belongs_to(self, at: int, field: str) -> bool:
        """Whether a field of a graph's key is in the AOTAutograd key too, with the same meaning."""
        own = set_of(self._history.lookups[at])
        return not is_of_the_program(field) and self._history.details.component_of(own, field) is not None


_NOT_DETERMINED: Final = Why(
    "first_lookup",
    "nothing that was read is known to be an earlier form of this graph",
    "not_known",
    f"{_NO_DETAILS}, and one of them may be or have been of the same graph",
    kind=NOT_KNOWN,
)
_FOUND_BELOW: Final = replace(
    _NOT_DETERMINED,
    evidence_text="a graph below it was found, so that it had been compiled before: under this key, whose entry is gone, or under another one",
)
_OF_OTHER_INPUTS: Final = replace(
    _NOT_DETERMINED,
    evidence_text="the graphs below it are those of a stored entry, which was made for other inputs: it may be its earlier form",
)
MADE_OTHERWISE: Final = replace(
    _NOT_DETERMINED,
    evidence_text="a graph in the directory takes the same inputs, and AOTAutograd may have made it of the same function: "
    "it makes others where gradients are needed, or under autocast",
)
"""A graph that nothing shows to be a form of an earlier one, but that may come from the same function."""


def _changed(fields: tuple[str, ...]) -> Why:
    count = "one field of the key differs" if len(fields) == 1 else f"{len(fields)} fields of the key differ"
    return Why(
        "key_changed",
        f"the same graph, and {count}: {listed(fields, 3)}; whether more differs is not known",
        "inferred",
        f"{_NO_DETAILS}; the graphs below are compared with those that one of them points to, and these "
        "fields belong to both keys",
        fields,
        EXPLAINED_BY_GRAPHS,
    )
