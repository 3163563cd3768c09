"""What to do about a key that changed, sentence by sentence: about values of a process, the graph, its inputs, and options."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from cachescope.analysis.aot_config import is_named_at_random
from cachescope.analysis.differences import FOUND_ELSEWHERE, FieldChange, is_reordered
from cachescope.analysis.graphs import calls_of_the_same, differ_in_dtypes, group_sizes, inner_graphs, tokens
from cachescope.analysis.process_values import Kind
from cachescope.catalogue.facts import document, field_facts
from cachescope.keys.key_fields import FREEZING, is_input
from cachescope.keys.printed_values import FLOAT, sizes_became, type_became

_OPTION: Final = re.compile(r"inductor_config(?:_comms)?\[.*\]", re.DOTALL)
# If more options changed, only their number is told.
_MOST_OPTIONS: Final = 3
GRAPHS_FOUND: Final = "The FX graphs below were found, so little was compiled again."
_FROZEN: Final = "Freezing makes constants of the model's parameters, so the graph is another one too, whether or not its code was edited."
_OTHER_GROUP: Final = "A graph with collectives has code of its own for each number of processes: {}."
_OF_AUTOGRAD_ALONE: Final = "What changed in the graph is what AOTAutograd alone hashes, such as names of arguments, attributes and locals, or how operators are written: `with torch.device(…)` around the call changes it."
_SET_ORDER: Final = (
    "The same set in a different order: Python orders strings differently in each process. Set PYTHONHASHSEED to one value in "
    "every process, or hold a sorted list instead."
)


def change_sentences(changes: Sequence[FieldChange], graphs_below: str) -> Iterator[tuple[str, str]]:
    """Sentences on what changed, each with its field, which is empty where a sentence is on several; `graphs_below` is as in `AdviceFacts`."""
    if graphs_below:
        yield "", GRAPHS_FOUND
    for change in changes:
        yield from ((change.field, sentence) for sentence in process_advice(change))
    group = next(filter(None, map(group_change, changes)), None)
    frozen = any(change.field == FREEZING for change in changes)
    for sentence in (dynamism_advice(changes), group and _OTHER_GROUP.format(group), frozen and _FROZEN):
        if sentence:
            yield "", sentence
            changes = tuple(change for change in changes if not _is_of_graph(change))
    options = [change for change in changes if _OPTION.fullmatch(change.field)]
    if len(options) > _MOST_OPTIONS:
        text = f"{len(options)} options of torch._inductor.config differ; keep them equal in every process."
        yield "", text
        changes = tuple(change for change in changes if not _OPTION.fullmatch(change.field))
    inputs = [change for change in changes if is_input(change.field)]
    if are_moved := are_inputs_moved(changes):
        changes = tuple(change for change in changes if change not in inputs)
    # A graph compiled for other inputs has other code, without an edit of the program.
    is_by_inputs = bool(inputs) and not are_moved
    code = None if graphs_below else next((one for one in changes if one.field == "gm"), None)
    # A model of other sizes needs code of its own, whatever the sizes of its inputs, gradients and states are.
    is_other = any(one.is_static and name == "shape" for one in inputs for name, *_ in one.parts)
    moot = _OF_ONE_SIZE if is_other else ()
    for change in changes:
        # Other code has other arguments.
        if not (code is not None and change.field == "aot_config"):
            for sentence in _own_sentences(change, graphs_below == "equal", is_by_inputs):
                if sentence not in moot:
                    yield change.field, _beside_code(code) if sentence == _SEVERAL_SIZES else sentence


def _own_sentences(change: FieldChange, is_of_autograd: bool, is_by_inputs: bool) -> Iterator[str]:
    if is_input(change.field):
        yield from tensor_advice(change)
    elif change.field == "gm":
        text = graph_advice(change)
        if is_of_autograd:
            yield text if text in (_NAMES_ONLY, TYPES_ONLY) else _OF_AUTOGRAD_ALONE
        elif not is_by_inputs or text == TYPES_ONLY:
            yield text
    elif is_reordered(change.before, change.after):
        yield _SET_ORDER
    elif (advice := _of_field(change)) is not None:
        yield advice


def _of_field(change: FieldChange) -> str | None:
    if is_named_at_random(change.before or "", change.after or ""):
        return _AHEAD_OF_TIME
    left_out = document(_FILE)["left_out"] if change.kind in ("new", "gone") else {}
    return left_out.get(change.field) or field_advice(change.field)


def _is_of_graph(change: FieldChange) -> bool:
    """Whether a field is of the graph and its inputs. Those follow from which sizes are symbolic, and from freezing."""
    return is_input(change.field) or change.field in ("gm", "aot_config")


# Values of a process.

# What it is, and what to do about it.
_OF_KIND: Final[Mapping[Kind, tuple[str, str]]] = {
    "rank": ("the rank of the process", "no rank finds what another one stored"),
    "host": ("the name of a host", "no other host finds what was stored; or use one name for all hosts"),
    "path": ("a path", "only a run with the same path finds what was stored; or use one path in every run"),
    "port": ("a port", "only a run with the same port finds what was stored; or use one port in every run"),
    "time": ("a time", "no later run finds what was stored"),
    "address": (
        "the address of an object",
        "it is another one in every process; name the object by what it is, and not by its repr",
    ),
    "pid": ("the id of the process", "no other process finds what was stored"),
    "random number": (
        "a random number",
        "only a run that draws the same number finds what was stored; or choose it once for all runs",
    ),
    "bundle index": (
        "the bundles of Ray that the process has",
        "no process of other bundles finds what was stored",
    ),
}


def process_advice(change: FieldChange) -> Iterator[str]:
    """One sentence for each kind of value of a process in which a field differs.

    Examples
    --------
    >>> from cachescope.analysis.differences import field_change
    >>> list(process_advice(field_change("x", "1", "2")))
    []
    """
    found = change.process_values
    if found is None:
        return
    holds = "holds" if found.is_certain else "apparently holds"
    where = "The graph" if change.kind == "graph" else change.field
    for kind in found.kinds:
        what, why = _OF_KIND[kind]
        yield f"{where} {holds} {what}: keep it out of the key, because {why}."


# The graph.

# A value that is printed like a name.
_VALUES: Final = frozenset({"True", "False", "None", "Ellipsis", "inf", "nan"})
# A whole token, or part of a text. Digits within a name are kept.
_NUMBER: Final = re.compile(r"(?<![A-Za-z_\d])\d+(?:\.\d+)?(?:e[+-]?\d+)?")
_NAMES_ONLY: Final = (
    "Only names in the code of the graph changed: those of arguments, attributes or locals. The old names bring the "
    "hit back."
)
# After a name: ``x : torch.nn.parameter.Parameter``.
_ANNOTATION: Final = re.compile(r" : [A-Za-z_][\w.]*")
TYPES_ONLY: Final = "In the graph's code only the types of arguments changed, such as a Parameter in place of a Tensor: pass each as one type in every process."
NUMBERS_ONLY: Final = (
    "A number in the code of the graph changed. One that varies from run to run may come from a step, a seed or the "
    "environment; keys do not hold the values of tensors that are passed."
)
_NOT_PRINTED: Final = (
    "The printed code is equal: a captured tensor, an attribute or an annotation in the graph may differ."
)
INNER_NOT_PRINTED: Final = (
    "The printed code is equal, and torch does not print the code of the graphs within it, such as the score_mod of flex attention: that may "
    "differ, or a captured tensor, an attribute or an annotation. A trace has it: cachescope recorded COMPILE TRACE --show dynamo_output_graph."
)
_OTHER_CODE: Final = (
    "The code of the graph changed. One that changes with every run often holds a value of its environment."
)

_DTYPES_ONLY: Final = "Only dtypes in the code of the graph changed. Autocast does that, and so does another dtype of the model or of an input."
_OTHER_NUMBER_OF_CALLS: Final = (
    "The graph calls the same operators more or less often than before. A model with another number of layers does: it has a graph of "
    "its own, and is compiled once. Otherwise the code was edited."
)


def graph_advice(change: FieldChange) -> str:
    """A sentence on the field ``gm``."""
    if change.before is None or change.after is None:
        return _OTHER_CODE
    if not change.diff:
        return INNER_NOT_PRINTED if inner_graphs(change.after) else _NOT_PRINTED
    if _ANNOTATION.sub("", change.before) == _ANNOTATION.sub("", change.after):
        return TYPES_ONLY
    if calls_of_the_same(change.before, change.after) is not None:
        return _OTHER_NUMBER_OF_CALLS
    if differ_in_dtypes(change.before, change.after):
        return _DTYPES_ONLY
    old, new = tokens(change.before), tokens(change.after)
    if len(old) != len(new):
        return _OTHER_CODE
    differing = {(a, b) for a, b in zip(old, new, strict=True) if a != b}
    if all(_NUMBER.sub("", a) == _NUMBER.sub("", b) for a, b in differing):
        return NUMBERS_ONLY
    return _NAMES_ONLY if _is_renaming(old, new, change) else _OTHER_CODE


def group_change(change: FieldChange) -> str | None:
    """``2 -> 4``, where only numbers changed in a graph, among them the number of processes of its collectives."""
    if change.field != "gm" or graph_advice(change) != NUMBERS_ONLY:
        return None
    pairs = zip(group_sizes(change.before or ""), group_sizes(change.after or ""), strict=False)
    return ", ".join(dict.fromkeys(f"{before} -> {after}" for before, after in pairs if before != after))


def _beside_code(code: FieldChange | None) -> str:
    """What to do about an input of another size, where the code of the graph changed with it."""
    if code is None or not code.diff:
        return _SEVERAL_SIZES
    return f"{_SEVERAL_SIZES} {_IF_OF_SIZES}" if graph_advice(code) == NUMBERS_ONLY else _SIZE_AND_CODE


def _is_renaming(old: list[str], new: list[str], change: FieldChange) -> bool:
    """Whether each name consistently replaces one other name, and none of them is an operation."""
    mapping: dict[str, str] = {}
    for a, b in zip(old, new, strict=True):
        if mapping.setdefault(a, b) != b:
            return False
    renamed = {a: b for a, b in mapping.items() if a != b}
    names = {name for pair in renamed.items() for name in pair}
    if len(set(mapping.values())) != len(mapping) or not all(map(str.isidentifier, names)) or names & _VALUES:
        return False
    # Names that are called, looked up or passed as keywords are no locals: `torch.sin(`, `.add(`, `aten.mm.default`, `, dim = 1`.
    text = f"{change.before}\n{change.after}"
    return not any(re.search(rf"\.{name}\b|\b{name}[.(]|[(,]\s*{name} =", text) for name in names)


# Inputs.

_UNBACKED: Final = (
    "torch._dynamo.decorators.mark_unbacked(tensor, dim) makes a size unbacked: torch then compiles without a value of it. Mark the same sizes "
    "in every process."
)
_STRIDES: Final = re.compile(r"stride=\([^()]*\)")
_INDEX: Final = re.compile(r"index=\d+|:\d+")
_SEVERAL_SIZES: Final = (
    "An input's size changed. Pad it to one size, or compile with dynamic=True or "
    "torch._dynamo.mark_dynamic(tensor, dim): one entry then serves many sizes."
)
_IF_OF_SIZES: Final = "This holds only if the numbers that changed in the graph's code follow from the size."
OR_EDITED: Final = "; otherwise the code itself was edited."
_SIZE_AND_CODE: Final = (
    "An input's size changed, and the graph's code in more than its numbers. If a branch or a loop depends on the size, pad the input to "
    f"one size{OR_EDITED}"
)
_OF_THE_MODEL: Final = {
    "shape": "A parameter or buffer has another size: the model is another one, which needs code of its own.",
    "dtype": "A parameter or buffer has another dtype: give the model one dtype in every process, with model.to(dtype).",
    "requires_grad": "requires_grad of a parameter or buffer changed: register and freeze the same parameters in every process.",
}
ZERO_OR_ONE: Final = (
    "An input's size changed to or from 0 or 1, which torch compiles on its own also with dynamic=True: "
    "pad it to one size."
)
_OF_ONE_SIZE: Final = (_SEVERAL_SIZES, ZERO_OR_ONE)
_FIXED_NOW: Final = (
    "A size of an input that was symbolic is a fixed number now: dynamic shapes were switched off (dynamic=False, "
    "torch._dynamo.config.automatic_dynamic_shapes, assume_static_by_default), or torch had not yet seen it vary. "
    "With dynamic=True or torch._dynamo.mark_dynamic(tensor, dim) it is symbolic from the first call on."
)
_SYMBOLIC_NOW: Final = (
    "A size of an input that was a fixed number is symbolic now: torch has seen it vary, or was told that it does. "
    "With dynamic=True or torch._dynamo.mark_dynamic(tensor, dim) it is symbolic from the first call on."
)
_INTEGER_FIXED_NOW: Final = (
    "An integer input that was symbolic is a fixed number now: torch had not yet seen it vary, or compiles for each number "
    "(torch._dynamo.config.specialize_int, dynamic=False). With dynamic=True it is symbolic from the first call on, unless it is 0 or 1."
)
_INTEGER_SYMBOLIC_NOW: Final = (
    "An integer input that was a fixed number is symbolic now: torch has seen it vary. With dynamic=True it is symbolic "
    "from the first call on, unless it is 0 or 1."
)
_ADVICE: Final = {
    "dtype": "An input's dtype changed: cast it to one dtype before the compiled call.",
    "layout": "An input's layout changed, as from a dense tensor to a sparse one; each has code of its own.",
    "order": "The order of an input's elements in memory changed: bring it to one memory format before the compiled "
    "call, with tensor.contiguous(memory_format=…).",
    "stride": "An input has other strides, as a slice of a larger tensor does, which dynamic=True does not spare: pass "
    "tensor.contiguous(), or where a size of it is 1, tensor.clone(memory_format=torch.contiguous_format).",
    "requires_grad": "An input's requires_grad changed: where no gradient of it is needed, pass tensor.detach().",
    "imports": "pickle names a memory format by the first module that has it: the main program if multiprocessing was imported before "
    "torch, as in each process that it spawns; else torch. Import multiprocessing before torch in every program that shares the cache.",
}
_OTHER_RANK: Final = "An input has another number of dimensions, which needs code of its own."
OF_A_GUARD: Final = {name: _ADVICE[name] for name in ("dtype", "requires_grad", "stride")} | {
    "rank": _OTHER_RANK
}
"""The advice where a guard on a tensor failed, by what the guard compares."""
_OTHER_INDEX: Final = (
    "An input lies on another device of the same kind, and keys hold its index. A process that sees one device alone "
    "(CUDA_VISIBLE_DEVICES, one for each rank) calls it cuda:0, whichever it is."
)
_OTHER_DEVICE: Final = "An input lies on another kind of device, which needs code of its own."
_OTHER_TYPE: Final = (
    "An argument is an integer where it was a float (or a float64 tensor without dimensions), or the other way round. Each has code of its "
    "own: pass one type."
)


def tensor_advice(change: FieldChange) -> tuple[str, ...]:
    """Sentences on one input that changed; empty if its parts do not show what to do."""
    if type_became(change.before or "", change.after or ""):
        return (_OTHER_TYPE,)
    return tuple(dict.fromkeys(_sentences(change)))


def are_inputs_moved(changes: Iterable[FieldChange]) -> bool:
    """Whether inputs may have other positions than before, so that two with one index are not the same input.

    They have if one is new or gone. If other code takes as many inputs, an input with the metadata of another one may have
    moved there: activation checkpointing puts a model's input before its parameters.
    """
    changes = tuple(changes)
    inputs = [change for change in changes if is_input(change.field)]
    if any(change.kind in ("new", "gone") for change in inputs):
        return True
    before = {change.before for change in inputs}
    is_other_code = any(change.field in ("gm", "aot_config") for change in changes)
    return is_other_code and any(change.after in before - {change.before} for change in inputs)


def dynamism_advice(changes: Iterable[FieldChange]) -> str | None:
    """A sentence on inputs with more, or fewer, symbolic sizes or integers; None if the number is the same.

    Each symbol is an input of its own, so all others move and are not compared.
    """
    inputs = [change for change in changes if is_input(change.field)]
    pairs = [(change.before or "", change.after or "") for change in inputs]
    if not (became := sizes_became(pairs)):
        return None
    if became.endswith("backed"):
        return _UNBACKED
    # A symbol in no tensor's sizes is an integer of the program.
    tensors = [(_of_tensor(before), _of_tensor(after)) for before, after in pairs]
    if not sizes_became(tensors):
        return _INTEGER_FIXED_NOW if became == "fixed" else _INTEGER_SYMBOLIC_NOW
    if not sizes_became((_STRIDES.sub("", before), _STRIDES.sub("", after)) for before, after in tensors):
        return _ADVICE["stride"]
    sizes = [pair for pair in changed_sizes(inputs) if pair[0].isdigit() != pair[1].isdigit()]
    if sizes and all({"0", "1"} & {*pair} for pair in sizes):
        return ZERO_OR_ONE
    return _FIXED_NOW if became == "fixed" else _SYMBOLIC_NOW


def changed_sizes(inputs: Iterable[FieldChange]) -> list[tuple[str, str]]:
    """The sizes of inputs that changed, before and after."""
    shapes = [(before, after) for change in inputs for name, before, after in change.parts if name == "shape"]
    pairs = [pair for before, after in shapes for pair in zip(_sizes(before), _sizes(after), strict=False)]
    return [(before, after) for before, after in pairs if before != after]


def _of_tensor(text: str) -> str:
    return text if "TensorMetadata(" in text else ""


def are_floats_passed(changes: Iterable[FieldChange]) -> bool:
    """Whether the graph takes more floats than before."""
    pairs = [(one.before or "", one.after or "") for one in changes if is_input(one.field)]
    before, after = (sum(FLOAT.fullmatch(pair[side]) is not None for pair in pairs) for side in (0, 1))
    return after > before


def _sentences(change: FieldChange) -> Iterator[str]:
    parts = {name: (before, after) for name, before, after in change.parts}
    if FOUND_ELSEWHERE in change.summary:
        yield _ADVICE["imports"]
    if "device" in parts:
        before, after = (_INDEX.sub("", text) for text in parts["device"])
        yield _OTHER_INDEX if before == after else _OTHER_DEVICE
    for name in ("dtype", "layout", "requires_grad"):
        if name in parts:
            yield _OF_THE_MODEL.get(name, _ADVICE[name]) if change.is_static else _ADVICE[name]
    if "shape" in parts and change.is_static:
        yield _OF_THE_MODEL["shape"]
    elif "shape" in parts:
        yield _of_shape(*map(_sizes, parts["shape"]))
    elif "layout" not in parts and ("stride" in parts or "memory_format" in parts):
        yield _ADVICE["order"]


def _of_shape(before: list[str], after: list[str]) -> str:
    if len(before) != len(after):
        return _OTHER_RANK
    pairs = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
    if any(size in ("0", "1") for pair in pairs for size in pair):
        return ZERO_OR_ONE
    were_numbers, are_numbers = (all(pair[side].isdigit() for pair in pairs) for side in (0, 1))
    if were_numbers and are_numbers:
        return _SEVERAL_SIZES
    if were_numbers or are_numbers:
        return _SYMBOLIC_NOW if were_numbers else _FIXED_NOW
    return "A size of an input is computed in another way, or its symbol has another name."


def _sizes(shape: str) -> list[str]:
    start, end = shape.find("["), shape.rfind("]")
    inside = shape[start + 1 : end].strip() if 0 <= start < end else ""
    return [size.strip() for size in inside.split(",")] if inside else []


# Advice by field, whatever changed in it.

_AHEAD_OF_TIME: Final = (
    "Compiling ahead of time (aot_compile, caching_precompile) puts a random name into the key, and finds nothing whatever is set: save "
    "what it made, by save_compiled_function, or torch.compiler.save_cache_artifacts() after a backward pass, and load that."
)

# What sets a field, by a pattern of its name; and when a key lacks a field: no other value was set (`FxGraphHashDetails.__init__` in
# torch/_inductor/codecache.py, 2.13).
_FILE: Final = "field_advice.json"
_UNKNOWN_OPTION: Final = re.compile(r"inductor_config\[(.*)\]")
_ARGUMENT: Final = re.compile(r"fx_kwargs\[(.*)\]")


def field_advice(field: str) -> str | None:
    """What sets a field and how to keep it equal, with torch's option names; None if nothing is certain.

    Options are looked up in the catalogue, as of the newest torch that has them. What to do about the graph and its
    inputs depends on how they changed: `graph_advice`, `tensor_advice`.
    """
    known = (one["advice"] for one in document(_FILE)["of_field"] if re.fullmatch(one["field"], field))
    return next(known, None) or _option_advice(field)


def _option_advice(field: str) -> str | None:
    """Every way to set an option, from the catalogue; for an option it lacks, what the name shows."""
    facts = field_facts(field)
    if facts is not None and facts.python_name is not None:
        ways = [
            *([f"by {facts.option} of torch.compile"] if facts.option else []),
            f"by {facts.python_name}",
            *([f"by {' or '.join(facts.environment)}"] if facts.environment else []),
        ]
        return f"Set {_listed(ways)}; keep it equal in every process."
    if option := _UNKNOWN_OPTION.fullmatch(field):
        return (
            f'Set by options={{"{option[1]}": …}} of torch.compile, by torch._inductor.config.{option[1]}, '
            "or by a TORCHINDUCTOR_… variable; keep it equal in every process."
        )
    if argument := _ARGUMENT.fullmatch(field):
        what = facts.meaning if facts is not None else None
        return f"An argument that torch.compile hands to Inductor ({what or argument[1]})."
    return None


def _listed(ways: list[str]) -> str:
    return " or ".join(ways) if len(ways) <= 2 else f"{', '.join(ways[:-1])}, or {ways[-1]}"
