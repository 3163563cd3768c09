"""What to do about an input that changed, by the changed parts of its metadata."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from cachescope.analysis.differences import FieldChange
from cachescope.analysis.fields import is_input

_SYMBOL: Final = re.compile(r"\b[su]\d+\b")
_INDEX: Final = re.compile(r"index=\d+|:\d+")
# The parts that change along with the first.
_FOLLOWS: Final = {
    "shape": ("storage_bytes",),
    "dtype": ("storage_bytes",),
    "layout": ("is_sparse", "stride"),
}
_SEVERAL_SIZES: Final = (
    "An input's size changed. Pad it to one size, or compile with dynamic=True or "
    "torch._dynamo.mark_dynamic(tensor, dim): one entry then serves many sizes."
)
_OF_THE_MODEL: Final = {
    "shape": "A parameter or buffer has another size: the model is another one, which needs code of its own.",
    "dtype": "A parameter or buffer has another dtype: give the model one dtype in every process, with model.to(dtype).",
    "requires_grad": "requires_grad of a parameter or buffer changed: register and freeze the same parameters in every process.",
}
_ZERO_OR_ONE: Final = (
    "An input's size changed to or from 0 or 1, which torch compiles on its own also with dynamic=True: "
    "pad it to one size."
)
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
    "(torch._dynamo.config.specialize_int, dynamic=False). With dynamic=True it is symbolic from the first call on."
)
_INTEGER_SYMBOLIC_NOW: Final = (
    "An integer input that was a fixed number is symbolic now: torch has seen it vary. With dynamic=True it is symbolic "
    "from the first call on."
)
_ADVICE: Final = {
    "dtype": "An input's dtype changed: cast it to one dtype before the compiled call.",
    "layout": "An input's layout changed, as from a dense tensor to a sparse one; each has code of its own.",
    "order": "The order of an input's elements in memory changed: bring it to one memory format before the compiled "
    "call, with tensor.contiguous(memory_format=…).",
    "requires_grad": "An input's requires_grad changed: where no gradient of it is needed, pass tensor.detach().",
}
_OTHER_INDEX: Final = (
    "An input lies on another device of the same kind, and keys hold its index. A process that sees one device alone "
    "(CUDA_VISIBLE_DEVICES, one for each rank) calls it cuda:0, whichever it is."
)
_OTHER_DEVICE: Final = "An input lies on another kind of device, which needs code of its own."


def tensor_advice(change: FieldChange) -> tuple[str, ...]:
    """Sentences on one input that changed; empty if its parts do not show what to do.

    Examples
    --------
    >>> from cachescope.analysis.differences import field_change
    >>> text = "TensorMetadata(dtype={}, shape=torch.Size([{}, 2]), stride=(2, 1), device=device(type='cpu'))"
    >>> tensor_advice(field_change("example_inputs[0]", text.format("a", 4), text.format("b", 4)))
    ("An input's dtype changed: cast it to one dtype before the compiled call.",)
    """
    parts = {name: (before, after) for name, before, after in change.parts}
    for name, brought in _FOLLOWS.items():
        if name in parts:
            for other in brought:
                parts.pop(other, None)
    return tuple(dict.fromkeys(_sentences(parts, change)))


def are_inputs_moved(changes: Iterable[FieldChange]) -> bool:
    """Whether inputs may have other places than before, so that two of one number are not one input.

    They have if one is new or gone. If other code takes as many inputs, one whose metadata are those of another before
    may have taken its place, as activation checkpointing puts a model's input before its parameters.
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

    Each symbol is an input of its own, so all others change places and are not compared.
    """
    inputs = [change for change in changes if is_input(change.field)]
    sides = [change.before or "" for change in inputs], [change.after or "" for change in inputs]
    before, after = ({symbol for text in texts for symbol in _SYMBOL.findall(text)} for texts in sides)
    if len(before) == len(after):
        return None
    is_fixed = len(after) < len(before)
    # A symbol that is in no tensor's sizes is an integer of the program.
    in_tensors = [
        {symbol for text in texts if "TensorMetadata(" in text for symbol in _SYMBOL.findall(text)}
        for texts in sides
    ]
    if len(in_tensors[0]) == len(in_tensors[1]):
        return _INTEGER_FIXED_NOW if is_fixed else _INTEGER_SYMBOLIC_NOW
    return _FIXED_NOW if is_fixed else _SYMBOLIC_NOW


def _sentences(parts: dict[str, tuple[str, str]], change: FieldChange) -> Iterator[str]:
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
        return "An input has another number of dimensions, which needs code of its own."
    pairs = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
    if any(size in ("0", "1") for pair in pairs for size in pair):
        return _ZERO_OR_ONE
    if all(size.isdigit() for pair in pairs for size in pair):
        return _SEVERAL_SIZES
    return "A size of an input is computed in another way, or its symbol has another name."


def _sizes(shape: str) -> list[str]:
    start, end = shape.find("["), shape.rfind("]")
    inside = shape[start + 1 : end].strip() if 0 <= start < end else ""
    return [size.strip() for size in inside.split(",")] if inside else []
