"""A changed key: what changed in it, what kind of change that is, and how certain it is.

Two edits of two graphs both change the field ``gm``, but are two causes. A change of torch changes a hundred fields at
once, but is one cause.
"""

from __future__ import annotations

import hashlib
import re
from functools import cached_property
from itertools import starmap
from typing import Final

from cachescope.analysis.aot_config import is_named_at_random
from cachescope.analysis.differences import FOUND_ELSEWHERE, component_change, upgrade_of
from cachescope.analysis.graphs import differ_in_dtypes, graph_diff, inner_graphs
from cachescope.analysis.history.history import History
from cachescope.analysis.key_distance import Change
from cachescope.analysis.verdicts.baselines import Baseline, Baselines
from cachescope.analysis.verdicts.misses import Candidate, Compile, Why, compile_of
from cachescope.analysis.verdicts.recompiles import place_of, recompile_of
from cachescope.frames.recorded_rows import LookupRow
from cachescope.grouping import by_key
from cachescope.kept import kept
from cachescope.keys.key_fields import (
    FREEZING,
    GRAPH_OPTIONS,
    IS_INFERENCE,
    TORCH_VERSION,
    is_code,
    is_input,
    is_of_the_call,
)
from cachescope.keys.paths import is_in_remote_cache
from cachescope.keys.printed_values import sizes_became, type_became
from cachescope.terms import AOTAUTOGRAD, Evidence
from cachescope.verdict_kinds import (
    ANOTHER_DEVICE,
    ANOTHER_TYPE,
    BESIDE_A_MESH,
    IMPORTS,
    NAMED_AND_MORE,
    NAMED_AT_RANDOM,
    OTHER_INPUTS,
    OTHERWISE,
    SIZES,
    SPLIT,
    SPLIT_OR_EDITED,
    UPGRADE,
)
from cachescope.wording import A_MESH_MAY_DIFFER, listed, plural

_PARTS: Final = ("dtype", "shape")
_FIELDS_TOLD: Final = 3
# Why AOTAutograd's cache takes no part of a graph that DDPOptimizer split (2.5 to 2.15): torch/_dynamo/backends/distributed.py, `compile_submod`.
_OF_A_SPLIT: Final = "fakify_first_call enabled"
Known = tuple[Evidence, str]
"""What a verdict rests on, and the details."""
# Numbers that dynamo gives to the variables of a graph. The same edit has other numbers in another graph.
_NUMBERING: Final = re.compile(r"(?<=[a-z])_\d+\b")


