"""What torch itself does in the pickles of each kind: the globals that it names, how it calls them, and with what.

The table is data, `known_globals.json`, made by ``tests/data/make_known_globals.py`` from recordings and from torch's
sources, with the source of each name. What is not in it is not proven, whatever its name.
"""

from __future__ import annotations

import json
import re
import sys
from functools import cache
from importlib.resources import files
from typing import Final

from cachescope.readers.pickles.pickle_calls import Call, Global
from cachescope.terms import AOT_COMPILE, AOTAUTOGRAD, FXGRAPH, PGO, PRECOMPILE, VLLM_AOT

VERSIONED: Final = "versioned"
"""Pickles after a header of four bytes: memoized results and torch's general on-disk caches."""
TORCH_SAVE: Final = "torch_save"  # such as the storage of a tensor in an entry
ANY: Final = "pickle"  # in an unknown place

_GROUPS: Final = {
    FXGRAPH: ("common", FXGRAPH, "tensors", "kernels", "symbols"),
    AOTAUTOGRAD: ("common", AOTAUTOGRAD, FXGRAPH, "tensors", "kernels", "symbols"),
    PGO: ("common", PGO),
    PRECOMPILE: ("common", PRECOMPILE, AOTAUTOGRAD, FXGRAPH, "tensors", "kernels", "symbols"),
    AOT_COMPILE: ("common", AOT_COMPILE, PRECOMPILE, AOTAUTOGRAD, FXGRAPH, "tensors", "kernels", "symbols"),
    VLLM_AOT: (
        "common", VLLM_AOT, AOT_COMPILE, PRECOMPILE, AOTAUTOGRAD, FXGRAPH, "tensors", "kernels", "symbols",
    ),
    VERSIONED: ("common", VERSIONED),
    TORCH_SAVE: ("common", "tensors"),
    ANY: ("common",),
}  # fmt: skip
# Classes whose members are pickled by name: enums (Python 3.11), and classes for building and reading guards.
_MEMBERS: Final = {
    "torch._functorch._aot_autograd.schemas.MutationType": r"[A-Z_]+",
    "torch._functorch._aot_autograd.schemas.OutputType": r"[a-z_]+",
    "torch._dynamo.source.TensorProperty": r"[A-Z_]+",
    "torch._guards.GuardSource": r"[A-Z_]+",
    "torch._dynamo.guards.GuardBuilder": r"[A-Z_]+",
}
# A view of a tensor is rebuilt by one class for each operator (torch/csrc/functionalization/Module.cpp).
_VIEW: Final = re.compile(r"torch\._C\._functionalization\.\w+_ViewMeta", re.ASCII)
# Guards of whole programs keep their models, of which torch's own modules are parts.
_MODEL: Final = re.compile(r"torch\.nn\.modules\.[a-z]\w*\.[A-Z]\w*", re.ASCII)
_WITH_MODELS: Final = frozenset({PRECOMPILE, AOT_COMPILE, VLLM_AOT})
_PLAIN: Final = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*", re.ASCII)
# Packages that come with Python or with torch, and Python 2's names, which unpicklers still translate: none is a user's own.
_NOT_OWN: Final = frozenset(sys.stdlib_module_names) - {"__main__"} | frozenset(
    "torch torchgen functorch triton sympy mpmath numpy networkx jinja2 markupsafe fsspec filelock typing_extensions vllm "  # noqa: SIM905
    "setuptools pkg_resources pip __builtin__ __builtins__ commands copy_reg dl exceptions imp distutils IPython joblib "
    "cloudpickle dill nose numexpr pexpect psutil py _pytest pytest sh torch_xla UserDict urllib2 UserList UserString "
    "Queue SocketServer cPickle cStringIO StringIO httplib".split()
)


@cache
def _known() -> dict[str, dict[str, dict[str, frozenset[str]]]]:
    """By kind and global, and by how it is called, the letters of what it may be given."""
    groups = json.loads(files("cachescope.auditing").joinpath("known_globals.json").read_text())
    known: dict[str, dict[str, dict[str, frozenset[str]]]] = {}
    for kind, named in _GROUPS.items():
        found = known.setdefault(kind, {})
        for group in named:
            for module, names in groups.get(group, {}).items():
                for name, (forms, _) in names.items():
                    allowed = found.setdefault(f"{module}.{name}", {})
                    for form in forms:
                        how, _, letters = form.partition(" ")
                        allowed[how] = allowed.get(how, frozenset()) | frozenset(letters)
    return known


def _of_a_pattern(kind: str, name: str) -> bool:
    is_view = AOTAUTOGRAD in _GROUPS[kind] and _VIEW.fullmatch(name) is not None
    return is_view or (kind in _WITH_MODELS and _MODEL.fullmatch(name) is not None)


def is_known(kind: str, found: Global) -> bool:
    """Whether torch itself names a global in pickles of a kind."""
    known, name = _known()[kind], str(found)
    if name in known or _of_a_pattern(kind, name):
        return True
    owner, _, member = name.rpartition(".")
    pattern = _MEMBERS.get(owner)
    return pattern is not None and owner in known and re.fullmatch(pattern, member) is not None


def is_known_call(kind: str, call: Call) -> bool:
    """Whether torch itself uses a global so, with nothing else than this, in pickles of a kind."""
    if _of_a_pattern(kind, str(call.target)):
        return call[1:] in (("call", ""), ("build", "d"), ("build", "t"))
    allowed = _known()[kind].get(str(call.target), {}).get(call.how)
    return allowed is not None and allowed.issuperset(call.letters)


def is_own(found: Global) -> bool:
    """Whether a global may be the user's own: of a package that neither Python nor torch brings."""
    package = found.module.partition(".")[0]
    is_plain = _PLAIN.fullmatch(found.module) is not None and _PLAIN.fullmatch(found.name) is not None
    return is_plain and package not in _NOT_OWN
