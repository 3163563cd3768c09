"""The kernels in generated source, with the nodes and ATen operators from the comment that torch writes above each.

torch/_inductor/utils.py, `get_kernel_metadata` (2.6 to 2.15). The source is read as lines of text, never run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

# Comments begin with "#" in Python wrappers, with "//" in C++ wrappers.
_COMMENT: Final = re.compile(
    r"\s*+(?:#|//) (?:Topologically Sorted |Unsorted )?Source Nodes: \[(?P<nodes>.*?)\], Original ATen: \[(?P<ops>.*?)\]"
)
_ANY_COMMENT: Final = re.compile(r"\s*+(?:#|//|$)")
_DEFINITION: Final = re.compile(r"(?P<name>\w+) = async_compile\.(?P<kind>\w+)\(")
_EXTERN: Final = re.compile(
    r"\b(?:extern_kernels\.(?P<extern>\w+)|(?P<shim>aoti_torch_\w+)|torch\.ops\.(?P<op>\w+\.\w+(?:\.\w+)?))\("
)
_CALL: Final = re.compile(r"\s*+(?:[\w, ]+ = )?(?P<name>\w+)(?:\.run)?\(")
_KINDS: Final = {"cpp_pybinding": "cpp", "cpp": "cpp"}


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel of a generated wrapper; the tuples are empty if torch wrote no comment above it."""

    name: str
    kind: str
    source_nodes: tuple[str, ...]
    aten_ops: tuple[str, ...]


def kernels_of(source_code: str) -> list[Kernel]:
    """The kernels that a wrapper defines, then the library calls it makes, in the order of the text.

    Parameters
    ----------
    source_code : str
        Generated code, as in ``CompiledFxGraph.source_code``.

    Returns
    -------
    list of Kernel
        `kind` is ``cpp``, ``triton`` or another backend of ``AsyncCompile`` for generated kernels, and
        ``extern`` for calls of libraries and operators.
    """
    defined: dict[str, Kernel] = {}
    calls: list[Kernel] = []
    for line, nodes, ops in _statements(source_code):
        if definition := _DEFINITION.match(line):
            kind = _KINDS.get(definition["kind"], definition["kind"])
            defined[definition["name"]] = Kernel(definition["name"], kind, nodes, ops)
        elif extern := _EXTERN.search(line):
            name = extern["extern"] or extern["shim"] or extern["op"]
            # C++ wrappers also call the runtime for other purposes; only calls with a comment belong to the graph.
            if nodes or ops or extern["shim"] is None:
                calls.append(Kernel(name, "extern", nodes, ops))
        elif (call := _CALL.match(line)) and (known := defined.get(call["name"])) and not known.aten_ops:
            # C++ kernels have their comment above the call.
            defined[known.name] = Kernel(known.name, known.kind, nodes, ops)
    return [*defined.values(), *calls]


def _statements(source_code: str) -> Iterator[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    """Lines other than comments, each with the nodes and operators of the comment above it."""
    nodes: tuple[str, ...] = ()
    ops: tuple[str, ...] = ()
    for line in source_code.split("\n"):
        if comment := _COMMENT.match(line):
            nodes, ops = _names(comment["nodes"]), _names(comment["ops"])
        elif not _ANY_COMMENT.match(line):
            yield line, nodes, ops
            nodes = ops = ()


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())
