"""Which misses only follow from another miss, and the distinct causes that remain.

An AOTAutograd miss is followed by FX lookups of the same compile; one changed config misses every graph.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from cachescope.analysis.fields import is_from_the_graph
from cachescope.analysis.history.history import History
from cachescope.analysis.history.lookups import MISSING, Flags
from cachescope.analysis.history.places_by_group import NONE, Grouped, Numbers, firsts, numbered, paired
from cachescope.analysis.history.timeline import NOT_KNOWN
from cachescope.analysis.verdicts.adviser import Adviser
from cachescope.analysis.verdicts.change_kinds import UPGRADE
from cachescope.analysis.verdicts.entries_above import EXPLAINED_BY_GRAPHS
from cachescope.analysis.verdicts.filled_caches import NEW_GRAPH
from cachescope.analysis.verdicts.misses import Misses, Why
from cachescope.analysis.verdicts.running_compiles import CONCURRENT
from cachescope.frames.answer_rows import CauseRow
from cachescope.terms import AOT_INDUCTOR, AOTAUTOGRAD, FXGRAPH, VLLM, Verdict

# A result that was not stored is compiled again, with its graphs; the trace of a killed process has no record of those.
_COMPILED_AGAIN: Final = frozenset({"failed compile", "process ended", NOT_KNOWN})

_FIRST: Final = {
    NEW_GRAPH: "new graphs",
    CONCURRENT: "while another run compiled the same graph under another key",
}

_Kind = tuple[Why, str]
_CauseKey = tuple[Verdict, tuple[str, ...], str, bool]


def link_consequences(misses: Misses) -> None:
    """Mark the misses that follow from another one: sets `follows` and `is_root`."""
    lookups, at = misses.lookups, misses.at
    kind_of = _KindsOfMisses(misses)
    number_of = np.full(len(lookups) + 1, NONE, dtype=np.int64)
    number_of[at] = np.arange(len(at))
    parent = number_of[lookups.aot[at]]
    has_parent = parent != NONE
    was_gone = np.append(kind_of.each(_graph_entry_was_gone), False)[parent]
    explained = kind_of.pairs(parent, np.arange(len(at)), _explains)
    misses.follows[explained] = parent[explained]
    of_forward = _follow_their_forward_graph(misses, kind_of, ~has_parent)
    rest = ~was_gone & ~explained & ~of_forward & lookups.compile_id.is_known[at]
    _follow_the_first_of_their_compile(misses, kind_of, np.flatnonzero(rest))
    misses.is_root[:] = misses.follows == NONE
    _follow_their_graphs(misses, parent, np.append(kind_of.each(_is_explained_by_its_graphs), False)[parent])
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
        if misses.is_root[above] and misses.why_of(number).verdict == "key_changed":
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


def _follow_their_forward_graph(misses: Misses, kind_of: _KindsOfMisses, is_asked: Flags) -> Flags:
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
    found = kind_of.pairs(forward, np.arange(len(at)), _is_of)
    misses.follows[found] = forward[found]
    return found


def _follow_the_first_of_their_compile(misses: Misses, kind_of: _KindsOfMisses, numbers: Numbers) -> None:
    """Misses of one cause in one compile, under one AOTAutograd lookup: all but the first follow from it."""
    lookups = misses.lookups
    at = misses.at[numbers]
    group = paired(_compiles_of(misses)[numbers], lookups.aot_lookup[at])
    group = paired(group, kind_of.of_why[misses.why[numbers]])
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
    return forward[0].verdict in ("key_changed", "first_lookup") and backward[0].verdict in (
        "first_lookup",
        "details_not_recorded",
    )


def _graph_entry_was_gone(aot: Why) -> bool:
    return aot.verdict == "entry_unavailable" and aot.kind == "graph entry"


def _is_explained_by_its_graphs(aot: Why) -> bool:
    return aot.kind == EXPLAINED_BY_GRAPHS


def _explains(above: _Kind, below: _Kind) -> bool:
    """Whether the AOTAutograd miss of the same compile explains an FX miss."""
    (aot, aot_cache), (fx, fx_cache) = above, below
    if aot_cache != AOTAUTOGRAD or fx_cache != FXGRAPH:
        return False
    if _is_explained_by_its_graphs(aot):
        return False
    if aot.verdict == "key_changed":
        if fx.verdict == "key_changed":
            if aot.kind.startswith(UPGRADE):
                return fx.kind == aot.kind
            return all(is_from_the_graph(f) or f in aot.changed for f in fx.changed)
        return fx.verdict in ("first_lookup", "details_not_recorded")
    if aot.verdict == "entry_unavailable" and aot.kind in _COMPILED_AGAIN:
        return fx.verdict in ("first_lookup", "details_not_recorded") or fx.kind == aot.kind
    if fx.verdict == "details_not_recorded":
        return aot.verdict in ("first_lookup", "guard_failed", "details_not_recorded")
    if fx.verdict in ("bypassed", "entry_unavailable"):
        return aot.verdict == fx.verdict and aot.kind == fx.kind
    return aot.verdict == fx.verdict and fx.verdict in (
        "first_lookup",
        "guard_failed",
        "compiled_concurrently",
    )


def _cause_key(why: Why, is_of_vllm: bool) -> _CauseKey:
    # Guards of one graph are one cause, in whichever cache they failed.
    kind = "" if why.verdict == "guard_failed" else why.kind
    # What changes with another torch differs from graph to graph.
    fields = () if kind.startswith(UPGRADE) else tuple(sorted(why.changed))
    return why.verdict, fields, kind, is_of_vllm


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
    kind_of = _KindsOfMisses(misses)
    group = numbered(kind_of.of_why[misses.why[roots]])
    first = firsts(group)
    count = np.bincount(group)
    taken = lookups.time_taken_ns[at]
    lost = np.zeros(len(first), dtype=np.int64)
    np.add.at(lost, group[taken != MISSING], taken[taken != MISSING])
    keys = [kind_of.cause_keys[kind_of.of_why[misses.why[roots[one]]]] for one in first.tolist()]
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
                summary=_summary(root.why, kind, root.row.cache == VLLM),
                advice=adviser.advice(root),
            )
        )
    return found


def _summary(root: Why, kind: str, is_of_vllm: bool) -> str:
    match root.verdict:
        case "key_changed":
            if kind.startswith(UPGRADE):
                return f"{kind.removeprefix(UPGRADE)}; {len(root.changed) - 1} fields follow"
            return ", ".join(root.changed)
        case "first_lookup":
            if is_of_vllm:
                return "first starts of vLLM" + (
                    ", or changed factors" if kind == NOT_KNOWN else " (cold start)"
                )
            if kind == NOT_KNOWN:
                return "first lookups, or changed graphs"
            return f"first lookups ({_FIRST.get(kind, 'cold start')})"
        case "guard_failed":
            return "guards did not hold"
        case "entry_unavailable":
            return f"{'vLLM: ' if is_of_vllm else ''}entry unavailable: {kind}"
        case "compiled_concurrently":
            return "compiled by several processes at once"
        case "bypassed":
            return f"bypassed: {kind}"
        case "disabled":
            if kind == AOT_INDUCTOR:
                return "AOTInductor asks no cache"
            return "caching was switched off"
        case "details_not_recorded":
            return f"{'factors' if is_of_vllm else 'hash details'} not recorded ({kind})"
        case "no_detail_differs":
            return "the keys differ and no recorded field does"