class ChangedKeys:
    """Says why a key differs from the key it is compared with."""

    def __init__(self, history: History, baselines: Baselines) -> None:
        self._history = history
        self._baselines = baselines
        # A fleet misses in the same few ways, and a run by the same few values of a field.
        self._whys: dict[tuple[Change, int, Known], Why] = {}

    def why(self, at: int, baseline: Baseline, change: Change, apart: int) -> Why:
        """Why a lookup missed whose key differs from that of its baseline."""
        row, found = self._history.lookups[at], self._history.row_of(baseline)
        sets = [one.detail_set for one in (row, found) if one.detail_set is not None]
        has_mesh = any(map(self._history.details.has_memo, sets))
        if not change.names:
            return _ALL_PRINT_ALIKE if has_mesh else _NO_DETAIL_DIFFERS
        is_one_run = isinstance(found, LookupRow) and found.run == row.run
        may_mesh_differ = has_mesh and not is_one_run and not self._is_found_again(found)
        # The evidence that this key is a changed form of the baseline's.
        if isinstance(found, LookupRow) and self._baselines.recompiles.is_recompiled(found, row):
            if (again := recompile_of(row, change.names, found)) is not None:
                evidence = _ONE_PROCESS if again.reason is None else GUARD_FAILED
                reason = again.reason or self._what_changed(row, found, change)
                return Why("key_changed", reason, *evidence, change.names, again.kind)
            known = _ONE_PROCESS
        elif change.is_of_graph:
            mesh = f"; {A_MESH_MAY_DIFFER}" if may_mesh_differ else ""
            alike = self._baselines.are_alike_by(found, row)
            known = "inferred", f"the graphs are taken for one: {alike}{mesh}"
        elif may_mesh_differ:
            known = _PRINTED
        elif isinstance(baseline, int):
            known = _CONCURRENT if self._history.was_running(baseline, at) else _RECORDED
        else:
            in_file = _LOADED if baseline.modified_time is None else _BY_TIME
            known = _REMOTE if is_in_remote_cache(baseline.path) else in_file
        if is_one_run or change.is_of_torch or change.is_of_graph:
            return self._why(at, baseline, change, apart, known)
        asked = change, apart, known
        if asked not in self._whys:
            self._whys[asked] = self._why(at, baseline, change, apart, known)
        return self._whys[asked]

    def _why(self, at: int, baseline: Baseline, change: Change, apart: int, known: Known) -> Why:
        row, found = self._history.lookups[at], self._history.row_of(baseline)
        changed, details = change.names, self._history.details
        if change.is_of_torch:
            before = self._history.run_of.get(found.run) if isinstance(found, LookupRow) else None
            after = self._history.run_of.get(row.run)
            # The other fields follow from it.
            changed = tuple(sorted(changed, key=lambda field: field != TORCH_VERSION))
            more = len(changed) - 1
            follow = plural(more, "other field of the key follows", "other fields of the key follow")
            upgrade, also = upgrade_of(details, change.components, (before, after))
            kind, reason = f"{UPGRADE}{upgrade}", f"{upgrade}; {follow}{also}"
        else:
            texts = self._texts(change)
            inputs = self._inputs(change)
            is_random = any(one[0] == "aot_config" and is_named_at_random(*one[1:]) for one in texts)
            # The graph holds it too, and does not print it.
            if is_random and not inputs and not self._edit(change):
                kind = NAMED_AT_RANDOM if {*changed} <= {"aot_config", "gm"} else NAMED_AND_MORE
            elif all(before == after for before, after in inputs) and self._are_of_imports(change):
                kind = IMPORTS
            elif "gm" in changed and (split := self._split(row, found)):
                kind = f"{split}{place_of(row)}"
            elif became := sizes_became(self._inputs(self._above(at, baseline, change))):
                kind = f"{SIZES}{became}: {place_of(row)}"
            elif became := next(filter(None, starmap(type_became, inputs)), ""):
                kind = f"{ANOTHER_TYPE}{became}: {place_of(row)}"
            elif self._is_by_autocast(change):
                changed, kind = tuple(field for field in changed if field != "gm"), ""
                known = "inferred", f"{known[1]}; the code of the graph differs in dtypes alone"
            elif (are_other := self._is_by_inputs(at, baseline, change)) is not None:
                # The batch may differ in one run, and the dtype in the next.
                pairs = [sides for field, *sides in change.components if is_input(field) and are_other]
                parts = {name for sides in pairs for name, *_ in component_change(details, *sides).parts}
                others = tuple(field for field in changed if not is_of_the_call(field))
                follows = all(field == "gm" or field in others or is_input(field) for field in changed)
                if not are_other and follows and not GRAPH_OPTIONS.isdisjoint(others):
                    changed, kind = others, ""
                    how = "Dynamo traced the same graph, and an option that changed rewrites it"
                else:
                    told = *(one for one in _PARTS if one in parts), *others[:_FIELDS_TOLD]
                    kind = ", ".join([f"{OTHER_INPUTS if are_other else OTHERWISE}{place_of(row)}", *told])
                    how = "Dynamo traced the same operators, of the same lines of code"
                known = "inferred", f"{known[1]}; {how}"
            elif "gm" in changed and (devices := _default_devices(found, row)):
                kind = f"{ANOTHER_DEVICE}{devices}"
                known = "inferred", f"{known[1]}; the guards of the two name the default device"
            elif IS_INFERENCE in changed and None in (row.traced_graph, getattr(found, "traced_graph", None)):
                # torch makes another graph of the same code where no backward graph can follow: nothing tells whether the code was edited.
                kind = ""
            else:
                kind = self._edit(change) or self._edit_within(row, found, change)
                kind = kind or (BESIDE_A_MESH if known == _PRINTED else "")
            reason = self._what_changed(row, found, change)
        if len(changed) < apart:
            reason += f" (compared with the run before it, {apart} fields differ)"
        return Why("key_changed", reason, *known, changed, kind)

    def _is_found_again(self, found: Candidate) -> bool:
        """Whether another process found what one had stored under this key: what no field shows of it is then equal in each."""
        at = self._history.index_of[found.lookup] if isinstance(found, LookupRow) else None
        if at is None or (key := self._history.key[at]) is None:
            return False
        rows = [self._history.lookups[one] for one in self._history.of_key[key]]
        return {one.run for one in rows} != {one.run for one in rows if one.outcome != "hit"}

    def _are_of_imports(self, change: Change) -> bool:
        """Whether inputs differ in the module alone in which pickle found their memory formats, and nothing else does but options."""
        inputs = [sides for field, *sides in change.components if is_input(field)]
        others = [field for field in change.names if not is_input(field)]
        are_options = all(one.startswith("inductor_config[") and "custom" not in one for one in others)
        found = (self._summary_of(*sides).startswith(FOUND_ELSEWHERE) for sides in inputs)
        return bool(inputs) and are_options and all(found)

    def _is_by_autocast(self, change: Change) -> bool:
        """Whether autocast was switched, and the graph has other dtypes alone, which it asks of its values."""
        are_of_autocast = [name.startswith("autocast_state[") for name in change.names if name != "gm"]
        graph = ((before, after) for field, before, after in self._texts(change) if field == "gm")
        return bool(are_of_autocast) and all(are_of_autocast) and any(starmap(differ_in_dtypes, graph))

    def _is_by_inputs(self, at: int, baseline: Baseline, change: Change) -> bool | None:
        """Whether other inputs of the program made another graph of the same code; None if nothing shows that Dynamo traced the same code."""
        row, changed = self._history.lookups[at], change.names
        # A frozen graph follows from the option, and so may its inputs.
        if "gm" not in changed or FREEZING in changed or not isinstance(baseline, int):
            return None
        found = self._history.lookups[baseline]
        is_traced_alike = row.traced_graph == found.traced_graph is not None
        rest = [field for field in changed if field not in ("gm", "aot_config")]
        if any(map(is_code, rest)):
            return None
        if not any(map(is_input, rest)):
            return False if is_traced_alike else None
        if row.traced_code != found.traced_code or row.traced_code is None:
            return None
        # What a backward graph takes beside gradients, its forward graph has kept.
        return not is_traced_alike or any(map(is_input, self._above(at, baseline, change).names))

    def _split(self, row: LookupRow, found: Candidate) -> str:
        """How a graph differs of which DDPOptimizer made another number of parts than before; empty if nothing shows that it did, or other code was traced."""
        # A log that ends within the compile may lack parts of it.
        if not isinstance(found, LookupRow) or False in (row.compile_ended, found.compile_ended):
            return ""
        parts, before = (self._parts.get(compile_of(one)) for one in (row, found))
        traced = {row.traced_graph, found.traced_graph}
        if parts is None or before is None or parts == before or (len(traced) > 1 and None not in traced):
            return ""
        return SPLIT_OR_EDITED if None in traced else SPLIT

    @cached_property
    def _parts(self) -> dict[Compile, int]:
        """The parts of each compile of which AOTAutograd's lookups were recorded: 0 if its graph was not split."""
        above = (row for row in self._history.lookups if row.cache == AOTAUTOGRAD)
        reasons = by_key((compile_of(row), row.bypass_reason or "") for row in above)
        return {one: sum(_OF_A_SPLIT in reason for reason in told) for one, told in reasons.items()}

    def _forward_before(self, at: int) -> int | None:
        """The forward graph of the same compile as a backward graph; None if there is none with hash details."""
        row = self._history.lookups[at]
        if row.direction != "backward":
            return None
        found = self._forwards.get((row.run, row.compile_id), [])
        return next((one for one in reversed(found) if one < at), None)

    def _texts(self, change: Change) -> list[tuple[str, str, str]]:
        """The fields that changed, and their values before and after."""
        text = self._history.details.value_text
        return [(field, text(before) or "", text(after) or "") for field, before, after in change.components]

    def _inputs(self, change: Change) -> list[tuple[str, str]]:
        """The values before and after of the inputs that changed."""
        return [(before, after) for field, before, after in self._texts(change) if is_input(field)]

    def _above(self, at: int, baseline: Baseline, change: Change) -> Change:
        """What changed in the forward graph above a backward graph, where both are recorded: it has kept what that takes beside gradients."""
        before = self._forward_before(baseline) if isinstance(baseline, int) else None
        after = self._forward_before(at)
        return change if before is None or after is None else self._history.change(before, after)

    @cached_property
    def _forwards(self) -> dict[tuple[int, str | None], list[int]]:
        forwards = ((at, row) for at, row in self._history.described if row.direction == "forward")
        return by_key(((row.run, row.compile_id), at) for at, row in forwards)

    def _edit(self, change: Change) -> str:
        """How the code of the graph was edited; empty if the fields describe it completely."""
        return next((self._edit_of(*sides) for field, *sides in change.components if field == "gm"), "")

    # A fleet differs in the same few ways.

    @kept
    def _edit_of(self, old: int | None, new: int | None) -> str:
        """A digest of the lines that an edit of a graph removed and added; empty if the printed code is equal."""
        before, after = (self._history.details.value_text(code) or "" for code in (old, new))
        lines = graph_diff(before, after, context=0).split("\n")[2:]
        edit = "\n".join(_NUMBERING.sub("", line) for line in lines if line[:1] in ("+", "-"))
        return edit and f"edit {hashlib.sha256(edit.encode('utf-8', 'replace')).hexdigest()[:8]}"

    @kept
    def _summary_of(self, old: int | None, new: int | None) -> str:
        """What changed in a field, in one line."""
        return component_change(self._history.details, old, new).summary

    def _edit_within(self, row: LookupRow, found: Candidate, change: Change) -> str:
        """The same of the graphs within a graph, whose code is not printed: Dynamo's graphs have it."""
        before, after = getattr(found, "traced_graph", None), row.traced_graph
        has_inner = any(inner_graphs(graph) for field, _, graph in self._texts(change) if field == "gm")
        if not (before and after and before != after and has_inner):
            return ""
        return f"edit {before[:4]}{after[:4]}"

    def _what_changed(self, row: LookupRow, found: Candidate, change: Change) -> str:
        changed = change.names
        graph = "another form of the graph" if change.is_of_graph else "the same graph"
        if isinstance(found, LookupRow) and self._baselines.recompiles.is_recompiled(found, row):
            graph = f"compiled again in one process, after compile {found.compile_id}"
        if len(changed) > 1:
            return f"{graph}, and {len(changed)} fields of the key differ: {listed(changed, 4 if len(changed) <= 4 else 3)}"
        ((_, *sides),) = change.components
        return f"{graph}, and one field of the key differs: {changed[0]}, {self._summary_of(*sides)}"


