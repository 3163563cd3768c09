"""The distinct causes of misses, and what to do about each beyond what its kind says: only what is true of torch, in torch's names.

tests/wild/test_advice.py follows each instruction, here and in cachescope/verdict_kinds.py, with a real torch, and sees the hit
(for values of a process: tests/capture/test_fix.py). A sentence about what may help or explain contains "may".
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from itertools import chain, islice
from typing import Final, NamedTuple

from cachescope.analysis.differences import FieldChange
from cachescope.analysis.history.history import History
from cachescope.analysis.history.timeline import CANNOT_WRITE
from cachescope.analysis.rates import known_sum
from cachescope.analysis.verdicts.change_advice import (
    GRAPHS_FOUND,
    NUMBERS_ONLY,
    OF_A_GUARD,
    OR_EDITED,
    TYPES_ONLY,
    ZERO_OR_ONE,
    are_floats_passed,
    change_sentences,
    changed_sizes,
    field_advice,
    graph_advice,
    group_change,
)
from cachescope.analysis.verdicts.misses import Candidate, Miss, Why, changes_of
from cachescope.analysis.verdicts.recompiles import OF_ANOTHER_CALL
from cachescope.catalogue.bypasses import bypass_facts, cacheable_since, function_of, operator_of, versions
from cachescope.catalogue.defects import known_defect, sentence
from cachescope.frames.answer_rows import CauseRow
from cachescope.frames.recorded_rows import LookupRow
from cachescope.grouping import by_key
from cachescope.keys.key_fields import IS_INFERENCE, is_input
from cachescope.terms import FXGRAPH, VLLM
from cachescope.verdict_kinds import UPGRADE, Verdict, kind_of
from cachescope.wording import minor_version

_MOST_SENTENCES: Final = 4
_OTHERS_READ: Final = 20
# A temporary directory made by Python: torch's fresh_cache() calls `tempfile.mkdtemp()`.
_TEMPORARY: Final = re.compile(r"tmp[a-z0-9_]{8}")
_DEFAULT: Final = re.compile(r"torchinductor_.*")
_IN_TEMPORARY: Final = (
    "The directory may be one of torch._inductor.utils.fresh_cache(), which begins empty and is deleted at its "
    "end, whatever TORCHINDUCTOR_CACHE_DIR says: compile outside of it."
)
_IN_DEFAULT: Final = (
    "The default directory lies where temporary files do, which may be wiped or private to a job; "
    "TORCHINDUCTOR_CACHE_DIR names another place."
)
# torch/_functorch/_aot_autograd/autograd_cache.py, `BypassAOTAutogradCache`.
_OWN: Final = "Bypass"
_ERROR: Final = (
    "An error ended the lookup in AOTAutograd's cache, and torch compiled as if there were no such cache. To see where it is raised: "
    "torch._functorch.config.strict_autograd_cache = True lets it through; torch 2.10 and later also write its traceback into the trace, "
    "as cache_bypass_traceback of the artifact aotautograd_cache_bypass."
)
# glibc, elf/dl-load.c. torch loads the file that it finds, which is the one that the FX graph's entry names.
_UNREADABLE_CODE: Final = re.compile(r"\.so: (?:cannot read file data|file too short|invalid ELF header)")
_CODE_DAMAGED: Final = (
    "The library that the entry loads is damaged, so that the compile fails: delete the file that the error names, and torch builds it "
    "again from the source beside it."
)

# torch/_dynamo/package.py asks for the directory when it is imported (2.13).
_SET_TOO_LATE: Final = (
    "A program may set it too late: importing torch._dynamo, as many libraries do, sets it to the default, and "
    "os.environ.setdefault changes nothing after that. Set it before torch is imported."
)
_WRITES: Final = (
    "torch writes below TORCHINDUCTOR_CACHE_DIR also to load what is stored, its locks/ among them: the process must be allowed to write there, and "
    "there must be room. A folder that stays read-only has to be copied."
)
_COMPILED_AUTOGRAD: Final = "AOTAutograd does not cache the graphs of compiled autograd: they call functions of its own. The FX cache serves them."
# torch 2.8, torch/_functorch/_aot_autograd/autograd_cache.py, `is_safe_torch_function`: to mark it as cacheable changes nothing.
_CONTEXT: Final = "torch.autograd.function.FunctionCtx"
_ALLOWED: Final = (
    "torch._functorch.config.autograd_cache_allow_custom_autograd_functions = True (2.8 and later) lifts it."
)
# A guard of a tensor, or, where no guard is recorded, the fields that changed.
_OF_AN_INPUT: Final = re.compile(
    r"\btensor '|check_tensor|\.(?:size|stride|storage_offset|dim|numel)\(\)|\bexample_inputs\["
)
# torch/_dynamo/guards.py, `GRAD_MODE` and the others of `___check_global_state`.
_OF_A_STATE: Final = "GLOBAL_STATE"
# Sizes are compared first (`TensorCheck::check_verbose`).
_OF_STRIDES: Final = re.compile(r" stride mismatch at index \d+$")
_OF_NO_SIZE: Final = re.compile(
    r"GLOBAL_STATE|___check_(?:type|obj)_id\(|Accessor: |expected type of '| rank mismatch$"
)
_OF_ZERO_OR_ONE: Final = re.compile(
    r"size mismatch at index \d+\. expected (?:[01], actual \d+|\d+, actual [01])$"
)
_OF_A_LENGTH: Final = ": len("
# torch/csrc/dynamo/guards.cpp, `TensorCheck::check_verbose`.
_OF_AN_ARGUMENT: Final = re.compile(
    r"tensor '[A-Za-z_]\w*(?:\[(?:\d+|'\w+')\])?' (?P<what>dtype|requires_grad|rank|stride) mismatch(?: at index \d+)?$"
)
_ONCE_A_STATE: Final = "torch compiles the function once for each such state."
# What that wrapper calls is `fn` in its guards, and the source of the parameters (torch/_dynamo/external_utils.py, `wrap_inline`).
_OF_CALLED: Final = re.compile(r"___check_(?:type|obj)_id\(fn, …\), type=<class 'torch\.nn\.")
_OF_CALLS: Final = (
    "torch compiles modules of torch.nn, and functions that it skips, through one function of its own, and counts another one as a "
    "recompile of it. If the two calls are of different modules, no input is wrong: compile what makes both calls, and they are one graph."
)
_ONCE_A_LENGTH: Final = "torch compiles the function again for each number of arguments or items that its guards compare: the same number in every call may spare it."
# An argument that a wrapper takes as `**kwargs` is called by its own name.
_OF_A_SIZE: Final = re.compile(
    r"tensor '(?:kwargs\['(?P<name>\w+)'\]|(?P<tensor>[A-Za-z_][\w.]*(?:\[(?:\d+|'\w+')\])*))' size mismatch at index (?P<dim>\d+)$"
)
_OTHERWISE: Final = (
    "What torch makes of a graph depends on torch.autocast, torch.no_grad() and the like around the call, on whether an input needs gradients, on "
    "torch._functorch.config, and on the code of the program's own operators and backends: keep them equal in every process."
)
_MARK_EACH: Final = "Other sizes changed with it: mark each of them."
# The guard that failed compares with a float, as Python prints it. The line of code follows.
_OF_A_FLOAT: Final = re.compile(r" failed: (?:(?! failed: )[^#])* == -?(?:\d+\.\d|\d+e)")
_FLOAT_PASSED_NOW: Final = (
    "A float that was a constant of the graph is an input of it now: torch has seen it vary. With dynamic=True, or as a tensor, it is "
    "one from the first call on."
)
_NOT_PICKLED: Final = (
    "The error names what cannot be pickled: in an option of Inductor, give a function or class of a module instead, or leave it out. Keep it "
    "out of the metadata of a tensor subclass: with a _stable_hash_for_caching(self) -> str the key is made, and the entry is still not stored."
)
# torch/optim: a float of a parameter group is a constant of the compiled step, a tensor is passed to it.
_OPTIMIZER: Final = re.compile(r"[\\/]torch[\\/]optim[\\/]\w+\.py")
_OF_AN_OPTIMIZER: Final = (
    "A number in the code of the optimizer's step changed. If it is the learning rate: lr=torch.tensor(…) is passed to the step, and any value of "
    "it then finds the entry. Beside foreach=True it needs capturable=True."
)
# How an example input that is no tensor is printed (torch/_library/opaque_object.py, 2.13).
_MESH_INPUT: Final = "'torch.distributed.device_mesh.DeviceMesh'"
_MESH: Final = (
    "A DeviceMesh is among the inputs, and torch pickles it with its _hash, which may be another number in each process and is in no "
    "recorded field. PYTHONHASHSEED=0 does not help where Python hashes None by its address (before 3.12), and torch 2.13 to 2.15 have no option "
    "that leaves it out."
)


def _root_of(miss: Miss) -> Miss:
    """The first miss in the chain that a miss follows from."""
    while (above := miss.follows) is not None:
        miss = above
    return miss


def group_causes(misses: Sequence[Miss], history: History) -> list[CauseRow]:
    """Give every miss its cause, and return the causes, the costliest first."""
    groups = by_key((_root_of(miss).cause_key, miss) for miss in misses)
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
            # The graphs below explain an AOTAutograd lookup without hash details.
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
                advice=advice(root, members, history),
            )
        )
    return found


def _changed_otherwise(
    root: Miss, members: Sequence[Miss], history: History
) -> list[tuple[FieldChange, ...]]:
    """What changed in some other misses of a cause, where advice depends on it: an input may change in its size or in its dtype."""
    if root.why.what.is_of_function or not any(map(is_input, root.why.changed)):
        return []
    others = (one for one in members if one is not root and one.follows is None)
    return [changes_of(other, history) for other in islice(others, _OTHERS_READ)]


def _summary(root: Why, is_of_vllm: bool) -> str:
    kind = root.what
    return ((is_of_vllm and kind.vllm_summary) or kind.summary).format(
        kind=root.kind,
        fields=", ".join(root.changed),
        upgrade=root.kind.removeprefix(UPGRADE),
        more=len(root.changed) - 1,
    )


class AdviceFacts(NamedTuple):
    """The facts that advice depends on."""

    verdict: Verdict  # of the root miss
    kind: str = ""
    reason: str = ""
    cache: str = ""  # the cache that was asked
    # why torch would not look it up or, if the entry was never stored, why it would not store it
    bypass_reason: str | None = None
    bypass_exception: str | None = None  # the class of the exception by which it was bypassed
    changes: tuple[FieldChange, ...] = ()  # what changed in the key
    otherwise: Sequence[tuple[FieldChange, ...]] = ()  # and in other misses of the cause
    # "found" if the FX lookups of the same compile hit, "equal" if what it is compared with has the same FX keys besides.
    graphs_below: str = ""
    are_lines_missing: bool = False  # whether hash details were recorded, but some of their lines are lost
    cache_dir: str | None = None  # the directory that was searched
    has_mesh: bool = False  # whether a DeviceMesh is among its inputs
    file: str = ""  # where the compiled function is
    is_backward: bool = False  # whether it is a backward graph


def _keys_below(baseline: Candidate | None, history: History) -> set[str | None]:
    """The keys of the FX graphs below an AOTAutograd lookup."""
    if not isinstance(baseline, LookupRow):
        return set()
    graphs = history.timeline.graphs_of(history.index_of[baseline.lookup])
    return {history.lookups[graph].cache_key for graph in graphs}


def advice(root: Miss, members: Sequence[Miss], history: History) -> str | None:
    """Advice for a cause, from its root miss and what changed in others; None if nothing is certain."""
    row = root.row
    if row.cache == VLLM:
        from cachescope.analysis.vllm.factors import vllm_advice

        return vllm_advice(root.why, root.changes)
    lookups = history.lookups
    graphs = [lookups[graph] for graph in history.timeline.graphs_of(root.index)]
    were_found = [graph.outcome == "hit" for graph in graphs if graph.cache == FXGRAPH]
    is_equal = {graph.cache_key for graph in graphs} <= _keys_below(root.baseline, history)
    below = "equal" if is_equal else "found"
    # The graphs of one miss may be found, and those of another not.
    is_any_compiled = any(miss.row.cache == FXGRAPH for miss in members)
    run = history.run_of.get(row.run)
    bypass_reason = _bypass_reason(root)
    held = () if row.detail_set is None else history.details.sets[row.detail_set]
    found = cause_advice(
        AdviceFacts(
            root.why.verdict,
            root.why.kind,
            root.why.reason,
            row.cache,
            bypass_reason,
            row.bypass_exception,
            changes_of(root, history),
            _changed_otherwise(root, members, history),
            graphs_below=below if were_found and all(were_found) and not is_any_compiled else "",
            are_lines_missing=row.details == "incomplete",
            cache_dir=history.folders[root.index],
            has_mesh=any(_MESH_INPUT in history.details.components[one] for one in held),
            file=row.file or "",
            is_backward=row.direction == "backward",
        )
    )
    signs = [
        ("bypass", bypass_reason), ("error", row.load_error), ("error", row.compile_error),
        ("recompile", row.recompile_reasons),
    ]  # fmt: skip
    known = known_defect(
        None if run is None else run.torch_version, [(place, text) for place, text in signs if text]
    )
    return " ".join(one for one in (known and sentence(known), found) if one) or None


def _bypass_reason(root: Miss) -> str | None:
    """Why torch would not look it up; for a key that had been looked up before, why torch would not store it then."""
    if root.row.outcome == "bypass":
        return root.row.bypass_reason
    return root.baseline.save_bypass if isinstance(root.baseline, LookupRow) else None


def cause_advice(facts: AdviceFacts) -> str | None:
    """Advice for a cause, from what is known of its root miss; None if nothing is certain."""
    kind, found = kind_of(facts), None
    folder = os.path.basename((facts.cache_dir or "").rstrip("/\\"))
    match kind.advice_from:
        case "changes":
            found = _key_advice(facts) or kind.advice
            are_calls = OF_ANOTHER_CALL in facts.reason and _OF_A_STATE not in facts.kind
            if are_calls and found and found != _OF_CALLS:
                found = f"{_OF_CALLS} If they are of one: {found[0].lower()}{found[1:]}"
        case "bypass":
            found = bypass_advice(facts.bypass_reason, facts.cache, facts.bypass_exception)
        case "save" if facts.bypass_reason is not None:
            found = bypass_advice(facts.bypass_reason, facts.cache)
        case "save" if "backward" in facts.reason:
            found = (
                "Call backward() once: the entry of a training graph is stored together with that of its backward "
                "graph. Without need of gradients call it under torch.no_grad()."
            )
        case "directory" | "other directory" if _TEMPORARY.fullmatch(folder):
            found = _IN_TEMPORARY
        case "directory" if _DEFAULT.fullmatch(folder):
            found = _IN_DEFAULT
        case "other directory" if _DEFAULT.fullmatch(folder):
            found = f"{kind.advice} {_SET_TOO_LATE}"
        case "access" if CANNOT_WRITE.search(facts.reason):
            found = _WRITES
        case "access" if "[Errno " in facts.reason:
            found = "The operating system could not read what lies there, and the error says why: mend that, or point TORCHINDUCTOR_CACHE_DIR to another directory."
        case "access" if "Failed to load artifact: " in facts.reason:
            found = f"The system refused the code of the entry, and torch does not log why. {_WRITES} If it may write, delete the files under that key."
        case "mesh" if facts.has_mesh:
            found = _MESH
        case "lines" if facts.are_lines_missing:
            found = "Lines of the log are lost. A trace may have them: TORCH_TRACE=DIR."
    if kind.may_differ_more and facts.has_mesh:
        found = " ".join(filter(None, (found, _MESH)))
    return found or kind.advice


def _key_advice(facts: AdviceFacts) -> str | None:
    kind = kind_of(facts)
    if kind.is_upgrade:
        return field_advice("torch_version")
    ways = [facts.changes, *facts.otherwise]
    if facts.is_backward and any(change.field == "gm" for change in facts.changes):
        # Its inputs are what the forward graph saves for it: they are not inputs of the program.
        ways = [tuple(change for change in way if not is_input(change.field)) for way in ways]
    if kind.is_same_code:
        ways = [tuple(filter(_is_told_of_same_code, way)) for way in ways]
    told: Iterable[tuple[str, str]] = chain.from_iterable(
        change_sentences(way, facts.graphs_below) for way in ways
    )
    if kind.is_of_function:
        # A graph that is compiled again for other values has other code, so no advice on the code is given; nor on its inputs
        # where a guard failed, for then the advice is on that guard.
        is_of_strides = _OF_STRIDES.search(facts.kind)
        is_by_input = kind.advice is None or (_OF_AN_INPUT.search(facts.kind) and not is_of_strides)
        told = (
            (field, one.replace(OR_EDITED, "."))
            for field, one in told
            if one == TYPES_ONLY
            or (field not in ("gm", IS_INFERENCE) and (is_by_input or not is_input(field)))
        )
        if is_of_strides or _OF_NO_SIZE.search(facts.kind):
            # Other sizes that differ are those of the compile that it is compared with.
            told = ((field, one) for field, one in told if field or one == GRAPHS_FOUND)
        if _OF_A_STATE in facts.kind:
            told = chain(told, [("", _ONCE_A_STATE)])
        if guard := _OF_AN_ARGUMENT.search(facts.kind):
            told = chain([("", OF_A_GUARD[guard["what"]])], told)
    is_optimizer = _OPTIMIZER.search(facts.file) is not None
    if is_optimizer and kind.is_of_function and "param_groups" in facts.kind:
        return _OF_AN_OPTIMIZER
    is_of_called = any(one.summary.startswith("fn.") and "shape [" in one.summary for one in facts.changes)
    if kind.cost == "guards" and (is_of_called or _OF_CALLED.search(facts.kind)):
        return _OF_CALLS
    if kind.is_of_function and _OF_A_FLOAT.search(facts.reason) and are_floats_passed(facts.changes):
        return _FLOAT_PASSED_NOW
    if kind.is_of_function and _OF_ZERO_OR_ONE.search(facts.reason):
        return ZERO_OR_ONE
    if kind.is_of_function and _OF_A_LENGTH in facts.kind:
        return _ONCE_A_LENGTH
    sentences = (_OF_AN_OPTIMIZER if is_optimizer and one == NUMBERS_ONLY else one for _, one in told)
    found = list(dict.fromkeys(sentences))
    if (rest := len(found) - _MOST_SENTENCES) > 0:
        more = f"Of the other fields there {'is' if rest == 1 else 'are'} {rest} more to say."
        found[_MOST_SENTENCES:] = [more]
    text = " ".join(found)
    if size := _OF_A_SIZE.search(facts.kind):
        if (name := size["name"] or size["tensor"]).startswith("___stack"):
            # The program has no name for what stands between two graphs.
            text = text.replace(" or torch._dynamo.mark_dynamic(tensor, dim)", "")
        marked = text.replace("(tensor, dim)", f"({name}, {size['dim']})")
        # torch names the first guard that fails.
        is_one = len(changed_sizes(one for one in facts.changes if not one.is_static)) < 2
        text = marked if is_one or marked == text else f"{marked} {_MARK_EACH}"
    if not text and kind.is_same_code and kind.cost == "unknown":
        return None if any(is_input(change.field) for change in ways[0]) else _OTHERWISE
    return text or None


def _is_told_of_same_code(change: FieldChange) -> bool:
    if change.field == "gm":
        return graph_advice(change) == TYPES_ONLY or bool(group_change(change))
    return change.field != IS_INFERENCE


def is_error(exception: str | None) -> bool:
    """Whether a bypass is due to an error and not to a decision of torch, by the class of the exception."""
    return exception is not None and not exception.startswith(_OWN)


def bypass_advice(reason: str | None, cache: str, exception: str | None = None) -> str:
    """What lifts a bypass, from the catalogue; or a sentence that it is not known."""
    facts = bypass_facts(reason or "", cache)
    # Before torch 2.8 a key that cannot be pickled ends AOTAutograd's lookup by an error with the same words.
    if is_error(exception) and not (reason and facts):
        return _CODE_DAMAGED if _UNREADABLE_CODE.search(reason or "") else _ERROR
    if facts is None:
        return (
            f"Not known: the caches of torch {minor_version(versions()[0])} to {minor_version(versions()[-1])} give no such reason of their own. It "
            "may be the text of an error that ended the lookup."
        )
    if reason is not None and "pickl" in facts.message and reason.strip() != facts.message:
        return _NOT_PICKLED
    if (function := function_of(reason or "")) is None:
        return facts.advice
    if function.startswith("torch._dynamo.compiled_autograd."):
        return _COMPILED_AUTOGRAD
    if function == _CONTEXT:
        return f"A torch.autograd.Function makes it: {_ALLOWED}"
    if (operator := operator_of(function)) is None:
        return facts.advice.replace("MODULE.NAME", function)
    return f"{_about(operator)} {_operator_advice(operator, function)}"


def _operator_advice(operator: str, function: str) -> str:
    if operator == "autograd_function_apply":
        return f"A torch.autograd.Function becomes such an operator: {_ALLOWED}"
    # The FX cache refuses it in other words. The same setting lifts both.
    facts = bypass_facts(f"Can't cache HigherOrderOperator: {operator}", FXGRAPH)
    return facts.advice.replace("torch.ops.higher_order.NAME", function) if facts else ""


def _about(operator: str) -> str:
    if (since := cacheable_since(operator)) is None:
        return f"No torch up to {minor_version(versions()[-1])} caches graphs with {operator} by itself."
    return f"Torch {minor_version(since)} and later cache graphs with {operator}."
