"""The shape and the size of the package in figures: ``python tests/structure.py`` prints them.

Every import counts: inside a function, under ``TYPE_CHECKING``, and a module that a string names. A name in a string
annotation is one of these imports too, or mypy would not know it.
"""

import ast
import io
import tokenize
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

PACKAGE = Path(__file__).parent.parent / "cachescope"
# The limits of the house.
MOST_MODULES = 400
MOST_LINES_OF_A_MODULE = 450
MOST_LINES = 61_000
MOST_LINES_OF_CODE = 37_000


@dataclass(frozen=True, slots=True)
class Import:
    """One name imported by one module."""

    module: str
    name: str
    line: int
    in_function: bool
    only_typed: bool


def module_of(path: Path) -> str:
    """The dotted name of a file of the package."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(path: Path) -> tuple[Import, ...]:
    """Every import of a file; of ``from a import b`` the name is ``a.b``."""
    module = module_of(path)
    found: list[Import] = []

    def walk(node: ast.AST, in_function: bool, only_typed: bool) -> None:
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Call) and _last_name(node.func) == "import_module":
            names = [named.value for named in node.args[:1] if isinstance(named, ast.Constant)]
        elif isinstance(node, ast.Constant) and _is_module(node.value):
            names = [node.value]
        for name in names:
            found.append(Import(module, name, node.lineno, in_function, only_typed))  # type: ignore[attr-defined]
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            for child in node.body:
                walk(child, in_function, True)
            for child in node.orelse:
                walk(child, in_function, only_typed)
            return
        inside = in_function or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for child in ast.iter_child_nodes(node):
            walk(child, inside, only_typed)

    walk(ast.parse(path.read_text()), False, False)
    return tuple(found)


def _last_name(called: ast.expr) -> str:
    """The name that is called: of ``a.b()`` it is ``b``."""
    return getattr(called, "attr", None) or getattr(called, "id", "")


def _is_module(value: object) -> bool:
    """Whether a text names a module of the package."""
    parts = value.split(".") if isinstance(value, str) and value.isascii() and len(value) < 200 else []
    return parts[:1] == [PACKAGE.name] and PACKAGE.parent.joinpath(*parts).with_suffix(".py").is_file()


def edges(paths: list[Path]) -> dict[str, set[str]]:
    """Which module of the package imports which; a package that is named stands for its ``__init__``."""
    return edges_of({module_of(path): imports_of(path) for path in paths})


def edges_of(imports: Mapping[str, Iterable[Import]]) -> dict[str, set[str]]:
    """Like `edges`, of the imports of each module."""
    found: dict[str, set[str]] = {module: set() for module in imports}
    for module, imported in imports.items():
        for one in imported:
            target = one.name if one.name in imports else one.name.rpartition(".")[0]
            if target in imports and target != module:
                found[module].add(target)
    return found


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The modules that can reach each other, largest circle first."""
    reached = {module: _reached(graph, module) for module in graph}
    seen: set[str] = set()
    found = []
    for module in sorted(graph):
        if module in seen or module not in reached[module]:
            continue
        circle = sorted(other for other in reached[module] if module in reached[other])
        seen.update(circle)
        found.append(circle)
    return sorted(found, key=len, reverse=True)


def _reached(graph: dict[str, set[str]], start: str) -> set[str]:
    found: set[str] = set()
    waiting = [*graph[start]]
    while waiting:
        module = waiting.pop()
        if module not in found:
            found.add(module)
            waiting += graph[module]
    return found


def size_of(path: Path) -> Counter[str]:
    """Lines of a file by what they are; a line of code that also has a comment is code."""
    text = path.read_text()
    kinds = ["blank" if not line.strip() else "code" for line in text.splitlines()]
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and token.line.lstrip().startswith("#"):
            kinds[token.start[0] - 1] = "comment"
    definitions = Counter[str]()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            kinds[node.lineno - 1 : node.end_lineno] = ["import"] * (node.end_lineno - node.lineno + 1)
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        docs = [child for child in node.body if isinstance(child, ast.Expr) and _is_text(child.value)]
        for doc in docs:
            kinds[doc.lineno - 1 : doc.end_lineno] = ["docstring"] * (doc.end_lineno - doc.lineno + 1)
        if not isinstance(node, ast.Module) and not node.name.startswith("_"):
            definitions["public"] += 1
            definitions["documented"] += ast.get_docstring(node) is not None
    return Counter(kinds) + Counter(files=1, lines=len(kinds)) + definitions


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def print_sizes(folder: Path, rooms: bool) -> None:
    """Print the lines of a folder of code, together and by room."""
    sizes: dict[str, Counter[str]] = {}
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder).parts
        for room in ("together", *([parts[0] if len(parts) > 1 else "(root)"] if rooms else ())):
            sizes.setdefault(room, Counter()).update(size_of(path))
    columns = ("files", "lines", "code", "docstring", "import", "comment", "blank", "public", "documented")
    print(f"{folder.name:<16}" + "".join(f"{column:>11}" for column in columns))
    for room, size in sorted(sizes.items(), key=lambda item: -item[1]["lines"]):
        print(f"{room:<16}" + "".join(f"{size[column]:>11,}" for column in columns))


def main() -> None:
    """Print the figures."""
    print_sizes(PACKAGE, rooms=True)
    print_sizes(PACKAGE.parent / "tests", rooms=False)
    paths = sorted(PACKAGE.rglob("*.py"))
    lengths = {path: len(path.read_text().splitlines()) for path in paths}
    imports = [one for path in paths for one in imports_of(path)]
    statements = {(one.module, one.line) for one in imports if one.in_function}
    own = {(one.module, one.line) for one in imports if one.in_function and one.name.startswith("cachescope")}
    longest = max(paths, key=lengths.__getitem__)
    size = sum(map(size_of, paths), Counter[str]())
    print(f"modules                        {len(paths)}, limit {MOST_MODULES}")
    print(f"lines                          {size['lines']:,}, limit {MOST_LINES:,}")
    print(f"lines of code                  {size['code']:,}, limit {MOST_LINES_OF_CODE:,}")
    print(f"median lines                   {median(lengths.values()):.0f}")
    print(
        f"longest                        {lengths[longest]}, limit {MOST_LINES_OF_A_MODULE} "
        f"({longest.relative_to(PACKAGE)})"
    )
    print(f"imports inside functions       {len(statements)}, of cachescope itself {len(own)}")
    found = circles(edges(paths))
    print(
        f"circles of imports             {len(found)}, of {', '.join(str(len(c)) for c in found) or 'none'}"
    )
    for circle in found:
        rooms = sorted({module.split(".")[1] for module in circle if "." in module})
        print(f"                               {len(circle)} modules in {', '.join(rooms)}")


if __name__ == "__main__":
    main()
