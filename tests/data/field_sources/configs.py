"""The options of a config module, read off its source as torch's ``install_config_module`` finds them when it runs.

Mirrors ``install_config_module.visit`` and ``inherit_fields_from`` of ``torch/utils/_config_module.py`` (2.4 to 2.15).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from field_sources.comments import Comments
from field_sources.environment import environment_names


@dataclass(frozen=True)
class Option:
    """One option as written: its default, the variables read for it, what torch says of it."""

    name: str
    default: str
    environment: tuple[str, ...]
    meaning: str | None
    alias: str | None = None


@dataclass
class _Scope:
    """Values assigned so far in a module or class, and its enclosing one, for names that a default refers to."""

    values: dict[str, ast.AST] = field(default_factory=dict)
    outer: _Scope | None = None

    def find(self, name: str) -> ast.AST | None:
        if name in self.values:
            return self.values[name]
        return self.outer.find(name) if self.outer else None


def read_options(text: str) -> dict[str, Option]:
    """Every option of a config module by its dotted name."""
    tree = ast.parse(text)
    scope = _Scope({node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)})
    found: dict[str, Option] = {}
    _visit(tree.body, "", scope, Comments(text), found)
    return found


def _visit(
    body: list[ast.stmt], prefix: str, scope: _Scope, comments: Comments, found: dict[str, Option]
) -> None:
    for node in body:
        match node:
            case ast.ImportFrom(module="typing"):
                # A plain bool, so torch takes it for an option: it is in every key.
                if any(alias.name == "TYPE_CHECKING" for alias in node.names):
                    found["TYPE_CHECKING"] = Option("TYPE_CHECKING", "False", (), None)
            case ast.If():
                _visit(_open_source_branch(node), prefix, scope, comments, found)
            case ast.ClassDef():
                inner = _Scope(outer=scope)
                _inherit(node, f"{prefix}{node.name}.", found)
                _visit(node.body, f"{prefix}{node.name}.", inner, comments, found)
            case ast.Assign() | ast.AnnAssign(value=ast.expr()):
                _add_assigned(node, prefix, scope, comments, found)


def _open_source_branch(node: ast.If) -> list[ast.stmt]:
    """What runs outside of the company that torch's ``is_fbcode()`` asks for, and of a type checker."""
    test = ast.unparse(node.test)
    return node.orelse if test in {"is_fbcode()", "TYPE_CHECKING"} else node.body


def _inherit(node: ast.ClassDef, prefix: str, found: dict[str, Option]) -> None:
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "inherit_fields_from":
            parent = ast.unparse(decorator.args[0]) + "."
            for name, option in list(found.items()):
                short = name.removeprefix(parent)
                if name.startswith(parent) and not short.startswith("_"):
                    found[prefix + short] = Option(
                        prefix + short, option.default, option.environment, option.meaning
                    )


def _add_assigned(
    node: ast.Assign | ast.AnnAssign, prefix: str, scope: _Scope, comments: Comments, found: dict[str, Option]
) -> None:
    value = node.value
    assert value is not None
    for inner in ast.walk(value):
        # `(env_str := os.getenv(…))` leaves a name in the module, which torch takes for an option.
        if isinstance(inner, ast.NamedExpr) and not prefix:
            name = inner.target.id
            scope.values[name] = inner.value
            found[name] = _option(name, inner.value, scope, None)
    for name in _targets(node):
        scope.values[name] = value
        if _is_option(name, node, scope):
            found[prefix + name] = _option(prefix + name, value, scope, comments.above(node))


def _targets(node: ast.Assign | ast.AnnAssign) -> Iterator[str]:
    for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
        if isinstance(target, ast.Name):
            yield target.id


def _is_option(name: str, node: ast.Assign | ast.AnnAssign, scope: _Scope) -> bool:
    value = node.value
    # A name for a type or a function is no value that torch would save.
    is_type = isinstance(value, ast.Subscript) and ast.unparse(value.value) in {
        "Literal", "Callable", "Optional", "Union",
    }  # fmt: skip
    is_function = isinstance(value, ast.Name) and isinstance(scope.find(value.id), ast.FunctionDef)
    return not (name.startswith("__") or isinstance(value, ast.Lambda) or is_type or is_function)


def _option(name: str, value: ast.expr, scope: _Scope, meaning: str | None) -> Option:
    alias = None
    default: ast.expr | None = value
    if isinstance(value, ast.Call) and ast.unparse(value.func) in {"Config", "_Config"}:
        given = {keyword.arg: keyword.value for keyword in value.keywords}
        default = given.get("default", value.args[0] if value.args else None)
        alias = ast.literal_eval(given["alias"]) if "alias" in given else None
    written = "" if default is None else ast.unparse(default)
    return Option(name, written, environment_names(value, scope.find), meaning, alias)
