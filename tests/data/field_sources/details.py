"""The attributes of torch's hash details, and the parts of those that are dicts, read off its source."""

import ast
from collections.abc import Iterator

from field_sources.sources import Sources

CODECACHE = "torch/_inductor/codecache.py"
_CLASSES = (
    (CODECACHE, "FxGraphHashDetails"),
    ("torch/_functorch/_aot_autograd/autograd_cache.py", "AOTAutogradCacheDetails"),
)
_SYSTEM_PARTS = ("device", "version", "device_interfaces", "hash")


def detail_attributes(sources: Sources) -> list[str]:
    """Attributes that the details of either cache set on themselves; every one of them is hashed."""
    found: dict[str, None] = {}
    for path, name in _CLASSES:
        for node in ast.walk(_definition(sources, path, name)):
            for target in _assigned(node):
                if isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self":
                    found.setdefault(target.attr)
    return list(found)


def graph_arguments(sources: Sources) -> dict[str, bool]:
    """Names in ``fx_kwargs``, and whether the key holds them (``EXCLUDED_KWARGS`` of ``FxGraphHashDetails``)."""
    excluded = _excluded_arguments(sources)
    return {name: name not in excluded for name in _graph_arguments(sources)}


def _graph_arguments(sources: Sources) -> list[str]:
    """``_CompileFxKwargs`` of ``torch/_inductor/compile_fx.py``; ``graph_kwargs`` before 2.6."""
    path = "torch/_inductor/compile_fx.py"
    for node in ast.walk(ast.parse(sources.texts[path])):
        match node:
            case ast.ClassDef(name="_CompileFxKwargs", body=body):
                return [
                    ast.unparse(line.target)
                    for line in body
                    if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)
                ]
            case ast.Assign(targets=[ast.Name(id="graph_kwargs")], value=ast.Dict(keys=keys)):
                return [ast.literal_eval(key) for key in keys if key is not None]
    raise AssertionError(f"{path} of {sources.version} has no list of the arguments of a graph")


def _excluded_arguments(sources: Sources) -> list[str]:
    for node in _definition(sources, *_CLASSES[0]).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "EXCLUDED_KWARGS":
            return list(ast.literal_eval(node.value))
    raise AssertionError(f"FxGraphHashDetails of {sources.version} has no EXCLUDED_KWARGS")


def system_parts(sources: Sources) -> list[str]:
    """Parts of ``system_info`` (``CacheBase.get_system``)."""
    tree = ast.parse(sources.texts[CODECACHE])
    (function,) = (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == "get_system")
    texts = {node.value for node in ast.walk(function) if isinstance(node, ast.Constant)}
    return [part for part in _SYSTEM_PARTS if part in texts]


def ignored_prefixes(sources: Sources) -> tuple[str, ...]:
    """Prefixes of Inductor options that no key holds.

    Notes
    -----
    ``save_config_portable`` of ``torch/utils/_config_module.py`` leaves out what ``_cache_config_ignore_prefix`` of
    ``torch/_inductor/config.py`` lists, and private options unless called with ``ignore_private_configs=False``
    (2.8 and later).
    """
    listed: list[str] = []
    for node in ast.parse(sources.texts["torch/_inductor/config.py"]).body:
        for target in _assigned(node):
            if ast.unparse(target) == "_cache_config_ignore_prefix":
                assert isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None
                listed = ast.literal_eval(node.value)
    keeps_private = "ignore_private_configs=False" in sources.texts[CODECACHE]
    return (*listed, *(() if keeps_private else ("_",)))


def mode_options(sources: Sources) -> dict[str, list[str]]:
    """Modes of ``torch.compile`` that set an option (``list_mode_options`` of ``torch/_inductor/__init__.py``)."""
    tree = ast.parse(sources.texts["torch/_inductor/__init__.py"])
    found: dict[str, list[str]] = {}
    for node in ast.walk(tree):
        for target in _assigned(node):
            if ast.unparse(target) == "mode_options":
                assert isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Dict)
                for mode, options in zip(node.value.keys, node.value.values, strict=True):
                    for name in _keys(options):
                        found.setdefault(name, []).append(ast.literal_eval(mode or ast.Constant("")))
    return found


def _keys(options: ast.expr) -> Iterator[str]:
    if isinstance(options, ast.Dict):
        for key in options.keys:
            if isinstance(key, ast.Constant):
                yield str(key.value)


def _definition(sources: Sources, path: str, name: str) -> ast.ClassDef:
    for node in ast.parse(sources.texts[path]).body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            return node
    raise AssertionError(f"{path} of {sources.version} has no {name}")


def _assigned(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Assign):
        return node.targets
    return [node.target] if isinstance(node, ast.AnnAssign) else []