def _default_devices(found: Candidate, row: LookupRow) -> str:
    """The default devices under which two graphs were traced; empty if they are equal, or one is not recorded."""
    before, after = found.default_device if isinstance(found, LookupRow) else None, row.default_device
    return "" if before == after or None in (before, after) else f"{before} -> {after}"


GUARD_FAILED: Final[Known] = "recorded", "torch recorded which guard failed"
_ONE_PROCESS: Final[Known] = (
    "recorded",
    "torch's compile ids count the compiles of one function in one process",
)
_CONCURRENT: Final[Known] = (
    "inferred",
    "the processes ran at the same time, and their keys differ by their rank alone",
)
_RECORDED: Final[Known] = "recorded", "torch recorded the hash details of both keys"
_REMOTE: Final[Known] = "inferred", "predicted: the program would ask the remote cache that holds the entry"
_LOADED: Final[Known] = "inferred", "predicted: the program would load the file that holds the entry"
_BY_TIME: Final[Known] = "inferred", "by its time of modification the entry had been stored before"
_PRINTED: Final[Known] = "inferred", f"only printed values could be compared: {A_MESH_MAY_DIFFER}"
_ALL_PRINT_ALIKE: Final = Why(
    "no_detail_differs",
    "the keys differ and every recorded field prints alike: a DeviceMesh or what torch does not print of a value differs",
    "inferred",
    "only printed values could be compared: once torch has hashed a DeviceMesh, its hash of a field depends on the fields before it",
)
_NO_DETAIL_DIFFERS: Final = Why(
    "no_detail_differs",
    "the keys differ and every recorded field is equal: what torch pickles for the key differs "
    "where its list of fields cannot show it",
    "recorded",
    "torch recorded the hash details of both keys",
)
