"""Where torch's sources refuse to cache: the messages of its two bypass exceptions, and the operators that it does cache."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from field_sources.sources import Sources

HOLE = "…"
# torch/_inductor/codecache.py and torch/_functorch/_aot_autograd/autograd_cache.py.
EXCEPTIONS = {"BypassFxGraphCache": "fxgraph", "BypassAOTAutogradCache": "aotautograd"}
# From 2.13 on: `CacheabilityValidator.bypass(reason)` raises BypassFxGraphCache(reason).
_HELPER = "bypass"
# These only pass on the message of another site.
_PASSED_ON = frozenset(
    {
        "CacheabilityValidator.bypass",
        "AOTAutogradCacheDetails.__init__",
        "AOTAutogradCacheDetails._init_fx_graph_hash_details",
    }
)


@dataclass(frozen=True)
class Site:
    """One place that raises: which cache it is of, the message with holes, the file and the function."""

    cache: str
    message: str
    file: str
    function: str


def sites(sources: Sources) -> list[Site]:
    """Every place that raises a bypass with a message of its own, or none at all."""
    return [
        site
        for file, text in sources.texts.items()
        if any(name in text for name in EXCEPTIONS) or "CacheabilityValidator" in text
        for site in _sites_in(file, ast.parse(text), ())
    ]


def passes_reasons_on(sources: Sources) -> bool:
    """Whether the AOTAutograd cache gives the reason of the FX graph cache as its own; up to 2.7 it gives none."""
    name = "torch/_functorch/_aot_autograd/autograd_cache.py"
    return "raise BypassAOTAutogradCache(str(e)) from e" in sources.texts.get(name, "")


def cacheable_operators(sources: Sources) -> dict[str, bool]:
    """The higher-order operators that say whether torch caches a graph with them; of the others it caches none."""
    found: dict[str, bool] = {}
    for text in sources.texts.values():
        if "HigherOrderOperator" not in text:
            continue
        for call in ast.walk(ast.parse(text)):
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "super().__init__":
                told = [ast.unparse(k.value) for k in call.keywords if k.arg == "cacheable"]
                if told and isinstance(call.args[0], ast.Constant):
                    found[str(call.args[0].value)] = told == ["True"]
    return found


def _sites_in(file: str, node: ast.AST, names: tuple[str, ...]) -> Iterator[Site]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        names = (*names, node.name)
    found = _raised(node)
    if found is not None:
        cache, message = found
        function = ".".join(names)
        if message != HOLE:
            yield Site(cache, message, file, function)
        elif function not in _PASSED_ON:
            raise SystemExit(
                f"{file}, {function}: a message that is not written there; say in sites.py what it passes on"
            )
    for child in ast.iter_child_nodes(node):
        yield from _sites_in(file, child, names)


def _raised(node: ast.AST) -> tuple[str, str] | None:
    """The cache and the message of a bypass, if this is one."""
    if isinstance(node, ast.Raise) and node.exc is not None:
        call = node.exc
        name = _last_name(call.func if isinstance(call, ast.Call) else call)
        if name in EXCEPTIONS:
            return EXCEPTIONS[name], _message(call)
    if isinstance(node, ast.Call) and _last_name(node.func) == _HELPER and node.args:
        return "fxgraph", _message(node)
    return None


def _last_name(node: ast.expr) -> str:
    return ast.unparse(node).rsplit(".", 1)[-1]


def _message(call: ast.expr) -> str:
    return _text(call.args[0]) if isinstance(call, ast.Call) and call.args else ""


def _text(node: ast.expr) -> str:
    """A text of a program, with a hole for what is put in."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(map(_text, node.values))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _text(node.left) + _text(node.right)
    return HOLE
