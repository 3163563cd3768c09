"""Guard expressions of stored graphs, evaluated without `eval`.

torch prints them with `PythonPrinter` (torch/utils/_sympy/printers.py) over ``L['t0']``, ``L['t1']``, … and
evaluates them with `ShapeEnv.evaluate_guards_expression` (torch/fx/experimental/symbolic_shapes.py), 2.6 to 2.15.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from cachescope.errors import CachescopeError
from cachescope.keys.printed_values import parsed_expression

Number = int | float | bool
# torch/_dynamo/guards.py, `get_and_maybe_log_recompilation_reasons`: the compile whose guard failed, the guard, the line
# of code that it is from.
_REASON: Final = re.compile(r"(?:!?\d+(?:/\d+)*: )?(?P<guard>.*?)(?: # .*| \(HINT: .*)?", re.DOTALL)
# The values in it, which differ each time: not what it compares by name, and not the id of an object.
_VALUE: Final = re.compile(
    r"(?<= )(?:(==|!=|<=?|>=?) (?!\w+[.[(])[^,]+|(expected|actual) [^,]+)|(, )\d{6,}(?=\))"
)
_MOST_NODES: Final = 50_000
_MOST_CHARACTERS: Final = 1_000_000
# Sizes have 64 bits; a number far beyond that comes from no guard of torch.
_MOST_BITS: Final = 4_096

_OPERATORS: Final[dict[type[ast.AST], Callable[..., Any]]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Div: operator.truediv, ast.Mod: operator.mod, ast.Not: operator.not_, ast.USub: operator.neg, ast.UAdd: operator.pos,
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip
_MATH: Final = (
    "floor ceil trunc sqrt cos cosh acos sin sinh asin tan tanh atan log log2 exp".split()  # noqa: SIM905
)
_CALLS: Final[dict[str, Callable[..., Any]]] = {
    **{call.__name__: call for call in (max, min, abs, round, int, float, bool)},
    # What torch's own namespace for guards, `SYMPY_INTERP`, holds for plain numbers.
    "cast_symbool_to_symint_guardless": int,
    "torch.sym_float": float,
    "torch._sym_sqrt": math.sqrt,
    **{f"math.{name}": getattr(math, name) for name in _MATH},
}
_CONSTANTS: Final = {"math.inf": math.inf, "math.nan": math.nan, "math.pi": math.pi, "math.e": math.e}


class GuardError(CachescopeError, ValueError):
    """A guard expression that cannot be evaluated, or that names a size that was not given."""


def holds(expression: str | None, sizes: Sequence[Number] | Mapping[str, Number]) -> bool:
    """Whether the guards of an entry hold for given sizes, as torch would decide.

    Parameters
    ----------
    expression : str or None
        ``guards_expr`` of an entry; None and the empty text always hold.
    sizes : sequence or mapping of numbers
        The sizes in torch's order (``t0``, ``t1``, … are the symbolic inputs), or by name.

    Raises
    ------
    GuardError
        If the expression is outside the grammar torch prints, or names a size that was not given.

    Examples
    --------
    >>> holds("2 <= L['t0'] and L['t0'] <= 10", [7])
    True
    >>> holds("L['t0'] % 8 == 0", {"t0": 12})
    False
    """
    if not expression:
        return True
    known = sizes if isinstance(sizes, Mapping) else {f"t{n}": size for n, size in enumerate(sizes)}
    tree = _parse(expression)
    try:
        return bool(_evaluate(tree, known))
    except RecursionError as error:
        raise GuardError("guards nested too deep to evaluate") from error
    except (ArithmeticError, TypeError, ValueError) as error:
        if isinstance(error, GuardError):
            raise
        raise GuardError(f"these guards cannot be evaluated: {error}") from error


@lru_cache(maxsize=1024)
def guard_symbols(expression: str | None) -> tuple[str, ...]:
    """The names of the sizes that guards use: ``('t0', 't1')``."""
    if not expression:
        return ()
    found = (_symbol(node) for node in ast.walk(_parse(expression)))
    return tuple(sorted({name for name in found if name is not None}))


def _parse(expression: str) -> ast.expr:
    if len(expression) > _MOST_CHARACTERS:
        raise GuardError(f"guards of {len(expression)} characters are too long to evaluate")
    try:
        tree = parsed_expression(expression.strip())
        count = sum(1 for _ in ast.walk(tree))
    except (ValueError, RecursionError) as error:
        raise GuardError(f"no guard expression: {expression[:80]!r}") from error
    if count > _MOST_NODES:
        raise GuardError(f"guards of {count} terms are too many to evaluate")
    return tree


def _evaluate(node: ast.expr, sizes: Mapping[str, Number]) -> Any:
    match node:
        case ast.Constant(value=bool() | int() | float() as constant):
            return constant
        case ast.Subscript():
            return _size(node, sizes)
        case ast.BoolOp(op=op, values=values):
            # Python's own rule: the first operand that decides is the value, and the rest is not evaluated.
            wanted = isinstance(op, ast.Or)
            value: Any = not wanted
            for operand in values:
                value = _evaluate(operand, sizes)
                if bool(value) is wanted:
                    break
            return value
        case ast.UnaryOp(op=unary, operand=operand) if type(unary) in _OPERATORS:
            return _OPERATORS[type(unary)](_evaluate(operand, sizes))
        case ast.BinOp(left=left, op=binary, right=right):
            return _binary(binary, _evaluate(left, sizes), _evaluate(right, sizes))
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            return _compare(_evaluate(left, sizes), ops, comparators, sizes)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return _evaluate(body if _evaluate(test, sizes) else orelse, sizes)
        case ast.Attribute() if (name := _dotted(node)) in _CONSTANTS:
            return _CONSTANTS[name]
        case ast.Call(func=func, args=args, keywords=[]) if (name := _dotted(func)) in _CALLS:
            return _CALLS[name](*(_evaluate(argument, sizes) for argument in args))
    raise GuardError(f"not a guard that torch prints: {ast.unparse(node)[:80]!r}")


def _binary(op: ast.operator, left: Any, right: Any) -> Any:
    if isinstance(op, ast.Pow):
        if isinstance(left, int) and isinstance(right, int) and abs(left).bit_length() * right > _MOST_BITS:
            raise GuardError("a power beyond any size")
        return left**right
    if type(op) not in _OPERATORS:
        raise GuardError(f"not an operator of guards: {type(op).__name__}")
    result = _OPERATORS[type(op)](left, right)
    if isinstance(result, int) and result.bit_length() > _MOST_BITS:
        raise GuardError("a number beyond any size")
    return result


def _compare(left: Any, ops: list[ast.cmpop], others: list[ast.expr], sizes: Mapping[str, Number]) -> bool:
    for op, comparator in zip(ops, others, strict=True):
        if type(op) not in _OPERATORS:
            raise GuardError(f"not a comparison of guards: {type(op).__name__}")
        right = _evaluate(comparator, sizes)
        if not _OPERATORS[type(op)](left, right):
            return False
        left = right
    return True


def _symbol(node: ast.AST) -> str | None:
    match node:
        case ast.Subscript(value=ast.Name(id="L"), slice=ast.Constant(value=str() as name)):
            return name
    return None


def _size(node: ast.Subscript, sizes: Mapping[str, Number]) -> Number:
    name = _symbol(node)
    if name is None:
        raise GuardError(f"not a size: {ast.unparse(node)[:80]!r}")
    if name not in sizes:
        raise GuardError(f"the guards need {name}, which was not given")
    return sizes[name]


def _dotted(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=ast.Name(id=module), attr=name):
            return f"{module}.{name}"
        case ast.Attribute(value=ast.Attribute(value=ast.Name(id=module), attr=inner), attr=name):
            return f"{module}.{inner}.{name}"
    return ""


def failed_guard(reason: str) -> str:
    """The guard in the reason of a recompile, without its values, which differ each time.

    Examples
    --------
    >>> failed_guard("0/0: tensor 'x' size mismatch at index 0. expected 4, actual 5")
    "tensor 'x' size mismatch at index 0. expected …, actual …"
    """
    match = _REASON.fullmatch(reason)
    guard = reason if match is None else match["guard"]
    return _VALUE.sub(lambda found: f"{found[1] or found[2] or ','} …", guard)
