"""Missed lookups: why each missed, what it is compared with, and whether it only follows from another miss.

An AOTAutograd miss is followed by FX lookups of the same compile; one changed config misses every graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

from cachescope.analysis.differences import FieldChange, field_changes
from cachescope.analysis.history.history import History
from cachescope.frames.answer_rows import MissRow
from cachescope.frames.compile_rows import PhaseRow
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.recorded_rows import LookupRow
from cachescope.keys.key_fields import is_of_the_program
from cachescope.rows import like
from cachescope.terms import AOTAUTOGRAD, FXGRAPH, VLLM, Evidence
from cachescope.verdict_kinds import Judged, Kind, Verdict, kind_of

Candidate = LookupRow | EntryRow
# Only some graphs have these fields: below a changed AOTAutograd key, a new graph may add or drop them.
_WITH_THE_GRAPH: Final = frozenset(
    {"triton_kernel_source_codes", "cpp_runtime_thread_count", "default_cuda_device_index"}
)


SameCause = tuple[str, tuple[str, ...], str]
"""What the misses of one cause have in common: the verdict, the changed fields and the kind."""


def same_cause(judged: Judged, changed: Iterable[str]) -> SameCause:
    """What misses for the same cause have in common with one, whose changed fields are given."""
    kind = kind_of(judged)
    if kind.is_of_function:
        # Graph by graph, and in the graphs' own fields, one failed guard shows in many ways.
        return "", (), judged.kind
    # What changes with another torch differs from graph to graph.
    fields = () if kind.is_upgrade else tuple(sorted(changed))
    return judged.verdict, fields, "" if kind.is_by_guards else judged.kind


@dataclass(frozen=True)
class Why:
    """Why a lookup missed. Lookups that missed for the same reason share one.

    `kind` distinguishes causes of one verdict. `evidence` says what the verdict rests on: ``recorded`` (torch or the
    operating system wrote it), ``inferred``, or ``not_known``; `evidence_text` gives the details.
    """

    verdict: Verdict
    reason: str
    evidence: Evidence
    evidence_text: str
    changed: tuple[str, ...] = ()
    kind: str = ""

    @cached_property
    def what(self) -> Kind:
        """What holds for every miss of its verdict and kind."""
        return kind_of(self)

    @cached_property
    def same_cause(self) -> SameCause:
        """What it shares with other misses of the same cause."""
        return same_cause(self, self.changed)


@dataclass(slots=True, eq=False)
class Miss:
    """One missed lookup, why it missed, and what it is compared with."""

    index: int  # of the lookup, in time order
    row: LookupRow
    why: Why
    baseline: Candidate | None
    changes: tuple[FieldChange, ...] = ()  # for vLLM's own lookups: what changed in the key
    cause: int = -1  # filled in later
    follows: Miss | None = None  # the miss that caused this one

    @property
    def root(self) -> bool:
        """Whether it does not follow from another miss."""
        return self.follows is None

    @property
    def cause_key(self) -> tuple[SameCause, bool]:
        """What the misses of one cause have in common."""
        return self.why.same_cause, self.row.cache == VLLM

    @property
    def compared(self) -> tuple[int, int] | None:
        """The sets of hash details of the baseline and of the lookup; None if both have one key, and for vLLM's own lookups."""
        if self.baseline is None or self.row.cache == VLLM:
            return None
        before, after = self.baseline.detail_set, self.row.detail_set
        is_another = bool(self.why.changed) or self.why.what.may_be_first
        return (before, after) if is_another and before is not None and after is not None else None


class VerdictsSoFar:
    """Why each lookup judged so far missed, by its index in time order, and what it is compared with: the index of a lookup, or an entry."""

    def __init__(self, lookups: int) -> None:
        self.why: list[Why | None] = [None] * lookups
        self.baseline: list[int | EntryRow | None] = [None] * lookups

    def record(self, at: int, why: Why, baseline: int | EntryRow | None = None) -> None:
        """Note why a lookup missed, and what it is compared with."""
        self.why[at] = why
        self.baseline[at] = baseline


def miss_row(miss: Miss) -> MissRow:
    """The row of a miss."""
    why, baseline = miss.why, miss.baseline
    lookup = baseline.lookup if isinstance(baseline, LookupRow) else None
    entry = baseline.entry if isinstance(baseline, EntryRow) else None
    named = None if entry is None else f"entry {entry}"
    name = named if lookup is None else f"lookup {lookup}"
    ids = {"baseline": name, "baseline_lookup": lookup, "baseline_entry": entry, "cause": miss.cause}
    return like(MissRow, why, lookup=miss.row.lookup, root=miss.root, **ids)


def changes_of(miss: Miss, history: History) -> tuple[FieldChange, ...]:
    """What changed between a missed lookup and its baseline. If the graph only may be another form, that is the lines of its code."""
    if miss.compared is None:
        return miss.changes
    before = history.run_of.get(miss.baseline.run) if isinstance(miss.baseline, LookupRow) else None
    found = field_changes(history.details, *miss.compared, (before, history.run_of.get(miss.row.run)))
    return tuple(change for change in found if miss.why.changed or change.field == "gm")


