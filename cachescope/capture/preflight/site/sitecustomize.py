"""Python imports this at its start where `record` or `preflight` put its folder first.

In a pre-flight it begins one in this process. In a recording it keeps, when the process ends, what torch says of it beside its
trace. In both, what torch logs of its caches goes only to its log. The user's own ``sitecustomize`` runs then, as if this were not there. cachescope itself need not be installed: the
modules that are needed are loaded from beside this file, and its name stays free. Every Python process waits for this one, so it
imports little.
"""

from __future__ import annotations

import atexit
import os
import sys
from importlib import import_module
from types import ModuleType, SimpleNamespace
from typing import Any

# Loaded where the program's Python need not have cachescope.
_PATCHES = "cachescope.capture.preflight.patches"
_CONTEXTS = "cachescope.capture.contexts"
# Those of `cachescope.terms.LOGGERS`.
_LOGGERS = ("torch._inductor.codecache", "torch._functorch._aot_autograd.autograd_cache")
_HERE = os.path.dirname(os.path.abspath(__file__))


def _loaded(module: str) -> ModuleType:
    """A module of the cachescope that this file is of."""
    capture = os.path.dirname(os.path.dirname(_HERE))
    before = {
        name: sys.modules.pop(name) for name in [*sys.modules] if name.partition(".")[0] == "cachescope"
    }
    for name, folder in (("cachescope", os.path.dirname(capture)), ("cachescope.capture", capture)):
        # In place of the package, whose own imports are not wanted here.
        package = ModuleType(name)
        package.__path__ = [folder]
        sys.modules[name] = package
    try:
        return import_module(module)
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "cachescope"]:
            del sys.modules[name]
        sys.modules.update(before)


def _begin_preflight() -> None:
    patches = _loaded(_PATCHES)
    patches.children.begin()
    patches.Patches().start()
    patches.skipped_work.end_quickly()


def _keep_off_the_terminal() -> None:
    """From when torch is imported, print no record of its caches that is in its log anyway: 100 kB of text for every lookup."""

    def find_spec(name: str, *_: object) -> None:
        if name != "torch":
            return
        import logging

        handled = logging.Handler.handle

        def handle(handler: Any, record: logging.LogRecord) -> Any:
            # That of torch/_logging/_internal.py, up to 2.13 and from 2.14 on. Without the log, torch would print warnings and errors, too.
            is_of_torch = type(handler).__name__ in ("StreamHandler", "_StderrHandler")
            if not is_of_torch or record.levelno > logging.INFO or record.name not in _LOGGERS:
                return handled(handler, record)
            return False

        logging.Handler.handle = handle  # type: ignore[assignment, method-assign]

    finder: Any = SimpleNamespace(find_spec=find_spec)
    sys.meta_path.insert(0, finder)


def _keep_context(folder: str) -> None:
    """Keep the context of this process when it ends, if it made a key; say nothing, and change nothing, whatever happens."""
    inherited = 0

    def end() -> None:
        nonlocal inherited
        if _keys_made() <= inherited:
            return
        inherited = sys.maxsize
        try:
            _loaded(_CONTEXTS).write_last_snapshot(folder)
        except BaseException:  # Ctrl-C too: the process ends
            return

    def in_child() -> None:
        nonlocal inherited
        inherited = _keys_made()
        if util := sys.modules.get("multiprocessing.util"):
            # It forgets what it inherited, and does not come to the end of Python.
            util.register_after_fork(end, lambda _: util.Finalize(None, end, exitpriority=0))

    atexit.register(end)
    os.register_at_fork(after_in_child=in_child)


def _keys_made() -> int:
    """How many keys this process made: for each, torch asks for the system (torch/_inductor/codecache.py, 2.6 to 2.15)."""
    cache = getattr(sys.modules.get("torch._inductor.codecache"), "CacheBase", None)
    asked = getattr(getattr(cache, "get_system", None), "cache_info", None)
    # Hits and misses of the function's own cache.
    return 0 if asked is None else sum(asked()[:2])


def _run_the_users_own() -> None:
    sys.path[:] = [place for place in sys.path if os.path.abspath(place) != _HERE]
    this = sys.modules.pop(__name__)
    try:
        import_module(__name__)
    except ModuleNotFoundError as error:
        if error.name != __name__:
            raise
        sys.modules[__name__] = this


if "CACHESCOPE_PREFLIGHT" in os.environ:
    _keep_off_the_terminal()
    _begin_preflight()
elif "TORCH_TRACE" in os.environ:
    _keep_off_the_terminal()
    _keep_context(os.environ["TORCH_TRACE"])
_run_the_users_own()
