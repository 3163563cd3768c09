"""The modules below a folder are those that torch's own walk finds, in its order: its key is a hash of them."""

import os
import pkgutil
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachescope.capture.torch_manifest import modules_below

SUFFIXES = (".py", ".pyc", ".so", str(sysconfig.get_config_var("EXT_SUFFIX")), ".abi3.so", ".pyi", ".txt", "")
STEMS = ("a", "b", "B", "__init__", "a.b", "ä", "", "__main__", "_", "a-b")


def walked_by_torch(roots: Iterable[str], prefix: str) -> Iterator[tuple[str, str]]:
    """As ``build_code_hash`` (torch/_inductor/codecache.py, 2.4 to 2.15)."""
    for module in sorted(pkgutil.iter_modules(roots, prefix), key=lambda one: one.name):
        finder: Any = module.module_finder
        spec = finder.find_spec(module.name, None)
        yield spec.name, spec.origin
        if module.ispkg:
            yield from walked_by_torch(spec.submodule_search_locations, f"{spec.name}.")


# Of a folder that is called as a module's file torch finds no module, and stops.
folders = st.sampled_from(STEMS).filter(bool)
files = st.tuples(st.sampled_from(STEMS), st.sampled_from(SUFFIXES)).map("".join).filter(bool)
empty = st.dictionaries(files, st.none(), max_size=8)
trees = st.recursive(
    empty,
    lambda inner: st.tuples(st.dictionaries(folders, inner, max_size=4), empty).map(
        lambda two: two[1] | two[0]
    ),
    max_leaves=10,
)


@pytest.mark.slow
@given(tree=trees)
def test_modules_of_any_tree_are_found_as_by_torch(tmp_path_factory: Any, tree: dict[str, Any]) -> None:
    root = tmp_path_factory.mktemp("modules")
    made(root, tree)
    assert list(modules_below(str(root), "t.")) == list(walked_by_torch([str(root)], "t."))


def made(folder: Path, tree: dict[str, Any]) -> None:
    """A tree of empty files, and folders."""
    for name, inner in tree.items():
        if inner is None:
            (folder / name).touch()
        else:
            (folder / name).mkdir()
            made(folder / name, inner)


def test_links_are_followed_and_what_leads_nowhere_is_no_module(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "package").mkdir(parents=True)
    (root / "package" / "__init__.py").touch()
    os.symlink(root / "package", root / "other")
    os.symlink(root / "package" / "__init__.py", root / "one.py")
    os.symlink(root / "gone.py", root / "lost.so")
    (root / "lost.py").touch()
    found = [name for name, _ in modules_below(str(root), "")]
    walked = [one for one, _ in walked_by_torch([str(root)], "")]
    assert found == walked == ["lost", "one", "other", "package"]
