"""The changes: a comparison, a condition, a constant, an early way out, a call, two arguments.

Each is one node of a function's body, replaced by another. What is only said (docstrings, assertions, exceptions and their texts) and
what runs once at import (constants of modules, defaults, decorators) is left alone.
"""

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType

_OPPOSITES: tuple[tuple[type[ast.AST], type[ast.AST]], ...] = (
    (ast.Eq, ast.NotEq), (ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Is, ast.IsNot), (ast.In, ast.NotIn),
    (ast.Add, ast.Sub), (ast.Mult, ast.FloorDiv), (ast.BitAnd, ast.BitOr), (ast.And, ast.Or),
)  # fmt: skip
_OTHER_OPERATOR = {one: other for pair in _OPPOSITES for one, other in (pair, pair[::-1])}
_OTHER_FUNCTION = {"min": "max", "max": "min", "any": "all", "all": "any"}
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_LEFT_ALONE = (ast.Assert, ast.Raise, ast.Import, ast.ImportFrom)


@dataclass(frozen=True, slots=True)
class Change:
    """One changed node: the `which`-th way to change the node at `place` in the order of `_nodes`."""

    path: Path
    line: int
    statement: int
    function: str
    before: str
    after: str
    place: int
    which: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.function}: {self.before}  ->  {self.after}"

    def code(self) -> CodeType:
        """The module with this change."""
        tree = ast.parse(self.path.read_bytes())
        node, *_ = next(found for at, found in enumerate(_nodes(tree)) if at == self.place)
        _replace(tree, node, list(_others(node))[self.which])
        return compile(ast.fix_missing_locations(tree), str(self.path.resolve()), "exec")


def changes_of(path: Path) -> list[Change]:
    """Every change of one module."""
    return [
        Change(path, node.lineno, statement, function, _short(node), _short(other), place, which)
        for place, (node, statement, function) in enumerate(_nodes(ast.parse(path.read_bytes())))
        for which, other in enumerate(_others(node))
    ]


def _short(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) < 110 else text[:107] + "…"


def _nodes(tree: ast.Module) -> Iterator[tuple[ast.expr | ast.stmt, int, str]]:
    """What runs when a function does, with the line of its statement and the outermost function; always in one order."""
    for node in tree.body:
        for function in node.body if isinstance(node, ast.ClassDef) else [node]:
            if isinstance(function, _FUNCTIONS):
                name = f"{node.name}.{function.name}" if isinstance(node, ast.ClassDef) else function.name
                for statement in function.body:
                    yield from ((found, line, name) for found, line in _within(statement, statement.lineno))


def _within(node: ast.AST, line: int) -> Iterator[tuple[ast.expr | ast.stmt, int]]:
    if isinstance(node, _LEFT_ALONE) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
        return
    if isinstance(node, ast.stmt):
        line = node.lineno
    if isinstance(node, ast.expr | ast.stmt):
        yield node, line
    # Whether `zip` is strict is an assertion: it is never false.
    if isinstance(node, ast.keyword) and node.arg == "strict":
        return
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "type_params"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _within(child, line)


def _others(node: ast.AST) -> Iterator[ast.AST]:
    """What may stand in its place."""
    match node:
        case ast.Compare(ops=[operator]) | ast.BinOp(op=operator) if type(operator) in _OTHER_OPERATOR:
            other = copy.deepcopy(node)
            if isinstance(other, ast.Compare):
                other.ops = [_OTHER_OPERATOR[type(operator)]()]  # type: ignore[list-item]
            else:
                other.op = _OTHER_OPERATOR[type(operator)]()  # type: ignore[attr-defined]
            yield other
        case ast.BoolOp():
            yield ast.BoolOp(_OTHER_OPERATOR[type(node.op)](), node.values)  # type: ignore[arg-type]
            for at in range(len(node.values)):
                left = node.values[:at] + node.values[at + 1 :]
                yield left[0] if len(left) == 1 else ast.BoolOp(node.op, left)
        case ast.UnaryOp(op=ast.Not()):
            yield node.operand
        case ast.IfExp(test, body, orelse):
            yield ast.IfExp(test, orelse, body)
        case ast.If(ast.Name() | ast.Attribute() | ast.Call()):
            yield ast.If(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)
        case ast.Constant(bool()):
            yield ast.Constant(not node.value)
        case ast.Constant(int()):
            yield ast.Constant(node.value + 1)
            yield ast.Constant(node.value - 1)
        case ast.Continue() | ast.Break():
            yield ast.Pass()
        case ast.Expr(ast.Call(ast.Attribute(ast.Call(ast.Name("super"))))):
            # Its class stays mentioned: code takes the place of other code only if it closes over as much.
            yield ast.Expr(ast.Name("__class__", ast.Load()))
        case ast.Expr(ast.Call()) | ast.AugAssign():
            yield ast.Pass()
        case ast.Call(ast.Name(name)) if name in _OTHER_FUNCTION:
            yield ast.Call(ast.Name(_OTHER_FUNCTION[name], ast.Load()), node.args, node.keywords)
        case ast.Call(args=[ast.Name() | ast.Attribute() as one, ast.Name() | ast.Attribute() as two, *rest]):
            is_one = ast.dump(one) == ast.dump(two)
            is_odd = isinstance(node.func, ast.Name) and node.func.id in ("isinstance", "getattr", "hasattr")
            if not (is_one or is_odd):
                yield ast.Call(node.func, [two, one, *rest], node.keywords)
    yield from _without_a_way_out(node)
    yield from _without_a_condition(node)


def _without_a_way_out(node: ast.AST) -> Iterator[ast.AST]:
    """A `return` that ends a branch goes on instead."""
    if isinstance(node, ast.If) and isinstance(node.body[-1], ast.Return) and not node.orelse:
        yield ast.If(node.test, [*node.body[:-1], ast.Pass()], [])


def _without_a_condition(node: ast.AST) -> Iterator[ast.AST]:
    """A comprehension takes what it left out."""
    for generator in getattr(node, "generators", ()):
        for at in range(len(generator.ifs)):
            other = copy.deepcopy(node)
            del other.generators[node.generators.index(generator)].ifs[at]  # type: ignore[attr-defined]
            yield other


def _replace(tree: ast.Module, node: ast.AST, other: ast.AST) -> None:
    ast.copy_location(other, node)
    for parent in ast.walk(tree):
        for name, value in ast.iter_fields(parent):
            if value is node:
                setattr(parent, name, other)
                return
            if isinstance(value, list):
                for at, child in enumerate(value):
                    if child is node:
                        value[at] = other
                        return
