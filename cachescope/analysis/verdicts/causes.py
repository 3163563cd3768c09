"""Which misses only follow from another miss, and the distinct causes that remain.

An AOTAutograd miss is followed by FX lookups of the same compile; one changed config misses every graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

from cachescope.analysis.history.history import History
from cachescope.analysis.rates import known_sum
from cachescope.analysis.verdicts.advice import advice
from cachescope.analysis.verdicts.misses import Miss, Why
from cachescope.frames.answer_rows import CauseRow
from cachescope.frames.recorded_rows import LookupRow
from cachescope.grouping import by_key
from cachescope.keys.key_fields import is_of_the_program
from cachescope.terms import AOTAUTOGRAD, FXGRAPH, VLLM
from cachescope.verdict_kinds import UPGRADE, SameCause

_CauseKey = tuple[SameCause, bool]
# Fields that only some graphs have: below a changed AOTAutograd key, a new graph may add or drop them.
_WITH_THE_GRAPH: Final = frozenset(
    {"triton_kernel_source_codes", "cpp_runtime_thread_count", "default_cuda_device_index"}
)


def link_consequences(misses: Sequence[Miss], history: History) -> None:
    """Mark the misses that follow from another one."""
    of_lookup: list[Miss | None] = [None] * len(history.lookups)
    for miss in misses:
        of_lookup[miss.index] = miss
    forward: dict[_Compile, Miss] = {}
    rest: list[Miss] = []
    told_by_graphs: list[tuple[Miss, Miss]] = []
    for miss in misses:
        # The miss of the AOTAutograd lookup that it was made under.
        parent = None if (above := history.aot[miss.index]) is None else of_lookup[above]
        direction = miss.row.direction
        if direction == "forward":
            forward[_compile_of(miss.row)] = miss
        if parent is not None:
            kind = parent.why.what
            if kind.is_shown_by_graphs or kind.is_graph_gone:
                told_by_graphs.append((miss, parent))
            if _explains(parent, miss):
                miss.follows = parent
            elif not kind.is_graph_gone:
                rest.append(miss)
        # A backward graph is new because its forward graph is: the AOTAutograd cache was off.
        elif (
            direction == "backward"
            and (before := forward.get(_compile_of(miss.row))) is not None
            and miss.why.verdict in before.why.what.explains_backward
        ):
            miss.follows = before
        else:
            rest.append(miss)
    _follow_the_first_of_their_compile(rest)
    for miss, parent in told_by_graphs:
        if miss.follows is parent:
            continue
        # AOTAutograd misses whose change only the graphs below show.
        if parent.why.what.is_shown_by_graphs and parent.root and miss.why.changed:
            parent.follows = miss.follows or miss
        # The FX entry was gone, and with it the AOTAutograd entry that points to it.
        elif parent.why.what.is_graph_gone:
            if parent.root:
                parent.follows = miss
            else:
                miss.follows = parent.follows


def _follow_the_first_of_their_compile(misses: Iterable[Miss]) -> None:
    """Misses of one cause in one compile, under one AOTAutograd lookup: all but the first follow from it."""
    firsts: dict[tuple[object, ...], Miss] = {}
    for miss in misses:
        row = miss.row
        if row.compile_id is None:
            continue
        compiled = row.run, row.compile_id, row.segment, row.aot_lookup, _cause_key(miss)
        first = firsts.setdefault(compiled, miss)
        if first is miss or row.cache != first.row.cache:
            continue
        # An AOTAutograd miss follows only from its own key.
        if row.cache != AOTAUTOGRAD or row.cache_key == first.row.cache_key is not None:
            miss.follows = first


_Compile = tuple[int, str | None, int]


def _compile_of(row: LookupRow) -> _Compile:
    """The compile of a lookup, with its segment: compile ids begin again after torch._dynamo.reset()."""
    return row.run, row.compile_id, row.segment


def _explains(above: Miss, below: Miss) -> bool:
    """Whether the AOTAutograd miss of the same compile explains an FX miss."""
    if above.row.cache != AOTAUTOGRAD or below.row.cache != FXGRAPH:
        return False
    aot, fx = above.why, below.why
    kind = aot.what
    if fx.what.is_below:
        return True
    if kind.is_of_function and aot.kind == fx.kind:
        return True
    if kind.explains_same_kind and (fx.verdict, fx.kind) == (aot.verdict, aot.kind):
        return True
    if kind.explains_fields and fx.changed:
        return fx.changed == aot.changed or all(f in aot.changed or is_from_the_graph(f) for f in fx.changed)
    return fx.verdict in kind.explains


@lru_cache(maxsize=1 << 14)
def is_from_the_graph(field: str) -> bool:
    """Whether a field of an FX key follows from the program, in which case a changed AOTAutograd key explains it."""
    return is_of_the_program(field) or field.partition("[")[0] in _WITH_THE_GRAPH


def _cause_key(miss: Miss) -> _CauseKey:
    return miss.why.same_cause, miss.row.cache == VLLM


def _root_of(miss: Miss) -> Miss:
    """The miss that a miss follows from in the end."""
    while (above := miss.follows) is not None:
        miss = above
    return miss


def group_causes(misses: Sequence[Miss], history: History) -> list[CauseRow]:
    """Give every miss its cause, and return the causes, the costliest first."""
    groups = by_key((_cause_key(_root_of(miss)), miss) for miss in misses)
    lost = {key: known_sum(miss.row.time_taken_ns for miss in members) for key, members in groups.items()}
    ordered = sorted(groups.items(), key=lambda group: (-(lost[group[0]] or 0), -len(group[1])))
    found = []
    for cause, (key, members) in enumerate(ordered):
        for miss in members:
            miss.cause = cause
        (_, _, kind), _ = key
        runs = sorted({miss.row.run for miss in members})
        ranks = {history.rank_of.get(run) for run in runs}
        root = _root_of(members[0])
        if root.why.what.is_of_function:
            # An AOTAutograd lookup without hash details is told by the graphs below.
            root = next((miss for miss in members if miss.why.changed), root)
        found.append(
            CauseRow(
                cause=cause,
                verdict=root.why.verdict,
                kind=kind,
                fields=root.why.changed,
                misses=len(members),
                roots=sum(miss.follows is None for miss in members),
                runs=tuple(runs),
                ranks=tuple(sorted(rank for rank in ranks if rank is not None)),
                time_lost_ns=lost[key],
                summary=_summary(root.why, root.row.cache == VLLM),
                advice=advice(root, history),
            )
        )
    return found


def _summary(root: Why, is_of_vllm: bool) -> str:
    kind = root.what
    return ((is_of_vllm and kind.vllm_summary) or kind.summary).format(
        kind=root.kind,
        fields=", ".join(root.changed),
        upgrade=root.kind.removeprefix(UPGRADE),
        more=len(root.changed) - 1,
    )
