"""Which modules of torch read which option of a config module, by following the names they import it under."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

from field_sources.sources import Sources

# Shorter constant parts of a name made up at run time would match anything.
_TELLING = 4


def options_read(sources: Sources, config: str, options: Iterable[str]) -> dict[str, list[str]]:
    """Modules that read each option of the module ``config`` (``torch._inductor.config``), in order.

    Notes
    -----
    A read is ``config.<name>`` that is not assigned to, under whatever name the module was imported, also of a
    sub-config kept in a variable, through ``getattr`` with a name or an f-string, or by way of a function of
    the config module itself.
    """
    known = set(options)
    if not known:
        return {}
    functions = _functions(sources, config, known)
    found: dict[str, set[str]] = defaultdict(set)
    for path, text in sources.texts.items():
        module = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        if module == config or not _may_use(module, text, config.rpartition(".")[2]):
            continue
        for name in _Reads(module, path.endswith("__init__.py"), config, known, functions).of(
            ast.parse(text)
        ):
            found[name].add(module)
    return {name: sorted(found[name]) for name in sorted(found)}


def _may_use(module: str, text: str, config: str) -> bool:
    return config in text and (module.startswith("torch._inductor") or "_inductor" in text)


def _functions(sources: Sources, config: str, known: set[str]) -> dict[str, set[str]]:
    """Options that each function of the config module reads."""
    tree = ast.parse(sources.texts[config.replace(".", "/") + ".py"])
    found: dict[str, set[str]] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            parts = {id(n.value) for n in ast.walk(node) if isinstance(n, ast.Attribute)}
            # A sub-config that is handed on as a whole is read as a whole.
            whole = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and id(n) not in parts}
            named = whole | {ast.unparse(n) for n in ast.walk(node) if isinstance(n, ast.Attribute)}
            found[node.name] = {o for o in known if o in named or o.rpartition(".")[0] in whole}
    return found


class _Reads:
    """The reads of one module."""

    def __init__(
        self, module: str, is_package: bool, config: str, known: set[str], functions: dict[str, set[str]]
    ) -> None:
        self._package = module if is_package else module.rpartition(".")[0]
        self._prefix = config + "."
        self._known = known
        self._functions = functions
        self._names: dict[str, set[str]] = defaultdict(set)
        self._names["torch"].add("torch")
        self._texts: set[str] = set()

    def of(self, tree: ast.Module) -> set[str]:
        """Options read anywhere in the module."""
        nodes = list(ast.walk(tree))
        self._texts = {n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)}
        for node in nodes:
            self._note_import(node)
        for node in nodes:
            self._note_variable(node)
        found: set[str] = set()
        for node in nodes:
            for path in self._paths(node):
                found |= self._options(path)
        return found

    def _note_import(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.asname:
                    self._names[alias.asname].add(alias.name)
        elif isinstance(node, ast.ImportFrom):
            base = self._base(node)
            for alias in node.names:
                self._names[alias.asname or alias.name].add(f"{base}.{alias.name}")

    def _base(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        parts = self._package.split(".")
        kept = parts[: len(parts) - node.level + 1]
        return ".".join([*kept, node.module] if node.module else kept)

    def _note_variable(self, node: ast.AST) -> None:
        """``dist_opts = config.aten_distributed_optimizations`` gives a part of the config another name."""
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Attribute | ast.Name):
            paths = [p for p in self._chain(node.value) if (p + ".").startswith(self._prefix)]
            for target in node.targets:
                if isinstance(target, ast.Name):
                    self._names[target.id].update(p for p in paths if self._is_part(p))

    def _is_part(self, path: str) -> bool:
        name = (path + ".").removeprefix(self._prefix)
        return any(option.startswith(name) for option in self._known)

    def _paths(self, node: ast.AST) -> Iterator[str]:
        """Dotted paths that a node reads; a ``*`` stands for what only the run knows."""
        match node:
            case ast.Attribute(ctx=ast.Load()) | ast.Name(ctx=ast.Load()):
                yield from self._chain(node)
            case ast.Call(func=ast.Name(id="getattr"), args=[owner, name, *_]):
                for path in self._chain(owner):
                    yield from (f"{path}.{part}" for part in self._attribute(path, name))

    def _chain(self, node: ast.AST) -> list[str]:
        if isinstance(node, ast.Attribute):
            return [f"{path}.{node.attr}" for path in self._chain(node.value)]
        if isinstance(node, ast.Name):
            return sorted(self._names.get(node.id, ()))
        return []

    def _options(self, path: str) -> set[str]:
        if not path.startswith(self._prefix):
            return set()
        name = path.removeprefix(self._prefix)
        if name in self._functions:
            return self._functions[name]
        if "*" in name:
            pattern = re.compile(re.escape(name).replace(r"\*", r"\w*"))
            return {option for option in self._known if pattern.fullmatch(option)}
        return {name} & self._known

    def _attribute(self, path: str, node: ast.AST) -> Iterable[str]:
        match node:
            case ast.Constant(value=str(name)):
                return [name]
            case ast.JoinedStr(values=parts):
                texts = [part.value if isinstance(part, ast.Constant) else "*" for part in parts]
                name = "".join(str(text) for text in texts)
                return [name] if len(name.replace("*", "")) >= _TELLING else []
        # Which option of a sub-config is only known as it runs: their names stand somewhere in the module.
        return self._texts if path.startswith(self._prefix) else []
