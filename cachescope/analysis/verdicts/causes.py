"""Which misses only follow from another miss, and the distinct causes that remain.

An AOTAutograd miss is followed by FX lookups of the same compile; one changed config misses every graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from cachescope.analysis.fields import is_from_the_graph
from cachescope.analysis.history.rows import LookupRow
from cachescope.analysis.history.timeline import NOT_KNOWN
from cachescope.analysis.verdicts.adviser import Adviser
from cachescope.analysis.verdicts.change_kinds import UPGRADE
from cachescope.analysis.verdicts.misses import Miss
from cachescope.terms import AOTAUTOGRAD, FXGRAPH

# A result that was not stored is compiled again, with its graphs; the trace of a killed process has no record of those.
_COMPILED_AGAIN: Final = frozenset({"failed compile", "process ended", NOT_KNOWN})

_Compile = tuple[int, str | None, int]
_CauseKey = tuple[str, tuple[str, ...], str]


def link_consequences(misses: Sequence[Miss]) -> None:
    """Mark the misses that follow from another one: sets `root` and `follows`."""
    of_lookup = {miss.row.lookup: miss for miss in misses}
    first: dict[tuple[_Compile, int | None, _CauseKey], Miss] = {}
    forward: dict[_Compile, Miss] = {}
    for miss in misses:
        row = miss.row
        parent = of_lookup.get(row.aot_lookup) if row.aot_lookup is not None else None
        if parent is not None and _graph_entry_was_gone(parent):
            # The FX entry was gone, and with it the AOTAutograd entry that points to it.
            if parent.follows is None and parent.root:
                parent.follows, parent.root = miss, False
                continue
            miss.follows = parent.follows
        elif parent is not None and _explains(parent, miss):
            miss.follows = parent
        elif parent is None and row.direction == "backward" and _is_of(forward.get(_compile_of(row)), miss):
            miss.follows = forward[_compile_of(row)]
        elif row.compile_id is not None:
            same = first.setdefault((_compile_of(row), row.aot_lookup, _cause_key(miss)), miss)
            miss.follows = same if same is not miss and _may_follow(miss, same) else None
        miss.root = miss.follows is None
        if row.direction == "forward":
            forward[_compile_of(row)] = miss


def _compile_of(row: LookupRow) -> _Compile:
    """The compile of a lookup, with its segment: compile ids begin again after torch._dynamo.reset()."""
    return row.run, row.compile_id, row.segment


def _may_follow(miss: Miss, first: Miss) -> bool:
    """Whether a miss may follow from the first of its cause and compile; an AOTAutograd miss follows only from its own key."""
    one, other = miss.row, first.row
    if one.cache == AOTAUTOGRAD:
        return one.cache_key == other.cache_key is not None
    return one.cache == other.cache


def _is_of(forward: Miss | None, backward: Miss) -> bool:
    """Whether a backward graph is new because its forward graph is; the AOTAutograd cache was off."""
    return (
        forward is not None
        and forward.verdict in ("key_changed", "first_lookup")
        and backward.verdict in ("first_lookup", "details_not_recorded")
    )


def _graph_entry_was_gone(aot: Miss) -> bool:
    return aot.verdict == "entry_unavailable" and aot.kind == "graph entry"


def _explains(aot: Miss, fx: Miss) -> bool:
    """Whether the AOTAutograd miss of the same compile explains an FX miss."""
    if aot.row.cache != AOTAUTOGRAD or fx.row.cache != FXGRAPH:
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
    # Guards of one graph are one cause, in whichever cache they failed.
    kind = "" if miss.verdict == "guard_failed" else miss.kind
    # What changes with another torch differs from graph to graph.
    fields = () if kind.startswith(UPGRADE) else tuple(sorted(miss.changed))
    return miss.verdict, fields, kind


def _root_of(miss: Miss) -> Miss:
    while miss.follows is not None:
        miss = miss.follows
    return miss


def group_causes(
    misses: Sequence[Miss], ranks: dict[int, int | None], adviser: Adviser
) -> list[dict[str, object]]:
    """Give every miss its cause, and return the rows of the frame causes, the costliest first."""
    groups: dict[_CauseKey, list[Miss]] = {}
    for miss in misses:
        groups.setdefault(_cause_key(_root_of(miss)), []).append(miss)
    ordered = sorted(groups.items(), key=lambda item: _rank(item[0], item[1]))
    rows = []
    for number, ((verdict, _, kind), members) in enumerate(ordered):
        root = _root_of(members[0])
        for miss in members:
            miss.cause = number
        known_ranks = {ranks.get(m.row.run) for m in members} - {None}
        rows.append(
            {
                "cause": number,
                "verdict": verdict,
                "kind": kind,
                "fields": root.changed,
                "misses": len(members),
                "roots": sum(m.root for m in members),
                "runs": tuple(sorted({m.row.run for m in members})),
                "ranks": tuple(sorted(r for r in known_ranks if r is not None)),
                "time_lost_ns": _time_lost(members),
                "summary": _summary(root, kind),
                "advice": adviser.advice(root),
            }
        )
    return rows


def _rank(key: _CauseKey, members: Sequence[Miss]) -> tuple[bool, int, int]:
    """Sort key of a cause: a change of torch first, since all else may follow from it; then time lost and misses."""
    return not key[2].startswith(UPGRADE), -(_time_lost(members) or 0), -len(members)


def _time_lost(members: Sequence[Miss]) -> int | None:
    times = [m.row.time_taken_ns for m in members if m.row.time_taken_ns is not None]
    return sum(times) if times else None


def _summary(root: Miss, kind: str) -> str:
    match root.verdict:
        case "key_changed":
            if kind.startswith(UPGRADE):
                return f"{kind.removeprefix(UPGRADE)}; {len(root.changed) - 1} fields follow"
            return ", ".join(root.changed)
        case "first_lookup":
            return "first lookups, or changed graphs" if kind == NOT_KNOWN else "first lookups (cold start)"
        case "guard_failed":
            return "guards did not hold"
        case "entry_unavailable":
            return f"entry unavailable: {kind}"
        case "compiled_concurrently":
            return "compiled by several processes at once"
        case "bypassed":
            return f"bypassed: {kind}"
        case "disabled":
            return "caching was switched off"
        case "details_not_recorded":
            return f"hash details not recorded ({kind})"
        case "no_detail_differs":
            return "the keys differ and no recorded field does"