def link_consequences(misses: Sequence[Miss], history: History) -> None:
    """Mark the misses that follow from another one."""
    of_lookup: dict[int | None, Miss] = {miss.index: miss for miss in misses}
    of_row = {miss.row.lookup: miss for miss in misses}
    forward: dict[Compile, Miss] = {}
    rest: list[Miss] = []
    told_by_graphs: list[tuple[Miss, Miss]] = []
    for miss in misses:
        # The miss of the AOTAutograd lookup that it was made under.
        parent = of_lookup.get(history.aot[miss.index])
        direction = miss.row.direction
        if miss.why.what.is_pending and isinstance(miss.baseline, LookupRow):
            miss.follows = of_row[miss.baseline.lookup]
            continue
        if direction == "forward":
            forward[compile_of(miss.row)] = miss
        before = forward.get(compile_of(miss.row)) if direction == "backward" else None
        if parent is not None:
            kind = parent.why.what
            if kind.is_shown_by_graphs or kind.is_graph_gone or kind.explains_fields:
                told_by_graphs.append((miss, parent))
            # What changed in a key that another process was compiling is known of that one.
            other = getattr(parent.baseline, "lookup", -1) if kind.cost == "at once" else -1
            known = (parent, of_row.get(other, parent))
            if (cause := next((one for one in known if _explains(one, miss)), None)) is not None:
                miss.follows = cause
            elif not kind.is_graph_gone:
                rest.append(miss)
        # With the AOTAutograd cache off: a backward graph is new because its forward graph is.
        elif before is not None and miss.why.verdict in before.why.what.explains_backward:
            miss.follows = before
        else:
            rest.append(miss)
    _follow_the_first_of_their_compile(rest)
    for miss, parent in told_by_graphs:
        if miss.follows is parent:
            continue
        # AOTAutograd misses whose change is shown, or shown in full, only by the graphs below.
        is_told = parent.why.what.is_shown_by_graphs or _is_part(parent.why, miss.why)
        above = parent.follows
        if is_told and above is None and miss.why.changed:
            parent.follows = miss.follows or miss
        # Graphs below one AOTAutograd key: the others follow from the first as they would from the key.
        elif is_told and miss.root and above is not None and _is_explained(above.why, miss.why):
            miss.follows = above
        # Without the FX entry, the AOTAutograd entry that points to it misses too.
        elif parent.why.what.is_graph_gone and above is None:
            parent.follows = miss
        elif parent.why.what.is_graph_gone:
            miss.follows = above


def _follow_the_first_of_their_compile(misses: Iterable[Miss]) -> None:
    """Among misses of one cause under one AOTAutograd lookup, let all but the first follow from the first."""
    firsts: dict[tuple[object, ...], Miss] = {}
    for miss in misses:
        row = miss.row
        if row.compile_id is None:
            continue
        compiled = *compile_of(row), row.aot_lookup, miss.cause_key
        first = firsts.setdefault(compiled, miss)
        if first is miss or row.cache != first.row.cache:
            continue
        # An AOTAutograd miss follows only from its own key.
        if row.cache != AOTAUTOGRAD or row.cache_key == first.row.cache_key is not None:
            miss.follows = first


Compile = tuple[int, str | None, int]
"""A run, a compile id, and a number that tells compiles of one id apart: ids begin again after torch._dynamo.reset()."""


def compile_of(row: LookupRow | PhaseRow) -> Compile:
    """The compile that a row is of."""
    return row.run, row.compile_id, row.segment


def _explains(above: Miss, below: Miss) -> bool:
    """Whether an AOTAutograd miss explains an FX miss of the same compile."""
    are_of_both = above.row.cache == AOTAUTOGRAD and below.row.cache == FXGRAPH
    return are_of_both and _is_explained(above.why, below.why)


def _is_explained(above: Why, below: Why) -> bool:
    """Whether the reason of an AOTAutograd miss, or of the first graph below it, explains the miss of another graph."""
    kind = above.what
    if below.what.is_below:
        return True
    if kind.is_of_function and above.kind == below.kind:
        return True
    if kind.explains_same_kind and (below.verdict, below.kind) == (above.verdict, above.kind):
        return True
    if kind.explains_fields and below.changed:
        fields = below.changed
        return fields == above.changed or all(f in above.changed or is_from_the_graph(f) for f in fields)
    return below.verdict in kind.explains


def _is_part(above: Why, below: Why) -> bool:
    """Whether AOTAutograd's key has only some of the changed fields: up to torch 2.8 it lacks cpp_wrapper, but has the options that follow from it."""
    return bool(above.changed) and above.kind == below.kind and set(above.changed) < set(below.changed)


@lru_cache(maxsize=1 << 14)
def is_from_the_graph(field: str) -> bool:
    """Whether a field of an FX key follows from the program, in which case a changed AOTAutograd key explains it."""
    return is_of_the_program(field) or field.partition("[")[0] in _WITH_THE_GRAPH
