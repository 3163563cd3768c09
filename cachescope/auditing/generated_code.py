"""Checks that Python which torch runs is as torch's code generators write it, by a grammar of what those of 2.4 to 2.15 write.

The words are data, `generated_code.json`, made by ``tests/data/make_generated_code.py`` from torch's sources: imports, what is
reached through them, attributes of other values, operators. No name that is imported is bound again, and a module is never
a value. So whatever the text does is made of what is in the table, and proven; code in other languages never is.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any, Final

from cachescope.auditing.arithmetic import is_arithmetic, is_bounded
from cachescope.collector import no_collections

_MOST_CHARACTERS: Final = 4 << 20
_STATEMENTS: Final = (
    ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Delete, ast.Return, ast.If, ast.For, ast.While, ast.With, ast.Assert,
    ast.Pass, ast.Break, ast.Continue, ast.Global, ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom,
)  # fmt: skip
_EXPRESSIONS: Final = (
    ast.Constant, ast.Name, ast.Attribute, ast.Subscript, ast.Slice, ast.Tuple, ast.List, ast.Dict, ast.Set, ast.Call, ast.BinOp,
    ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Lambda, ast.Starred, ast.JoinedStr, ast.FormattedValue, ast.ListComp,
)  # fmt: skip
_PARTS: Final = (
    ast.arguments, ast.arg, ast.keyword, ast.alias, ast.withitem, ast.comprehension, ast.Module,
)  # fmt: skip
_USED: Final = frozenset((*_EXPRESSIONS, *_PARTS, *_STATEMENTS))
# More than half of all nodes, and nothing is asked of them.
_KINDS_OF_SIGNS: Final = (ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context)
_SIGNS: Final = frozenset(sign for kind in _KINDS_OF_SIGNS for sign in kind.__subclasses__())
# torch's own names of these begin with the class that is generated for a graph in parts, or name a part of a graph by number.
_OF_SELF: Final = re.compile(r"partitions|_?[a-zA-Z][a-zA-Z_]*\d\w*", re.ASCII)
_CLASS: Final = "Runner"
_OWN_NAMES: Final = frozenset({"__name__", "__file__"})
# What is reached through these is called at once, so that what it is given stands there.
_ONLY_CALLED: Final = frozenset(
    {"async_compile", "pickle", "triton_heuristics", "CppWrapperCodeCache", "compile_mps_shader"}
)
_COMPILES: Final = ("async_compile.", "CppWrapperCodeCache.", "compile_mps_shader")
_OF_PYTHON: Final = ("wait", "multi_kernel", "size_hint_multi_kernel")
_OF_A_LAUNCHER: Final = (
    ast.Constant, ast.Name, ast.Attribute, ast.Tuple, ast.List, ast.Dict, ast.Set, ast.Call, ast.UnaryOp, ast.USub, ast.Load, ast.keyword,
)  # fmt: skip
# In Python that launches a kernel, torch writes these texts without quotes.
_LAUNCHED: Final = re.compile(r"[\w*.:+ <>-]*", re.ASCII)
_HEURISTICS: Final = "triton_heuristics."


Part = tuple[str, str]
"""Something in a text that is not proven: a rule, and a message."""


class _Odd(Exception):  # noqa: N818 - no error
    """What is not as torch writes it, and where."""

    def __init__(self, node: Any, what: str) -> None:
        super().__init__(f"line {getattr(node, 'lineno', 1)}: {what}")


@cache
def _words() -> dict[str, Any]:
    table = json.loads(files("cachescope.auditing").joinpath("generated_code.json").read_text())
    table["imports"] = frozenset(table["imports"])
    for name in ("attributes", "builtins", "roots"):
        table[name] = frozenset(table[name].split())
    for name in ("triton", "operators"):
        table[name] = {key: frozenset(names.split()) for key, names in table[name].items()}
    table["paths"] = re.compile("|".join(table["paths"]), re.ASCII)
    return dict(table)


def foreign_parts(text: str) -> list[Part]:
    """What in a source is not as torch writes it, or is not proven: once each, in order."""
    if len(text) > _MOST_CHARACTERS:
        return [("entry-not-read", "is too long to be looked at")]
    try:
        # A tree has no circles, and millions of nodes to go through.
        with warnings.catch_warnings(action="ignore"), no_collections():
            return list(dict.fromkeys(_Text().check(ast.parse(text))))
    except _Odd as odd:
        return [("code-not-as-torch", f"not as torch writes it: {odd}")]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return [("code-not-as-torch", "not as torch writes it: it is no Python that can be read")]


class _Text:
    """One source: what it imports, what it binds, and the check of every node."""

    def __init__(self) -> None:
        self.words = _words()
        self.imported: set[str] = set()
        self.bound: set[str] = set()
        self.called: set[int] = set()  # what is called
        self.passed: set[int] = set()  # ``globals`` where torch calls it
        self.aliases: set[int] = set()  # the names that stand for a path, where they are bound

    def check(self, tree: ast.Module) -> Iterator[Part]:
        """Yield what is not proven; raise `_Odd` at the first part that is not as torch writes it."""
        aliases = self.words["aliases"]
        nodes = [node for node in ast.walk(tree) if type(node) not in _SIGNS]
        for node in nodes:
            self._kind(node)
            match node:
                case ast.Call(
                    func=ast.Attribute(value=ast.Name(id="async_compile"), attr="wait"),
                    args=[ast.Call(func=ast.Name(id="globals") as func, args=[], keywords=[])],
                ):
                    self.passed.add(id(func))
                case ast.Call(func=ast.Name(id="end_graph") as func, args=[ast.Constant(value=None)]):
                    self.passed.add(id(func))  # not into a file
                case ast.If(body=body) if ast.unparse(node.test) == "__name__ == '__main__'":
                    inside = ast.walk(ast.Module(body, []))
                    self.passed |= {
                        id(one) for one in inside if getattr(one, "id", "") == "compiled_module_main"
                    }
                case ast.Assign(targets=[ast.Name(id=name) as target], value=value) if name in aliases:
                    if ast.unparse(value) != aliases[name]:
                        raise _Odd(node, f"binds {name} again")
                    self.aliases.add(id(target))
                    self.passed |= {id(inner) for inner in ast.walk(value) if isinstance(inner, ast.Name)}
                case _:
                    self._bind(node)
        inner = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
        self.called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
        for node in nodes:
            if isinstance(node, ast.Attribute) and id(node) not in inner:
                yield from self._attribute(node)
            elif isinstance(node, ast.Name) and id(node) not in inner and isinstance(node.ctx, ast.Load):
                self._name(node)
            elif isinstance(node, ast.Call):
                yield from self._call(node)
            elif isinstance(node, ast.BinOp) and not is_bounded(node):
                raise _Odd(node, "a number that may become big")

    def _kind(self, node: ast.AST) -> None:
        if type(node) not in _USED:
            raise _Odd(node, f"a part of Python that it does not use ({type(node).__name__})")
        if isinstance(node, ast.ClassDef) and (
            node.name != _CLASS or node.bases or node.keywords or node.decorator_list
        ):
            raise _Odd(node, f"the class {node.name}")

    def _bind(self, node: ast.AST) -> None:
        """Note the name that a node binds, which is none of those that are imported."""
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                self._import(node, alias)
            return
        name = _bound_by(node)
        if name is None or id(node) in self.aliases:
            return
        if any(name in self.words[kind] for kind in ("aliases", "roots", "builtins")):
            raise _Odd(node, f"binds {name} again")
        if name.startswith("__") and name != "__init__":
            raise _Odd(node, f"binds {name}")
        self.bound.add(name)

    def _import(self, node: ast.Import | ast.ImportFrom, alias: ast.alias) -> None:
        origin = (
            f"from {'.' * node.level}{node.module} import" if isinstance(node, ast.ImportFrom) else "import"
        )
        line = f"{origin} {alias.name}" + ("" if alias.asname is None else f" as {alias.asname}")
        if line not in self.words["imports"]:
            raise _Odd(node, line)
        self.imported.add(alias.asname or alias.name)

    def _name(self, node: ast.Name) -> None:
        name, words = node.id, self.words
        if name in _OWN_NAMES or name in self.bound or name in words["builtins"] or id(node) in self.passed:
            return
        is_function = name not in words["roots"] and (name in self.imported or name in words["aliases"])
        is_class = name == "AttrsDescriptor" and name in self.imported
        if not (is_function or is_class) or (name in _ONLY_CALLED and id(node) not in self.called):
            raise _Odd(node, f"uses {name}")

    def _attribute(self, node: ast.Attribute) -> Iterator[Part]:
        parts: list[str] = []
        root: ast.expr = node
        while isinstance(root, ast.Attribute):
            if root.attr.startswith("__"):
                raise _Odd(node, f"uses {root.attr}")
            parts.append(root.attr)
            root = root.value
        parts.reverse()
        name = root.id if isinstance(root, ast.Name) else ""
        if name in self.words["roots"]:
            if name not in self.imported and name not in self.words["aliases"]:
                raise _Odd(node, f"uses {name}")
            yield from self._path(node, [name, *parts])
            return
        if isinstance(root, ast.Name):
            self._name(root)
        is_self, names = name == "self", self.words["attributes"]
        if isinstance(node.ctx, ast.Load):
            is_kernel = parts == [name]  # a kernel of C++ is called as kernel.kernel
            known = (part in names or (is_self and _OF_SELF.fullmatch(part)) for part in parts)
            is_known = is_kernel or all(known)
        else:
            is_known = is_self and parts == ["partitions"]
        if not is_known:
            raise _Odd(node, f"uses .{'.'.join(parts)}")

    def _path(self, node: ast.Attribute, parts: list[str]) -> Iterator[Part]:
        """Check what is reached through a name that is imported, or that stands for a path."""
        alias = self.words["aliases"].get(parts[0], "")
        whole = ".".join([*alias.split("."), *parts[1:]] if alias.startswith("torch.ops.") else parts)
        if not isinstance(node.ctx, ast.Load):
            raise _Odd(node, f"changes {whole}")
        if whole in self.words["aliases"].values():
            return
        if whole.startswith("torch.ops."):
            yield from self._operator(node, whole.split(".")[2:])
            return
        if len(parts) == 2 and parts[1] in self.words["triton"].get(parts[0], ()):
            if "inline_asm" in parts[1]:
                yield "native-code", f"a kernel with assembly, by {whole}"
            return
        is_named = parts[0] in _ONLY_CALLED and id(node) not in self.called
        if is_named or self.words["paths"].fullmatch(whole) is None:
            raise _Odd(node, f"uses {whole}")

    def _operator(self, node: ast.Attribute, parts: list[str]) -> Iterator[Part]:
        known = self.words["operators"].get(parts[0])
        if len(parts) not in (2, 3):
            raise _Odd(node, f"uses torch.ops.{'.'.join(parts)}")
        if known is None:
            yield "user-operator", f"calls the operator {'.'.join(parts)}, which is not torch's"
        elif known and parts[1] not in known:
            raise _Odd(node, f"uses torch.ops.{'.'.join(parts)}")

    def _call(self, node: ast.Call) -> Iterator[Part]:
        name = ast.unparse(node.func) if isinstance(node.func, ast.Name | ast.Attribute) else ""
        first = node.args[0] if node.args else None
        if name == "async_compile.triton":
            text = node.args[1] if len(node.args) == 2 else None
            if not isinstance(text, ast.Constant) or not isinstance(text.value, str):
                raise _Odd(node, "a kernel that is no text")
            yield from _kernel(text)
        elif name == "pickle.loads":
            if not isinstance(first, ast.Constant) or not isinstance(first.value, bytes):
                raise _Odd(node, "calls pickle.loads")
            yield "not-followed", "unpickles an object that it holds"
        elif name.startswith(_HEURISTICS):
            self._launcher(node)
        elif name.startswith(_COMPILES) and name.rpartition(".")[2] not in _OF_PYTHON:
            yield "native-code", f"compiles and runs code in another language, with {name}"

    def _launcher(self, node: ast.Call) -> None:
        """Check what is written down in a call of which torch makes Python that launches a kernel."""
        for keyword in node.keywords:
            if keyword.arg == "filename" and ast.unparse(keyword.value) != "__file__":
                raise _Odd(node, "a kernel with the settings of another file")
        for inner in ast.walk(node):
            is_known = isinstance(inner, _OF_A_LAUNCHER)
            if isinstance(inner, ast.Name):
                is_known = inner.id in self.imported or inner.id in ("__file__", "set")
            elif isinstance(inner, ast.keyword):
                is_known = inner.arg is not None
            elif isinstance(inner, ast.Constant):
                value = inner.value
                is_known = not isinstance(value, str | bytes) or (
                    isinstance(value, str)
                    and (_LAUNCHED.fullmatch(value) is not None or is_arithmetic(value, any_name=True))
                )
            if not is_known:
                raise _Odd(inner, f"launches a kernel with {ast.unparse(inner)[:100]}")


def _kernel(text: ast.Constant) -> Iterator[Part]:
    """Check the text of a kernel of Triton, which Python runs before Triton compiles it."""
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(str(text.value))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise _Odd(text, "a kernel that cannot be read") from None
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    decorators = [ast.unparse(made) for node in functions for made in node.decorator_list]
    if any(made.startswith(f"{_HEURISTICS}user_autotune(") for made in decorators):
        yield "user-kernel", f"holds a kernel of the user's own, in line {text.lineno}"
        return
    try:
        yield from _Text().check(tree)
    except _Odd as odd:
        raise _Odd(text, f"a kernel: {odd}") from None


def _bound_by(node: ast.AST) -> str | None:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return node.id
    if isinstance(node, ast.arg):
        return node.arg
    return node.name if isinstance(node, ast.FunctionDef | ast.ClassDef) else None
