"""The globals that torch itself writes into entries of each kind, and how dangerous any other one is.

The list is data, `known_globals.json`, made by ``tests/data/make_known_globals.py`` from recordings and from torch's
sources, with the source of each name. A global that is not in it is not known to be safe, whatever its name.
"""

from __future__ import annotations

import json
import re
import sys
from functools import cache
from importlib.resources import files
from typing import Final

from cachescope.auditing.pickle_effects import Global
from cachescope.terms import AOT_COMPILE, AOTAUTOGRAD, FXGRAPH, PGO, PRECOMPILE, VLLM_AOT

VERSIONED: Final = "versioned"
"""Pickles after a header of four bytes: memoized results and torch's general on-disk caches."""
TORCH_SAVE: Final = "torch_save"
"""Data of ``torch.save``, such as the storage of a tensor in an entry."""
ANY: Final = "pickle"
"""A pickle in an unknown place."""

_GROUPS: Final = {
    FXGRAPH: ("common", FXGRAPH, "tensors"),
    AOTAUTOGRAD: ("common", AOTAUTOGRAD, FXGRAPH, "tensors", "symbols"),
    PGO: ("common", PGO),
    PRECOMPILE: ("common", PRECOMPILE, AOTAUTOGRAD, FXGRAPH, "tensors", "symbols"),
    AOT_COMPILE: ("common", AOT_COMPILE, PRECOMPILE, AOTAUTOGRAD, FXGRAPH, "tensors", "symbols"),
    VLLM_AOT: ("common", AOT_COMPILE, PRECOMPILE, AOTAUTOGRAD, FXGRAPH, "tensors", "symbols"),
    VERSIONED: ("common", VERSIONED),
    TORCH_SAVE: ("common", "tensors"),
    ANY: ("common",),
}
# Classes whose members are pickled by name: enums (Python 3.11), and classes for building and reading guards.
_MEMBERS: Final = {
    ("torch._functorch._aot_autograd.schemas", "MutationType"): r"[A-Z_]+",
    ("torch._functorch._aot_autograd.schemas", "OutputType"): r"[a-z_]+",
    ("torch._dynamo.source", "TensorProperty"): r"[A-Z_]+",
    ("torch._guards", "GuardSource"): r"[A-Z_]+",
    ("torch._dynamo.guards", "GuardBuilder"): r"[A-Z_]+",
    ("torch._dynamo.guards", "GuardsStatePickler"): r"_unpickle_tensor",
    (
        "torch._dynamo.aot_compile_types",
        "BundledAOTAutogradSerializableCallable",
    ): r"deserialize_compile_artifacts",
    ("vllm.compilation.caching", "VllmSerializableFunction"): r"deserialize_compile_artifacts",
}
# A view of a tensor is rebuilt by one class for each operator (torch/csrc/functionalization/Module.cpp).
_VIEWS: Final = "torch._C._functionalization"
_VIEW: Final = re.compile(r"\w+_ViewMeta", re.ASCII)
_PLAIN: Final = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*", re.ASCII)
# Modules of the standard library that only hold values. All others can be used to run code.
_VALUES_ONLY: Final = frozenset(
    "array dataclasses datetime decimal enum fractions ipaddress math numbers pathlib traceback uuid zoneinfo".split()  # noqa: SIM905
)
# Python 2's names, which unpicklers still translate, and packages that install or run other code.
_ALSO: Final = frozenset(
    "__builtin__ __main__ commands copy_reg distutils dl exceptions imp IPython joblib cloudpickle dill nose numexpr "  # noqa: SIM905
    "pexpect pip pkg_resources psutil py _pytest pytest setuptools sh torch_xla urllib2 UserDict".split()
)
# Words in the module or the name of any package which show that something is loaded or run.
_MODULES_THAT_RUN: Final = re.compile(
    r"(?:^|\.)(?:hub|cpp_extension|subproc\w*|compile_worker|__\w+__|shell|exec\w*)(?:\.|$)"
)
_RUNS: Final = re.compile(
    r"(?:^|[._])(?:system|popen|exec\w*|eval|spawn\w*|subproc\w*|shell|load|loads|load_\w+|import\w*|compile|call|run|"
    r"runstring|hub|apply|__\w+__|attrgetter|methodcaller|partial|reduce|open|write\w*|unlink|remove|rmtree)(?:$|[._])"
)


@cache
def _listed() -> dict[str, frozenset[tuple[str, str]]]:
    groups = json.loads(files("cachescope.auditing").joinpath("known_globals.json").read_text())
    return {
        group: frozenset((module, name) for module, names in modules.items() for name in names)
        for group, modules in groups.items()
    }


@cache
def _known() -> dict[str, frozenset[tuple[str, str]]]:
    flat = _listed()
    return {kind: frozenset().union(*(flat[group] for group in named)) for kind, named in _GROUPS.items()}


def is_known(kind: str, found: Global) -> bool:
    """Whether torch itself writes a global into entries of a kind."""
    if kind in (AOTAUTOGRAD, PRECOMPILE) and found.module == _VIEWS and _VIEW.fullmatch(found.name):
        return True
    return _is_in(_known()[kind], found)


def _is_in(names: frozenset[tuple[str, str]], found: Global) -> bool:
    if (found.module, found.name) in names:
        return True
    owner, _, member = found.name.rpartition(".")
    pattern = _MEMBERS.get((found.module, owner))
    return (
        pattern is not None and (found.module, owner) in names and re.fullmatch(pattern, member) is not None
    )


def is_of_graphs(kind: str, found: Global) -> bool:
    """Whether vLLM itself writes a global into its compiled models, for their graphs and symbols.

    It needs them, and they are not known to be safe: a graph names what it calls (``torch/fx/_graph_pickler.py``), and sympy
    takes a text for Python.
    """
    return kind == VLLM_AOT and _is_in(_listed()[VLLM_AOT], found)


def is_dangerous(kind: str, found: Global) -> bool:
    """Whether an unknown global can be used to run code, judged by its name; a compiled function may need its program's own."""
    if not _PLAIN.fullmatch(found.module) or not _PLAIN.fullmatch(found.name):
        return True
    package = found.module.partition(".")[0]
    is_own = kind == AOT_COMPILE and found.module == "__main__"
    if not is_own and (
        package in _ALSO
        or (package in sys.stdlib_module_names and package not in _VALUES_ONLY)
        or _MODULES_THAT_RUN.search(found.module)
    ):
        return True
    # A dotted name can lead from one module into another: torch._inductor.codecache + os.system.
    if "." in found.name or _RUNS.search(found.name):
        return True
    return found.name in sys.stdlib_module_names
