"""Python imports this at its start where a pre-flight put its folder first: it begins the pre-flight in this process.

The user's own ``sitecustomize`` runs then, as if this were not there.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from importlib.machinery import PathFinder

_HERE = os.path.dirname(os.path.abspath(__file__))


def _begin() -> None:
    folder = os.path.dirname(_HERE)
    spec = importlib.util.spec_from_file_location(
        "_cachescope_preflight", os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
    )
    assert spec is not None and spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = package
    spec.loader.exec_module(package)
    importlib.import_module(f"{spec.name}.patches").Patches().start()


def _run_the_users_own() -> None:
    sys.path[:] = [place for place in sys.path if os.path.abspath(place) != _HERE]
    # Not importlib.util.find_spec, which would find this very module.
    spec = PathFinder.find_spec("sitecustomize")
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


_begin()
_run_the_users_own()
