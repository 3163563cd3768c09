"""Expressions that can only compute and compare numbers, and whose results stay small: they are parsed, never evaluated.

`ShapeEnv.evaluate_guards_expression` evaluates guards (torch/fx/experimental/symbolic_shapes.py, 2.6 to 2.15), with access to the
modules ``math`` and ``torch`` and to Python's builtins.
"""

from __future__ import annotations

import ast
import re
import warnings
from typing import Final

_MOST_CHARACTERS: Final = 1_000_000
_MOST_BITS: Final = 1_000_000
# Of a size, and of a float as an int.
_BITS: Final = 64
_BITS_OF_A_FLOAT: Final = 1_024
_CALLS: Final = re.compile(
    r"max|min|abs|round|int|float|bool|cast_symbool_to_symint_guardless|IsNonOverlappingAndDenseIndicator|"
    r"torch\.sym_(?:float|int|max|min|not|ite|sum)|torch\._sym_\w+|"
    r"math\.(?:floor|ceil|trunc|sqrt|cbrt|exp|exp2|log|log2|log10|pow|fabs|fmod|sin|cos|tan|asin|acos|atan|sinh|cosh|tanh|asinh|acosh|"
    r"atanh|isnan|isinf|isfinite|copysign)"
)
_CONSTANTS: Final = re.compile(r"math\.(?:inf|nan|pi|e)")


class _Unbounded(Exception):  # noqa: N818 - no error
    """More than arithmetic with a small result."""


def is_arithmetic(text: str, *, any_name: bool = False) -> bool:
    """Whether an expression can only compute and compare numbers, and no number in it can become big."""
    if not text:
        return True
    if len(text) > _MOST_CHARACTERS:
        return False
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(text.strip(), mode="eval")
        return _bits(tree.body, any_name) <= _MOST_BITS
    except (SyntaxError, ValueError, RecursionError, MemoryError, _Unbounded):
        return False


def is_bounded(node: ast.BinOp) -> bool:
    """Whether a number in generated code stays small; a power or a shift does where it is of sizes, by a number in the text."""
    if not isinstance(node.op, ast.Pow | ast.LShift):
        return True
    inside = (inner.op for inner in ast.walk(node.left) if isinstance(inner, ast.BinOp))
    if any(isinstance(op, ast.Pow | ast.LShift) for op in inside):
        return False
    times = _times(node.right)
    return times is not None and times <= _BITS


def _times(node: ast.expr) -> float | None:
    """A number in a text, without its sign."""
    number = node.operand if isinstance(node, ast.UnaryOp) else node
    if isinstance(number, ast.Constant) and isinstance(number.value, int | float):
        return abs(number.value)
    return None


def _bits(node: ast.expr, any_name: bool) -> int:
    """How many bits the result of an expression may have at most."""
    match node:
        case ast.Constant(value=bool() | int() as value):
            return value.bit_length()
        case ast.Constant(value=float()):
            return _BITS_OF_A_FLOAT
        case ast.Name() if any_name:
            return _BITS
        case ast.Attribute() if _CONSTANTS.fullmatch(ast.unparse(node)):
            return _BITS
        # The size ``L['t0']``.
        case ast.Subscript(value=ast.Name(id="L"), slice=ast.Constant(value=str())):
            return _BITS
        case ast.UnaryOp(operand=inner):
            return _bits(inner, any_name) + 1
        case ast.BoolOp(values=parts):
            return max(_bits(part, any_name) for part in parts)
        case ast.Compare(left=left, comparators=others):
            return max(_bits(part, any_name) for part in (left, *others))
        case ast.IfExp(test=test, body=body, orelse=other):
            return max(_bits(part, any_name) for part in (test, body, other))
        case ast.Call(func=func, args=args, keywords=[]) if _CALLS.fullmatch(ast.unparse(func)):
            return max((_bits(part, any_name) for part in args), default=0) + _BITS_OF_A_FLOAT + len(args)
        case ast.BinOp(left=left, op=op, right=right):
            return _of_both(op, _bits(left, any_name), _bits(right, any_name), _times(right))
        case _:
            raise _Unbounded


def _of_both(op: ast.operator, left: int, right: int, times: float | None) -> int:
    if isinstance(op, ast.Mult):
        found: float = left + right
    elif not isinstance(op, ast.Pow | ast.LShift):
        found = max(left, right) + 1
    elif times is None or times > _MOST_BITS:
        raise _Unbounded
    else:
        found = (left + 1) * (times + 1) if isinstance(op, ast.Pow) else left + times
    if found > _MOST_BITS:
        raise _Unbounded
    return int(found)
