"""The range of a symbol that remains once guards from lines of the program hold."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from cachescope.frames.compile_rows import SymbolRow
from cachescope.keys.printed_values import parsed_expression

# torch/fx/experimental/symbolic_shapes.py, `create_symbol`: a range as text. Sizes and ints are s…, unbacked ones u….
_RANGE: Final = re.compile(r"\[(-?\d{1,40}|-int_oo), (-?\d{1,40}|int_oo)\]")
_WHOLE: Final = re.compile(r"[su]\d+")
# Python prints no number of more digits, and a product has no more than its factors.
_LONGEST: Final = 4_000
# For each comparison of a difference with 0: the sign and the offset that make it "not negative".
_NOT_NEGATIVE: Final[dict[type[ast.cmpop], tuple[tuple[int, int], ...]]] = {
    ast.GtE: ((1, 0),), ast.Gt: ((1, 1),), ast.LtE: ((-1, 0),), ast.Lt: ((-1, 1),), ast.Eq: ((1, 0), (-1, 0)),
}  # fmt: skip


class Bounds(NamedTuple):
    """The least and the most value; None where there is no bound."""

    least: int | None
    most: int | None

    def narrowed(self, other: Bounds) -> Bounds:
        """The intersection of both."""
        least = [bound for bound in (self.least, other.least) if bound is not None]
        most = [bound for bound in (self.most, other.most) if bound is not None]
        return Bounds(max(least, default=None), min(most, default=None))

    @property
    def in_words(self) -> str:
        """``11 to 4096``, ``11 or more``, ``at most 20``, ``any``, ``12``, ``none``."""
        match self:
            case Bounds(None, None):
                return "any"
            case Bounds(None, most):
                return f"at most {most}"
            case Bounds(int() as least, None):
                return f"{least} or more"
            case Bounds(int() as least, int() as most) if least < most:
                return f"{least} to {most}"
        return "none" if self.least != self.most else str(self.least)

    def __str__(self) -> str:
        least = "-int_oo" if self.least is None else self.least
        return f"[{least}, {'int_oo' if self.most is None else self.most}]"


ANY: Final = Bounds(None, None)


class _Linear(NamedTuple):
    """``factor * symbol + number``; a plain number if there is no symbol."""

    factor: int
    symbol: str | None
    number: int

    def times(self, by: int) -> _Linear:
        return _Linear(self.factor * by, self.symbol, self.number * by)

    def less(self, other: _Linear) -> _Linear:
        """The difference; ValueError if it is one of two symbols."""
        if None not in (self.symbol, other.symbol) and self.symbol != other.symbol:
            raise ValueError("of two symbols")
        return _Linear(self.factor - other.factor, self.symbol or other.symbol, self.number - other.number)


def bounds_of(text: str | None) -> Bounds | None:
    """Bounds as torch prints those of whole numbers: ``[2, int_oo]``.

    Examples
    --------
    >>> bounds_of("[2, int_oo]")
    Bounds(least=2, most=None)
    """
    match = _RANGE.fullmatch(text or "")
    if match is None:
        return None
    least, most = (None if "oo" in bound else int(bound) for bound in match.groups())
    return Bounds(least, most)


def guarded_bounds(expr: str, names: Mapping[str, str] | None = None) -> dict[str, Bounds]:
    """The bounds of whole numbers that a single guard sets for each symbol; other guards set none.

    Examples
    --------
    >>> guarded_bounds("2*s0 + 1 > 10")
    {'s0': Bounds(least=5, most=None)}
    >>> guarded_bounds("Eq(Mod(s0, 8), 0)")
    {}
    """
    found: dict[str, Bounds] = {}
    for left, operator, right in _comparisons(expr):
        try:
            one = _linear(left, names or {}).less(_linear(right, names or {}))
        except (ValueError, RecursionError):
            continue
        if one.symbol is not None and one.factor:
            for sign, less in _NOT_NEGATIVE.get(type(operator), ()):
                bounds = _not_negative(one.factor * sign, one.number * sign - less)
                found[one.symbol] = found.get(one.symbol, ANY).narrowed(bounds)
    return found


def guards_of(symbols: Iterable[SymbolRow]) -> set[str]:
    """The guards on some symbols, without the lines that added them."""
    return {text.rpartition(": ")[2] for row in symbols for text in row.guards}


def remaining_ranges(symbols: Sequence[SymbolRow]) -> dict[str, Bounds]:
    """The bounds of each symbol whose range is recorded: its range, narrowed by its guards and by those of its equals."""
    whole = [row for row in symbols if _WHOLE.fullmatch(row.symbol)]
    guards = guards_of(whole)
    first = _equals([row.symbol for row in whole], guards)
    found: dict[str, Bounds] = {}
    for row in whole:
        if (bounds := bounds_of(row.range)) is not None:
            name = first[row.symbol]
            found[name] = found.get(name, ANY).narrowed(bounds)
    for expr in guards:
        for name, bounds in guarded_bounds(expr, first).items():
            if name in found:
                found[name] = found[name].narrowed(bounds)
    for row in whole:
        value, name = row.specialized, first[row.symbol]
        if value is not None and re.fullmatch(r"-?\d{1,40}", value) and name in found:
            found[name] = found[name].narrowed(Bounds(int(value), int(value)))
    return {row.symbol: found[first[row.symbol]] for row in whole if first[row.symbol] in found}


def _equals(symbols: Sequence[str], guards: Iterable[str]) -> dict[str, str]:
    """For each symbol, the same one of all to which guards make it equal."""
    equal = dict(zip(symbols, symbols, strict=True))

    def last(name: str) -> str:
        while (after := equal[name]) != name:
            equal[name] = name = equal[after]
        return name

    for expr in guards:
        for left, operator, right in _comparisons(expr):
            match left, operator, right:
                case ast.Name(id=one), ast.Eq(), ast.Name(id=other) if {one, other} <= equal.keys():
                    equal[last(other)] = last(one)
    return {name: last(name) for name in symbols}


def _comparisons(expr: str) -> Iterator[tuple[ast.expr, ast.cmpop, ast.expr]]:
    """The comparisons that a guard consists of, all of which must hold."""
    if len(expr) > _LONGEST:
        return
    try:
        parts = [parsed_expression(expr.strip())]
    except ValueError:
        return
    while parts:
        match parts.pop():
            case ast.BinOp(left=left, op=ast.BitAnd(), right=right):
                parts += (left, right)
            case ast.Call(func=ast.Name(id="And"), args=several, keywords=[]):
                parts += several
            case ast.Call(func=ast.Name(id="Eq"), args=[left, right], keywords=[]):
                yield left, ast.Eq(), right
            case ast.Compare(left=left, ops=operators, comparators=others):
                for operator, right in zip(operators, others, strict=True):
                    yield left, operator, right
                    left = right


def _linear(node: ast.expr, names: Mapping[str, str]) -> _Linear:
    match node:
        case ast.Constant(value=int() as number) if not isinstance(number, bool):
            return _Linear(0, None, number)
        case ast.Name(id=name):
            return _Linear(1, names.get(name, name), 0)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _linear(operand, names).times(-1)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _linear(left, names).less(_linear(right, names).times(-1))
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return _linear(left, names).less(_linear(right, names))
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            factors = sorted((_linear(left, names), _linear(right, names)), key=lambda one: one.symbol or "")
            if factors[0].symbol is None:
                return factors[1].times(factors[0].number)
    raise ValueError("not linear")


def _not_negative(factor: int, number: int) -> Bounds:
    """The bounds of a symbol for which ``factor * symbol + number`` is not negative."""
    return Bounds(-(number // factor), None) if factor > 0 else Bounds(None, number // -factor)
