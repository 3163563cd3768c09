"""Python imports this at its start where a pre-flight put its folder first: it begins the pre-flight in this process.

The user's own ``sitecustomize`` runs then, as if this were not there. cachescope itself need not be installed: the
modules that are needed are loaded from beside this file, and its name stays free.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from types import ModuleType

# Loaded where the program's Python need not have cachescope.
_PATCHES = "cachescope.capture.preflight.patches"
_HERE = os.path.dirname(os.path.abspath(__file__))


def _begin() -> None:
    capture = os.path.dirname(os.path.dirname(_HERE))
    for name, folder in (("cachescope", os.path.dirname(capture)), ("cachescope.capture", capture)):
        # In place of the package, whose own imports are not wanted here.
        package = ModuleType(name)
        package.__path__ = [folder]
        sys.modules[name] = package
    try:
        patches = import_module(_PATCHES)
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "cachescope"]:
            del sys.modules[name]
    if patches.children.VARIABLE in os.environ:
        patches.children.begin()
        patches.Patches().start()
        patches.skipped_work.end_quickly()


def _run_the_users_own() -> None:
    sys.path[:] = [place for place in sys.path if os.path.abspath(place) != _HERE]
    # Not importlib.util.find_spec, which would find this very module.
    spec = PathFinder.find_spec("sitecustomize")
    if spec is not None and spec.loader is not None:
        module = module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


_begin()
_run_the_users_own()
