"""Guards of stored graphs: evaluated without `eval`, and the sizes for which they failed in terms of the program: ``x.size(0) is 5``.

torch prints them with `PythonPrinter` (torch/utils/_sympy/printers.py) over ``L['t0']``, ``L['t1']``, … and
evaluates them with `ShapeEnv.evaluate_guards_expression` (torch/fx/experimental/symbolic_shapes.py), 2.6 to 2.15.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from cachescope.analysis.aot_config import OF_A_MODULE
from cachescope.analysis.compiles.ranges import ANY, Bounds, bounds_of, guarded_bounds, guards_of
from cachescope.errors import CachescopeError
from cachescope.frames.compile_rows import SymbolRow
from cachescope.keys.printed_values import parsed_expression

Number = int | float | bool
_MOST_NODES: Final = 50_000
_MOST_CHARACTERS: Final = 1_000_000
# Sizes have 64 bits. A number far beyond that is from no guard of torch.
_MOST_BITS: Final = 4_096

_OPERATORS: Final[dict[type[ast.AST], Callable[..., Any]]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Div: operator.truediv, ast.Mod: operator.mod, ast.Not: operator.not_, ast.USub: operator.neg, ast.UAdd: operator.pos,
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip
_MATH: Final = (
    "floor ceil trunc sqrt cos cosh acos sin sinh asin tan tanh atan log log2 exp".split()  # noqa: SIM905
)
_MOST_DIGITS: Final = 400


def _rounded(number: Number, digits: int | None = None) -> Number:
    if digits is not None and abs(digits) > _MOST_DIGITS:
        raise ValueError("digits beyond any size")
    return round(number, digits)


_CALLS: Final[dict[str, Callable[..., Any]]] = {
    **{call.__name__: call for call in (max, min, abs, int, float, bool)},
    "round": _rounded,
    # Torch's own namespace for guards, `SYMPY_INTERP`, for plain numbers.
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
            # As in Python, the first operand that decides is the value, and the rest is not evaluated.
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
        case ast.Attribute() if (name := ast.unparse(node)) in _CONSTANTS:
            return _CONSTANTS[name]
        case ast.Call(func=func, args=args, keywords=[]) if (name := ast.unparse(func)) in _CALLS:
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


_PLACEHOLDER: Final = re.compile(r"L\['(t\d+)'\]")
_NUMBER: Final = re.compile(r"-?\d{1,19}")
# How torch/_guards.py and torch/_dynamo/source.py print sources.
_LOCAL: Final = re.compile(r"L\['(\w+)'\]")
_SIZE: Final = re.compile(r"\.size\(\)\[(\d+)\]")
_OF_A_MODULE: Final = re.compile(rf"(?:{'|'.join(map(re.escape, OF_A_MODULE))})\['([^']*)'\]")
# torch/_inductor/codecache.py, `FxGraphCachePickler._reduce_symint`: ('s77',); torch 2.15 numbers those of AOTAutograd's keys: ('s_0',).
_SYMINT: Final = re.compile(r"\('(?P<expr>[^']+)',\)")
_NUMBERED: Final = re.compile(r"s_\d+")
_SHAPE: Final = re.compile(r"\bshape=torch\.Size\(\[([^\[\]]*)\]\)")
_NAME: Final = re.compile(r"\bs\d+\b")
_SYMBOL: Final = re.compile(r"s\d+")
# Symbols of floats and of numbers from data. Guards have placeholders only for whole numbers with a value.
_OTHER_KIND: Final = re.compile(r"(?:zf|u|zuf)\d+")


class FailedGuards(NamedTuple):
    """What the guards of stored entries failed for."""

    # The sizes and numbers for which they failed, each with its value in the lookup.
    sizes: tuple[tuple[SymbolRow, int], ...]
    # If one size failed, and only by its bounds: the bounds in each entry. Else empty.
    bounds: tuple[Bounds, ...]
    conditions: tuple[str, ...]  # what did not hold in each entry, in terms of the program
    entries: int  # number of entries that this covers: a log may have the guards of only some


def in_words(source: str) -> str:
    """The name of a source in the program.

    Examples
    --------
    >>> in_words("L['x'].size()[0]")
    'x.size(0)'
    >>> in_words("L['self']._modules['norm']._buffers['steps'].item()")
    'self.norm.steps.item()'
    """
    return _OF_A_MODULE.sub(r".\1", _SIZE.sub(r".size(\1)", _LOCAL.sub(r"\1", source)))


def placeholders(example_inputs: Sequence[str], symbols: Sequence[SymbolRow]) -> dict[str, SymbolRow] | None:
    """The symbols that ``t0``, ``t1``, … stand for in the guards of an entry; None if that is not certain.

    Notes
    -----
    torch/_inductor/codecache.py, `FxGraphCache._filter_backed_symints`: the inputs that are symbolic whole numbers with a value, in order.
    """
    named = {row.symbol: row for row in symbols}
    whole = _whole(symbols)
    exprs = [match["expr"] for text in example_inputs if (match := _SYMINT.fullmatch(text))]
    exprs = [expr for expr in exprs if not _OTHER_KIND.fullmatch(expr)]
    is_one_number = len(whole) == 1 and len({expr for expr in exprs if _NUMBERED.fullmatch(expr)}) == 1
    found = {}
    for place, expr in enumerate(exprs):
        row = whole[0] if is_one_number and _NUMBERED.fullmatch(expr) else named.get(expr)
        if row is None or row.source is None or not _NUMBER.fullmatch(row.value or ""):
            return None
        found[f"t{place}"] = row
    return found


def only_placeholder(guards: Sequence[str], symbols: Sequence[SymbolRow]) -> dict[str, SymbolRow] | None:
    """As `placeholders`, without hash details: certain only if the compile has a single symbol of a whole number."""
    match _whole(symbols):
        case [one] if one.source is not None and _NUMBER.fullmatch(one.value or ""):
            return dict.fromkeys((name for text in guards for name in _PLACEHOLDER.findall(text)), one)
    return None


def _whole(symbols: Sequence[SymbolRow]) -> list[SymbolRow]:
    """The symbols of whole numbers that were not specialized."""
    return [row for row in symbols if _SYMBOL.fullmatch(row.symbol) and row.specialized is None]


def failed_guards(guards: Sequence[str], of: Mapping[str, SymbolRow]) -> FailedGuards | None:
    """The sizes and numbers for which the guards of all stored entries failed."""
    values = {name: int(row.value or 0) for name, row in of.items()}
    found = []
    for text in guards:
        try:
            parts = [part for part in _conjuncts(text) if not holds(part, values)]
            names = [name for part in parts for name in guard_symbols(part)]
            bounds = _bounds(text, parts)
        except (GuardError, RecursionError):
            return None
        words = " and ".join(_PLACEHOLDER.sub(lambda m: _named(of, m[1]), part) for part in parts)
        found.append(_FailedEntry(names, words, bounds))
    return _failed(of, found)


def failed_in(compiles: Sequence[Sequence[SymbolRow]], own: Sequence[SymbolRow]) -> FailedGuards | None:
    """As `failed_guards`, where no log has the guards of entries: from the guards that the storing compiles added."""
    named = {row.symbol: row for row in own if row.source and _NUMBER.fullmatch(row.value or "")}
    values = {name: int(row.value or 0) for name, row in named.items()}
    found = []
    for rows in compiles:
        # The graphs are equal, but the program may have other names for the sizes.
        same = {row.symbol: values[row.symbol] for row in rows if is_same(row, named.get(row.symbol))}
        broken = sorted(expr for expr in guards_of(rows) if fails(expr, same))
        names = [name for expr in broken for name in _NAME.findall(expr) if name in named]
        texts = " and ".join(map(_as_python, broken))
        words = re.sub(r"L\['(s\d+)'\]", lambda match: _named(named, match[1]), texts)
        bounds = {row.symbol: left for row in rows if (left := bounds_of(row.range_after)) is not None}
        found.append(_FailedEntry(names, words, bounds if all(map(guarded_bounds, broken)) else {}))
    return _failed(named, found)


class _FailedEntry(NamedTuple):
    """What the guards of one entry failed for."""

    names: list[str]
    condition: str
    bounds: Mapping[str, Bounds]  # if all that failed are bounds: those of each size


def _failed(of: Mapping[str, SymbolRow], found: Sequence[_FailedEntry]) -> FailedGuards | None:
    """What the guards of all entries failed for, if those of each did. Bounds are given only if each entry has them."""
    failed = dict.fromkeys(name for one in found for name in one.names)
    if not failed or not all(one.names for one in found):
        return None
    sizes = {of[name].symbol: (of[name], int(of[name].value or 0)) for name in failed}
    bounds = [one.bounds[name] for one in found for name in failed if name in one.bounds]
    told = bounds if len(failed) == 1 and len(bounds) == len(found) else ()
    conditions = dict.fromkeys(one.condition for one in found)
    return FailedGuards(tuple(sizes.values()), tuple(dict.fromkeys(told)), tuple(conditions), len(found))


def is_one_size(symbol: SymbolRow, inputs: Sequence[str]) -> bool:
    """Whether a symbol is one size of one input, as the hash details print inputs: equal sizes share a symbol, and change together."""
    if not _SIZE.search(symbol.source or ""):
        return False
    shapes = [match[1] for text in inputs for match in _SHAPE.finditer(text)]
    return sum(_NAME.findall(shape).count(symbol.symbol) for shape in shapes) == 1


def is_same(row: SymbolRow, other: SymbolRow | None) -> bool:
    """Whether symbols of two compiles are about the same size or number of the program."""
    return other is not None and (row.symbol, row.source) == (other.symbol, other.source)


def fails(expr: str, values: Mapping[str, int]) -> bool:
    """Whether a guard that a compile added, as ``guard_added_fast`` records it, does not hold for the values of symbols."""
    try:
        return not holds(_as_python(expr), values)
    except (ValueError, RecursionError):
        return False


def _as_python(expr: str) -> str:
    """A guard as Python writes it, over ``L['s0']``; ValueError if it is not one."""
    return ast.unparse(_AsPython().visit(parsed_expression(expr)))


def _named(of: Mapping[str, SymbolRow], name: str) -> str:
    return in_words(of[name].source or name)


def _bounds(guards: str, parts: Sequence[str]) -> dict[str, Bounds]:
    """The bounds that the guards of an entry set, if all that failed is such a bound."""
    found: dict[str, Bounds] = {}
    if not all(guarded_bounds(_PLACEHOLDER.sub(r"\1", part)) for part in parts):
        return found
    for part in _conjuncts(guards):
        for name, bounds in guarded_bounds(_PLACEHOLDER.sub(r"\1", part)).items():
            found[name] = found.get(name, ANY).narrowed(bounds)
    return found


def _conjuncts(guards: str) -> Iterator[str]:
    """The conditions that all have to hold."""
    parts = [_parse(guards)]
    while parts:
        match parts.pop():
            case ast.BoolOp(op=ast.And(), values=values):
                parts += reversed(values)
            case part:
                yield ast.unparse(part)


class _AsPython(ast.NodeTransformer):
    """Sympy's functions as Python's operators, over ``L['s0']``."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return parsed_expression(f"L[{node.id!r}]")

    def visit_Call(self, node: ast.Call) -> ast.expr:
        match node.func, [self.visit(argument) for argument in node.args]:
            case ast.Name(id="Eq"), [left, right]:
                return ast.Compare(left, [ast.Eq()], [right])
            case ast.Name(id="Ne"), [left, right]:
                return ast.Compare(left, [ast.NotEq()], [right])
            case ast.Name(id="Mod" | "PythonMod"), [left, right]:
                return ast.BinOp(left, ast.Mod(), right)
            case ast.Name(id="FloorDiv"), [left, right]:
                return ast.BinOp(left, ast.FloorDiv(), right)
        raise ValueError(f"not known: {ast.unparse(node)[:80]}")
