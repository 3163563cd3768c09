"""The environment variables that an expression of a config module reads, also through functions and names of that module."""

import ast
from collections.abc import Callable

_READERS = {
    "os.environ.get", "os.getenv", "environ.get", "getenv", "get_tristate_env", "os.environ.setdefault",
}  # fmt: skip
_CONFIG_ARGUMENTS = ("env_name_force", "env_name_default")


def environment_names(value: ast.AST, find: Callable[[str], ast.AST | None]) -> tuple[str, ...]:
    """Names of the variables read, in the order in which they are written.

    Parameters
    ----------
    value : AST
        The default of an option.
    find : callable
        What a name of the module stands for: a function or an assigned value.
    """
    found: dict[str, None] = {}
    _collect(value, find, {}, found, set())
    return tuple(found)


def _collect(
    value: ast.AST,
    find: Callable[[str], ast.AST | None],
    arguments: dict[str, ast.expr],
    found: dict[str, None],
    seen: set[str],
) -> None:
    for node in ast.walk(value):
        for name in _read_here(node, arguments):
            found.setdefault(name)
        if isinstance(node, ast.Name) and node.id not in seen:
            meant = find(node.id)
            if meant is not None and meant is not value:
                given = _arguments(meant, node.id, value) if isinstance(meant, ast.FunctionDef) else {}
                # A function is read anew at each call: its variables may be its arguments.
                now = seen if given else seen | {node.id}
                if not given:
                    seen.add(node.id)
                _collect(meant, find, given, found, now | {node.id})


def _arguments(function: ast.FunctionDef, name: str, value: ast.AST) -> dict[str, ast.expr]:
    for node in ast.walk(value):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
            names = [argument.arg for argument in function.args.args]
            return dict(zip(names, node.args, strict=False))
    return {}


def _read_here(node: ast.AST, arguments: dict[str, ast.expr]) -> list[str]:
    match node:
        case ast.Call() if ast.unparse(node.func) in _READERS and node.args:
            return _text(node.args[0], arguments)
        case ast.Call() if ast.unparse(node.func) in {"Config", "_Config"}:
            given = {keyword.arg: keyword.value for keyword in node.keywords}
            named = [given[argument] for argument in _CONFIG_ARGUMENTS if argument in given]
            return [name for value in named for name in _text(value, arguments)]
        case ast.Subscript() if ast.unparse(node.value) == "os.environ":
            return _text(node.slice, arguments)
        case ast.Compare(comparators=[right]) if ast.unparse(right) == "os.environ":
            return _text(node.left, arguments)
    return []


def _text(node: ast.AST, arguments: dict[str, ast.expr]) -> list[str]:
    match node:
        case ast.Constant(value=str(name)):
            return [name]
        case ast.List(elts=parts):
            return [name for part in parts for name in _text(part, arguments)]
        case ast.Name(id=name) if name in arguments:
            return _text(arguments[name], {})
    return []
