"""Checks that a guard expression is arithmetic over sizes: torch passes it to ``eval``.

`ShapeEnv.evaluate_guards_expression` does so (torch/fx/experimental/symbolic_shapes.py, 2.6 to 2.15), with access to
the modules ``math`` and ``torch`` and to Python's builtins.
"""

from __future__ import annotations

import ast
import re
import warnings
from typing import Final

_MOST_CHARACTERS: Final = 1_000_000
_CALLS: Final = re.compile(
    r"max|min|abs|round|int|float|bool|cast_symbool_to_symint_guardless|IsNonOverlappingAndDenseIndicator|"
    r"torch\.sym_(?:float|int|max|min|not|ite|sum)|torch\._sym_\w+|math\.\w+"
)
_CONSTANTS: Final = re.compile(r"math\.(?:inf|nan|pi|e)")
_NODES: Final = (
    ast.Expression, ast.BoolOp, ast.And, ast.Or, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.Compare,
    ast.cmpop, ast.IfExp, ast.expr_context,
)  # fmt: skip


def is_arithmetic(text: str) -> bool:
    """Whether an expression can only compute and compare numbers."""
    if not text:
        return True
    if len(text) > _MOST_CHARACTERS:
        return False
    try:
        with warnings.catch_warnings(action="ignore"):
            waiting: list[ast.AST] = [ast.parse(text.strip(), mode="eval")]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    while waiting:
        node = waiting.pop()
        if isinstance(node, _NODES):
            waiting += ast.iter_child_nodes(node)
        elif isinstance(node, ast.Call):
            if node.keywords or not _CALLS.fullmatch(ast.unparse(node.func)):
                return False
            waiting += node.args
        elif isinstance(node, ast.Constant):
            if not isinstance(node.value, (int, float)):
                return False
        elif not _is_size(node) and not (
            isinstance(node, ast.Attribute) and _CONSTANTS.fullmatch(ast.unparse(node))
        ):
            return False
    return True


def _is_size(node: ast.AST) -> bool:
    """Whether a node has the form ``L['t0']``."""
    return (
        isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name)
        and node.value.id == "L"
        and isinstance(node.slice, ast.Constant)
        and isinstance(node.slice.value, str)
    )
