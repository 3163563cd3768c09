"""Which misses only follow from another miss, and the distinct causes that remain.

An AOTAutograd miss is followed by FX lookups of the same compile; one changed config misses every graph.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cachescope.analysis.fields import is_from_the_graph
from cachescope.analysis.history.history import History
from cachescope.analysis.history.lookups import MISSING, Flags
from cachescope.analysis.history.places_by_group import NONE, Grouped, Numbers, firsts, numbered, paired
from cachescope.analysis.verdicts.adviser import Adviser
from cachescope.analysis.verdicts.misses import Misses, Why
from cachescope.frames.answer_rows import CauseRow
from cachescope.terms import AOTAUTOGRAD, FXGRAPH, VLLM
from cachescope.verdict_kinds import UPGRADE, Verdict, kind_of

_Kind = tuple[Why, str]
_CauseKey = tuple[Verdict, tuple[str, ...], str, bool]


def link_consequences(misses: Misses) -> None:
    """Mark the misses that follow from another one: sets `follows` and `is_root`."""
    lookups, at = misses.lookups, misses.at
    kinds = _KindsOfMisses(misses)
    number_of = np.full(len(lookups) + 1, NONE, dtype=np.int64)
    number_of[at] = np.arange(len(at))
    parent = number_of[lookups.aot[at]]
    has_parent = parent != NONE
    was_gone = np.append(kinds.each(lambda why: kind_of(why).is_graph_gone), False)[parent]
    explained = kinds.pairs(parent, np.arange(len(at)), _explains)
    misses.follows[explained] = parent[explained]
    of_forward = _follow_their_forward_graph(misses, kinds, ~has_parent)
    rest = ~was_gone & ~explained & ~of_forward & lookups.compile_id.is_known[at]
    _follow_the_first_of_their_compile(misses, kinds, np.flatnonzero(rest))
    misses.is_root[:] = misses.follows == NONE
    _follow_their_graphs(
        misses, parent, np.append(kinds.each(lambda why: kind_of(why).is_shown_by_graphs), False)[parent]
    )
    for number in np.flatnonzero(was_gone).tolist():
        # The FX entry was gone, and with it the AOTAutograd entry that points to it.
        above = int(parent[number])
        if misses.is_root[above]:
            misses.follows[above], misses.is_root[above] = number, False
        else:
            misses.follows[number] = misses.follows[above]
            misses.is_root[number] = False


def _follow_their_graphs(misses: Misses, parent: Numbers, is_explained_by_them: Flags) -> None:
    """AOTAutograd misses whose change only the graphs below show."""
    for number in np.flatnonzero(is_explained_by_them).tolist():
        above = int(parent[number])
        if misses.is_root[above] and misses.why_of(number).changed:
            first = int(misses.follows[number])
            misses.follows[above], misses.is_root[above] = number if first == NONE else first, False


class _KindsOfMisses:
    """The distinct combinations of a reason and a cache: whether one miss explains another rests on these alone."""

    def __init__(self, misses: Misses) -> None:
        is_of_vllm = np.zeros(len(misses.whys), dtype=bool)
        is_of_vllm[misses.why[misses.lookups.is_of_vllm[misses.at]]] = True
        keys = list(map(_cause_key, misses.whys, is_of_vllm.tolist()))
        self.cause_keys = list(dict.fromkeys(keys))
        code = {key: number for number, key in enumerate(self.cause_keys)}
        self.of_why = np.array([code[key] for key in keys], dtype=np.int64)
        caches = misses.lookups.cache
        # What `_explains` looks at, which is more than what makes two misses one cause.
        looked_at: dict[tuple[object, ...], int] = {}
        of_why = [
            looked_at.setdefault((why.verdict, why.kind, why.changed), len(looked_at)) for why in misses.whys
        ]
        self.number = paired(
            np.array(of_why, dtype=np.int64)[misses.why], caches.codes[misses.at].astype(np.int64)
        )
        self._first = firsts(self.number).tolist()
        self._of = [
            (misses.why_of(number), misses.lookups.cache_of(int(misses.at[number]))) for number in self._first
        ]

    def each(self, holds: Callable[[Why], bool]) -> Flags:
        """For which misses something holds."""
        return np.array([holds(why) for why, _ in self._of], dtype=bool)[self.number]

    def pairs(self, one: Numbers, other: Numbers, holds: Callable[[_Kind, _Kind], bool]) -> Flags:
        """For which pairs of misses something holds; for none where the first is -1."""
        found = np.zeros(len(one), dtype=bool)
        known = np.flatnonzero(one != NONE)
        numbers = paired(self.number[one[known]], self.number[other[known]])
        first = firsts(numbers)
        sides = zip(
            self.number[one[known[first]]].tolist(), self.number[other[known[first]]].tolist(), strict=True
        )
        answers = np.array([holds(self._of[a], self._of[b]) for a, b in sides], dtype=bool)
        found[known] = answers[numbers]
        return found


def _follow_their_forward_graph(misses: Misses, kinds: _KindsOfMisses, is_asked: Flags) -> Flags:
    """Backward graphs that are new because their forward graph is: the AOTAutograd cache was off."""
    lookups, at = misses.lookups, misses.at
    found = np.zeros(len(at), dtype=bool)
    is_forward = lookups.direction.are("forward")[at]
    backward = is_asked & lookups.direction.are("backward")[at]
    if not backward.any():
        return found
    forward = np.full(len(at), NONE, dtype=np.int64)
    compiles = _compiles_of(misses).tolist()
    latest: dict[int, int] = {}
    for number in np.flatnonzero(is_forward | backward).tolist():
        if backward[number]:
            forward[number] = latest.get(compiles[number], NONE)
        else:
            latest[compiles[number]] = number
    found = kinds.pairs(forward, np.arange(len(at)), _is_of)
    misses.follows[found] = forward[found]
    return found


def _follow_the_first_of_their_compile(misses: Misses, kinds: _KindsOfMisses, numbers: Numbers) -> None:
    """Misses of one cause in one compile, under one AOTAutograd lookup: all but the first follow from it."""
    lookups = misses.lookups
    at = misses.at[numbers]
    group = paired(_compiles_of(misses)[numbers], lookups.aot_lookup[at])
    group = paired(group, kinds.of_why[misses.why[numbers]])
    first = numbers[firsts(group)[group]]
    of_first = misses.at[first]
    # An AOTAutograd miss follows only from its own key.
    is_one_key = (lookups.key[at] == lookups.key[of_first]) & (lookups.key[at] != NONE)
    is_one_cache = lookups.cache.codes[at] == lookups.cache.codes[of_first]
    may_follow = np.where(lookups.is_aot[at], is_one_key, is_one_cache) & (first != numbers)
    misses.follows[numbers[may_follow]] = first[may_follow]


def _compiles_of(misses: Misses) -> Numbers:
    """The compile of each miss, with its segment: compile ids begin again after torch._dynamo.reset()."""
    lookups, at = misses.lookups, misses.at
    return paired(lookups.compiled_in[at], lookups.segment[at])


def _is_of(forward: _Kind, backward: _Kind) -> bool:
    """Whether a backward graph is new because its forward graph is."""
    return backward[0].verdict in kind_of(forward[0]).explains_backward


def _explains(above: _Kind, below: _Kind) -> bool:
    """Whether the AOTAutograd miss of the same compile explains an FX miss."""
    (aot, aot_cache), (fx, fx_cache) = above, below
    if aot_cache != AOTAUTOGRAD or fx_cache != FXGRAPH:
        return False
    kind = kind_of(aot)
    if kind.explains_same_kind and (fx.verdict, fx.kind) == (aot.verdict, aot.kind):
        return True
    if kind.explains_fields and fx.changed:
        return all(is_from_the_graph(f) or f in aot.changed for f in fx.changed)
    return fx.verdict in kind.explains


def _cause_key(why: Why, is_of_vllm: bool) -> _CauseKey:
    kind = kind_of(why)
    # What changes with another torch differs from graph to graph.
    fields = () if kind.is_upgrade else tuple(sorted(why.changed))
    return why.verdict, fields, "" if kind.is_one_cause else why.kind, is_of_vllm


def _roots_of(misses: Misses) -> Numbers:
    """The root that each miss follows from in the end."""
    root = np.arange(len(misses))
    while (is_on := misses.follows[root] != NONE).any():
        root[is_on] = misses.follows[root[is_on]]
    return root


def group_causes(misses: Misses, history: History, adviser: Adviser) -> list[CauseRow]:
    """Give every miss its cause, and return the causes, the costliest first."""
    lookups, at = misses.lookups, misses.at
    roots = _roots_of(misses)
    kinds = _KindsOfMisses(misses)
    group = numbered(kinds.of_why[misses.why[roots]])
    first = firsts(group)
    count = np.bincount(group)
    taken = lookups.time_taken_ns[at]
    lost = np.zeros(len(first), dtype=np.int64)
    np.add.at(lost, group[taken != MISSING], taken[taken != MISSING])
    keys = [kinds.cause_keys[kinds.of_why[misses.why[roots[one]]]] for one in first.tolist()]
    ordered = sorted(range(len(first)), key=lambda one: (-lost[one], -count[one]))
    number = np.empty(len(first), dtype=np.int64)
    number[ordered] = np.arange(len(first))
    misses.cause = number[group]
    has_time = np.bincount(group, weights=taken != MISSING) > 0
    root_count = np.bincount(group, weights=misses.is_root)
    of_group = Grouped(group)
    found = []
    for cause, one in enumerate(ordered):
        verdict, _, kind, _ = keys[one]
        members = at[of_group.of(one)]
        ranks = np.unique(history.rank[members])
        root = misses[int(roots[first[one]])]
        found.append(
            CauseRow(
                cause=cause,
                verdict=verdict,
                kind=kind,
                fields=root.why.changed,
                misses=int(count[one]),
                roots=int(root_count[one]),
                runs=tuple(np.unique(lookups.run[members]).tolist()),
                ranks=tuple(ranks[ranks != NONE].tolist()),
                time_lost_ns=int(lost[one]) if has_time[one] else None,
                summary=_summary(root.why, root.row.cache == VLLM),
                advice=adviser.advice(root),
            )
        )
    return found


def _summary(root: Why, is_of_vllm: bool) -> str:
    kind = kind_of(root)
    return ((is_of_vllm and kind.vllm_summary) or kind.summary).format(
        kind=root.kind,
        fields=", ".join(root.changed),
        upgrade=root.kind.removeprefix(UPGRADE),
        more=len(root.changed) - 1,
    )
