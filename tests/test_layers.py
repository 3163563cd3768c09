"""The arrows of the design: a module imports only from its own layer and from those above it in this list."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "cachescope"
LAYERS = (
    ("errors", "terms", "columns", "wording", "catalogue", "frames", "details", "component_sets"),
    ("keys",),
    ("readers",),
    ("capture",),
    ("analysis",),
    ("auditing",),
    ("devices",),
    ("figures",),
    ("report",),
    ("views",),
    ("samples",),
    ("scope",),
    ("cli", "__main__"),
)
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
# Who may import what from outside, beside the standard library and the core dependencies.
ONLY_IN = {
    "torch": {"capture"},
    "triton": {"capture"},
    "plotly": {"figures", "views"},
    "ipywidgets": {"views"},
    "anywidget": {"views"},
    # The cell magic gives a Scope, so it lives with it; it imports IPython when a cell is run.
    "IPython": {"views", "capture", "scope"},
    "rich": {"report", "cli"},
}
MODULES = sorted(PACKAGE.rglob("*.py"))


def layer_of(path: Path) -> str:
    part = path.relative_to(PACKAGE).parts[0]
    return part.removesuffix(".py")


def imports_of(tree: ast.AST) -> set[str]:
    """Imported modules, but for those that only a type checker imports."""
    only_typed = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.dump(block.test)
        for node in ast.walk(block)
    }
    found: set[str] = set()
    for node in ast.walk(tree):
        if id(node) in only_typed:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_up_the_list_of_layers(path: Path) -> None:
    layer = layer_of(path)
    if path == PACKAGE / "__init__.py":
        return
    for name in imports_of(ast.parse(path.read_text())):
        parts = name.split(".")
        if parts[0] == "cachescope" and parts[1] in LEVEL:
            assert LEVEL[parts[1]] <= LEVEL[layer], f"{layer} imports {name}"
        assert layer in ONLY_IN.get(parts[0], {layer}), f"{layer} imports {parts[0]}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_nothing_unpickles_or_evaluates(path: Path) -> None:
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        assert called not in {"eval", "exec", "compile", "__import__", "os.system"}, called
        assert not called.startswith(("pickle.load", "marshal.", "shelve.")), called


def test_every_layer_is_in_the_list() -> None:
    found = {layer_of(path) for path in MODULES} - {"__init__"}
    assert found <= set(LEVEL)


def test_import_loads_nothing_heavy() -> None:
    code = "import cachescope, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in done.stdout.split()}
    assert loaded & {"torch", "plotly", "ipywidgets", "IPython", "anywidget", "rich"} == set()
    assert "cachescope" in loaded


def test_reading_loads_no_torch() -> None:
    code = (
        "import cachescope, sys; s = cachescope.read(cachescope.sample('config_flip')); repr(s); s.explain();"
        " s._repr_html_(); print('torch' in sys.modules, len(s.lookups))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "6"]
