"""Which misses only follow from another miss, and the distinct causes that remain.

An AOTAutograd miss is followed by FX lookups of the same compile; one changed config misses every graph.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from cachescope.analysis.fields import is_from_the_graph
from cachescope.analysis.history.history import History
from cachescope.analysis.history.timeline import NOT_KNOWN
from cachescope.analysis.verdicts.adviser import Adviser
from cachescope.analysis.verdicts.change_kinds import UPGRADE
from cachescope.analysis.verdicts.entries_above import EXPLAINED_BY_GRAPHS
from cachescope.analysis.verdicts.filled_caches import NEW_GRAPH
from cachescope.analysis.verdicts.misses import Miss, Why
from cachescope.analysis.verdicts.running_compiles import CONCURRENT
from cachescope.frames.answer_rows import CauseRow
from cachescope.frames.recorded_rows import LookupRow
from cachescope.terms import AOT_INDUCTOR, AOTAUTOGRAD, FXGRAPH, VLLM, Verdict

# A result that was not stored is compiled again, with its graphs; the trace of a killed process has no record of those.
_COMPILED_AGAIN: Final = frozenset({"failed compile", "process ended", NOT_KNOWN})

_FIRST: Final = {
    NEW_GRAPH: "new graphs",
    CONCURRENT: "while another run compiled the same graph under another key",
}

_CauseKey = tuple[Verdict, tuple[str, ...], str, bool]


def link_consequences(misses: Sequence[Miss], history: History) -> None:
    """Mark the misses that follow from another one: sets `follows` and `root`."""
    by_index = {miss.index: miss for miss in misses}
    # The miss of the AOTAutograd lookup that each was made under.
    parents = [None if (above := history.aot[miss.index]) is None else by_index.get(above) for miss in misses]
    rest = []
    _follow_their_forward_graph(misses, parents)
    for miss, parent in zip(misses, parents, strict=True):
        if parent is not None and _explains(parent, miss):
            miss.follows = parent
        elif miss.follows is None and not (parent is not None and _graph_entry_was_gone(parent.why)):
            rest.append(miss)
    _follow_the_first_of_their_compile(rest)
    for miss in misses:
        miss.root = miss.follows is None
    for miss, parent in zip(misses, parents, strict=True):
        # AOTAutograd misses whose change only the graphs below show.
        if (
            parent is not None
            and parent.root
            and _is_explained_by_its_graphs(parent.why)
            and miss.why.verdict == "key_changed"
        ):
            parent.follows, parent.root = miss.follows or miss, False
    for miss, parent in zip(misses, parents, strict=True):
        # The FX entry was gone, and with it the AOTAutograd entry that points to it.
        if parent is not None and _graph_entry_was_gone(parent.why):
            if parent.root:
                parent.follows, parent.root = miss, False
            else:
                miss.follows, miss.root = parent.follows, False


def _follow_their_forward_graph(misses: Sequence[Miss], parents: Sequence[Miss | None]) -> None:
    """Backward graphs that are new because their forward graph is: the AOTAutograd cache was off."""
    latest: dict[_Compile, Miss] = {}
    for miss, parent in zip(misses, parents, strict=True):
        if miss.row.direction == "forward":
            latest[_compile_of(miss.row)] = miss
        elif miss.row.direction == "backward" and parent is None:
            forward = latest.get(_compile_of(miss.row))
            if forward is not None and _is_of(forward.why, miss.why):
                miss.follows = forward


def _follow_the_first_of_their_compile(misses: Iterable[Miss]) -> None:
    """Misses of one cause in one compile, under one AOTAutograd lookup: all but the first follow from it."""
    firsts: dict[tuple[object, ...], Miss] = {}
    for miss in misses:
        row = miss.row
        if row.compile_id is None:
            continue
        first = firsts.setdefault((_compile_of(row), row.aot_lookup, _cause_key(miss)), miss)
        if first is miss or row.cache != first.row.cache:
            continue
        # An AOTAutograd miss follows only from its own key.
        if row.cache != AOTAUTOGRAD or row.cache_key == first.row.cache_key is not None:
            miss.follows = first


_Compile = tuple[int, str | None, int]


def _compile_of(row: LookupRow) -> _Compile:
    """The compile of a lookup, with its segment: compile ids begin again after torch._dynamo.reset()."""
    return row.run, row.compile_id, row.segment


def _is_of(forward: Why, backward: Why) -> bool:
    """Whether a backward graph is new because its forward graph is."""
    return forward.verdict in ("key_changed", "first_lookup") and backward.verdict in (
        "first_lookup",
        "details_not_recorded",
    )


def _graph_entry_was_gone(aot: Why) -> bool:
    return aot.verdict == "entry_unavailable" and aot.kind == "graph entry"


def _is_explained_by_its_graphs(aot: Why) -> bool:
    return aot.kind == EXPLAINED_BY_GRAPHS


def _explains(above: Miss, below: Miss) -> bool:
    """Whether the AOTAutograd miss of the same compile explains an FX miss."""
    aot, fx = above.why, below.why
    if above.row.cache != AOTAUTOGRAD or below.row.cache != FXGRAPH:
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


def _cause_key(miss: Miss) -> _CauseKey:
    why = miss.why
    # Guards of one graph are one cause, in whichever cache they failed.
    kind = "" if why.verdict == "guard_failed" else why.kind
    # What changes with another torch differs from graph to graph.
    fields = () if kind.startswith(UPGRADE) else tuple(sorted(why.changed))
    return why.verdict, fields, kind, miss.row.cache == VLLM


def _root_of(miss: Miss) -> Miss:
    """The miss that a miss follows from in the end."""
    while miss.follows is not None:
        miss = miss.follows
    return miss


def group_causes(misses: Sequence[Miss], history: History, adviser: Adviser) -> list[CauseRow]:
    """Give every miss its cause, and return the causes, the costliest first."""
    groups: dict[_CauseKey, list[Miss]] = defaultdict(list)
    for miss in misses:
        groups[_cause_key(_root_of(miss))].append(miss)
    lost = {key: _time_lost(members) for key, members in groups.items()}
    ordered = sorted(groups.items(), key=lambda group: (-(lost[group[0]] or 0), -len(group[1])))
    found = []
    for cause, (key, members) in enumerate(ordered):
        for miss in members:
            miss.cause = cause
        verdict, _, kind, _ = key
        ranks = {history.rank_of.get(miss.row.run) for miss in members} - {None}
        root = _root_of(members[0])
        found.append(
            CauseRow(
                cause=cause,
                verdict=verdict,
                kind=kind,
                fields=root.why.changed,
                misses=len(members),
                roots=sum(miss.root for miss in members),
                runs=tuple(sorted({miss.row.run for miss in members})),
                ranks=tuple(sorted(rank for rank in ranks if rank is not None)),
                time_lost_ns=lost[key],
                summary=_summary(root.why, kind, root.row.cache == VLLM),
                advice=adviser.advice(root),
            )
        )
    return found


def _time_lost(misses: Iterable[Miss]) -> int | None:
    """The compile time lost to some misses; None if none is recorded."""
    times = [miss.row.time_taken_ns for miss in misses if miss.row.time_taken_ns is not None]
    return sum(times) if times else None


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
