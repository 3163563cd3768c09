"""The field ``aot_config`` in words: which arguments of a graph have other names, and which settings differ.

torch prints a tuple (torch/_functorch/_aot_autograd/autograd_cache.py, `_reduce_aot_config`): eight values from 2.4 on, ten from
2.13 on. One of them lists where Dynamo found each argument, as objects of torch/_dynamo/source.py.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import lru_cache
from typing import Final

from cachescope.keys.printed_values import parsed_expression
from cachescope.wording import listed

_PATTERN: Final = re.compile(
    r"\((?P<num_params_buffers>\d{1,5}), (?P<keep_inference_input_mutations>\w+), (?P<is_export>\w+), (?P<no_tangents>\w+), "
    r"(?P<dynamic_shapes>\w+), \[(?P<arguments>.*)\], (?:(?P<static_input_indices>\[[\d, ]*\]|None), )?"
    r"(?P<enable_log>\w+), (?P<pre_dispatch>\w+)(?(static_input_indices), (?P<precompile_backend_id>[^\[\]]+))\)",
    re.DOTALL,
)
# A source within another one follows a name and an equals sign. Inputs of graphs that DDPOptimizer split have no source.
_NEXT_SOURCE: Final = re.compile(r", (?=\w+Source\(|None(?:,|$))")
# Of a symbolic size or stride, torch prints which it is as the member of an enum.
_PROPERTY: Final = re.compile(r"<TensorProperty\.(\w+): \d+>")
# Dynamo's name for a module whose globals a function of another module uses.
_MODULE: Final = "__import_"
OF_A_MODULE: Final = ("._modules", "._parameters", "._buffers")
"""The dictionaries in which a module holds its attributes (torch/nn/modules/module.py)."""
# These have the name of what they were made from: a module, an optimizer, an array that became a tensor.
_OF_ITS_BASE: Final = ("NNModuleSource", "OptimizerSource", "NumpyTensorSource", "FloatTensorSource")
_SHOWN: Final = 2
# torch 2.13, torch/_dynamo/output_graph.py: the name of a compiled function has a number, which differs in every process.
_RANDOM_NAME: Final = re.compile(r"'__compiled_fn_\d+_[0-9a-f]{8}(?:_[0-9a-f]{4}){3}_[0-9a-f]{12}'")


def aot_config_parts(before: str, after: str) -> tuple[tuple[str, str, str], ...]:
    """The parts of two printed ``aot_config`` that differ: name, before, after; empty if the texts do not show it.

    Examples
    --------
    >>> text = "(0, True, False, False, False, [LocalSource(local_name='x', is_input=True)], True, False)"
    >>> aot_config_parts(text, text.replace("'x'", "'y'").replace("(0", "(1"))
    (('num_params_buffers', '0', '1'), ('arguments', 'x', 'y'))
    """
    old, new = aot_config_values(before), aot_config_values(after)
    parts = [
        _arguments(old[name], new[name]) if name == "arguments" else (name, old[name], new[name])
        for name in old
        if name in new and old[name] != new[name]
    ]
    if any(name == "arguments" for name, *_ in parts):
        # Indexes of inputs, which move with the inputs.
        parts = [part for part in parts if part[0] != "static_input_indices"]
    return tuple(part for part in parts if part[1] != part[2])


def is_named_at_random(before: str, after: str) -> bool:
    """Whether only such a name differs, or only one side has one."""
    sides = [_RANDOM_NAME.sub("None", text) for text in (before, after)]
    return sides[0] == sides[1] and sides != [before, after]


@lru_cache(maxsize=64)
def argument_sources(text: str) -> tuple[str, ...]:
    """Where Dynamo found each input of a graph, as torch printed it; empty if the text does not show it.

    Parameters, buffers and states that the graph holds itself come first, as they do among the hashed inputs
    (torch/_functorch/_aot_autograd/frontend_utils.py, `_try_get_metadata_from_dynamo`, 2.13).
    """
    arguments = aot_config_values(text).get("arguments")
    return tuple(_NEXT_SOURCE.split(arguments)) if arguments is not None else ()


@lru_cache(maxsize=1 << 12)
def argument_name(source: str) -> str | None:
    """An argument as the program names it, ``self.layer.weight``; None for one whose source is of another kind.

    Examples
    --------
    >>> argument_name("AttrSource(base=LocalSource(local_name='self', is_input=True), member='scale')")
    'self.scale'
    """
    try:
        return _path(parsed_expression(_PROPERTY.sub(r"'\1'", source)))
    except (ValueError, RecursionError):
        return None


@lru_cache(maxsize=64)
def aot_config_values(text: str) -> dict[str, str]:
    """The parts of a printed ``aot_config`` by their names in torch; empty for any other text."""
    match = _PATTERN.fullmatch(text)
    parts = {} if match is None else match.groupdict()
    return {name: part for name, part in parts.items() if part is not None}


def _arguments(before: str, after: str) -> tuple[str, str, str]:
    """The arguments that only one side has; if there are none, all of them in order."""
    old, new = _NEXT_SOURCE.split(before), _NEXT_SOURCE.split(after)
    gone, added = Counter(old) - Counter(new), Counter(new) - Counter(old)
    if gone or added:
        return "arguments", _names(list(gone.elements())), _names(list(added.elements()))
    return "order of arguments", _names(old), _names(new)


def _names(sources: list[str]) -> str:
    shown = [argument_name(source) or source for source in sources[:_SHOWN]]
    return listed(shown, _SHOWN, others=len(sources) - len(shown)) or "not there"


def _path(node: ast.expr) -> str:
    match node:
        case ast.Call(func=ast.Name(kind), args=[], keywords=keywords):
            found = {keyword.arg: keyword.value for keyword in keywords}
        case _:
            raise ValueError("no source of torch/_dynamo/source.py")
    match found:
        case {"local_name": ast.Constant(str(name))}:
            return name
        case {"global_name": ast.Constant(str(name))}:
            # A name in another module: torch/_dynamo/symbolic_convert.py, `import_source`.
            module = name.removeprefix(_MODULE)
            return name if module == name else module.replace("_dot_", ".")
        # A variable of an enclosing function.
        case {"freevar_name": ast.Constant(str(name))} if name:
            return name
        case {"base": base, "member": ast.Constant(str(member))}:
            return f"{_path(base)}.{member}"
        case {"base": base, "index": ast.Constant(index)} if kind == "ConstDictKeySource":
            return f"list({_path(base)})[{index!r}]"
        case {"base": base, "index": ast.Constant(index)}:
            path = _path(base)
            if isinstance(index, str) and path.endswith(OF_A_MODULE):
                return f"{path.rpartition('.')[0]}.{index}"
            return f"{path}[{index!r}]"
        case {"base": base, "prop": ast.Constant(str(name)), "idx": ast.Constant(int() | None as index)}:
            return f"{_path(base)}.{name.lower()}()" + ("" if index is None else f"[{index}]")
        case {"base": base, "index": ast.Call() as key}:
            return f"{_path(base)}[{_path(key)}]"
        case {"base": base} if kind.endswith(_OF_ITS_BASE):
            return _path(base)
        case _:
            raise ValueError(f"not known: {kind}")
