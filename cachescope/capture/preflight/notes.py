"""Notes in the trace of a pre-flight: what it is, and what no record of torch says of a lookup.

A note is an artifact of torch's own trace, so it stands between the records of the lookup that it is about. The cache is
never asked: neither a local nor a remote one, and nothing is stored.
"""

from __future__ import annotations

import copy
import json
import os
import pickle
import platform
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from cachescope.capture.key_fields import functorch_config
from cachescope.capture.preflight.cache_folder import OWN_FOLDER, meant_cache_dir, ours, show
from cachescope.capture.preflight.without_weights import keys_without_values
from cachescope.terms import LOGGERS

ARTIFACT: Final = "cachescope_preflight"
_CACHES: Final = {"FxGraphCache": "fxgraph", "AOTAutogradCache": "aotautograd"}
# Each process leaves its number in this folder of the pre-flight, so that the next know what lies there in a real run, too. Times
# would not do: a real run takes longer to compile.
_PROCESSES: Final = "processes"

TRACE_DIR: Final = "TORCH_TRACE"
LOG_NAME: Final = "torch.log"

_noted_processes: set[int] = set()
# The processes that had ended by then; a forked one says what the process did that it was forked from.
_earlier: list[int] = []
# Whether the program has read what torch counted of its caches, which is not what a real run counts.
_counts_read: list[bool] = []


def forget_process() -> None:
    """Say once more with the next note that this is a pre-flight: its trace is another one."""
    _noted_processes.clear()
    _counts_read.clear()


def note_process() -> None:
    """Say once of this process that it is a pre-flight."""
    if os.getpid() not in _noted_processes:
        _noted_processes.add(os.getpid())
        note(preflight=1)


def note(**values: Any) -> None:
    """Write one note, after that of the process."""
    note_process()
    from torch import _logging as logs

    payload = json.dumps(values)
    logs.trace_structured(
        "artifact", metadata_fn=lambda: {"name": ARTIFACT, "encoding": "json"}, payload_fn=lambda: payload
    )


def patch_codecache(module: Any, replace: Any) -> None:
    """Note each lookup of either cache, and what FX graphs would be stored (torch/_inductor/codecache.py)."""
    found_by_torch = module.GuardedCache.find_guarded_entry.__func__

    def find_guarded_entry(
        cls: Any, key: str, local: bool, remote_cache: Any, evaluate_guards: Any, hints: Any
    ) -> Any:
        note(lookup=_lookup_note(cls, key, local, remote_cache, hints))
        return found_by_torch(cls, key, False, None, evaluate_guards, hints)

    def save_graph(key: str, compiled: Any, example_inputs: Any, local: bool, remote_cache: Any) -> None:
        cache = module.FxGraphCache
        shape_env = cache._get_shape_env()
        symints = cache._filter_backed_symints(example_inputs)
        guards = shape_env.get_pruned_guards(symints)
        # An AOTAutograd entry that points to this one holds them too.
        compiled.guards_expr = shape_env.produce_guards_expression(placeholders=symints, guards=guards)
        note(stored=_stored_note("fxgraph", key, compiled.guards_expr, _why_not_written(compiled)))

    replace(module.GuardedCache, "find_guarded_entry", classmethod(find_guarded_entry))
    replace(module.FxGraphCache, "_save_graph", staticmethod(save_graph))


def logging_to(folder: str, environment: Mapping[str, str]) -> dict[str, str | None]:
    """The variables with which torch writes everything about its caches into a folder, beside what it is to log anyway; None is to be unset."""
    wanted = (environment.get("TORCH_LOGS", ""), LOGGERS)
    return {
        TRACE_DIR: folder,
        "TORCH_LOGS": ",".join(part for part in wanted if part.strip()),
        "TORCH_LOGS_OUT": os.path.join(folder, LOG_NAME),
        # In another format the lines of a record look like those of the program.
        "TORCH_LOGS_FORMAT": None,
    }


def patch_logging(module: Any, replace: Any) -> None:
    """Let torch write trace and log where the pre-flight wants them, and nowhere else (torch/_logging/_internal.py, `_init_logs`)."""
    begun_by_torch = module._init_logs

    def _init_logs(*args: Any, **kwargs: Any) -> None:
        wanted = logging_to(ours[TRACE_DIR], os.environ)
        before = {name: os.environ.get(name) for name in wanted}
        for name, value in wanted.items():
            show(name, value)
        try:
            begun_by_torch(*args, **kwargs)
        finally:
            for name, value in before.items():
                show(name, value)

    if TRACE_DIR in ours:
        replace(module, "_init_logs", _init_logs)


def patch_dynamo_utils(module: Any, replace: Any) -> None:
    """Know whether the program reads torch's counts of hits and misses (torch/_dynamo/utils.py, `counters`)."""
    replace(module.counters, "default_factory", _Counts)
    module.counters.update({name: _Counts(counts) for name, counts in module.counters.items()})


def _noting(name: str) -> Callable[..., Any]:
    read = getattr(Counter, name)

    def noting(self: Any, *args: Any) -> Any:
        if not sys._getframe(1).f_globals.get("__name__", "").startswith(("torch.", "collections")):
            _counts_read.append(True)
        return read(self, *args)

    return noting


# They are pickled as plain counts.
_READING: Final = ("__getitem__", "__iter__", "get", "items", "values")
_READ: Final = {"__reduce__": lambda counts: (Counter, (dict(counts),))}
_Counts: Final = type("Counter", (Counter,), {name: _noting(name) for name in _READING} | _READ)


def patch_autograd_cache(module: Any, replace: Any) -> None:
    """Note what AOTAutograd would store (torch/_functorch/_aot_autograd/autograd_cache.py)."""

    def save(key: str, entry: Any, remote: bool) -> None:
        why = _why_not_saved(entry)
        note(stored=_stored_note("aotautograd", key, getattr(entry, "guards_expr", None), why))

    replace(module.AOTAutogradCache, "save", staticmethod(save))


def patch_pgo(module: Any, replace: Any) -> None:
    """Let no profile of sizes reach a remote cache (torch/_dynamo/pgo.py); it is read, as by the real run."""
    replace(module, "put_remote_code_state", lambda *_, **__: None)


def _lookup_note(cache: Any, key: str, local: bool, remote_cache: Any, hints: Any) -> dict[str, Any]:
    import torch
    from torch._dynamo import config as dynamo
    from torch._inductor import config as inductor

    sizes = [hint if isinstance(hint, (bool, int, float)) else None for hint in hints]
    name = _CACHES.get(cache.__name__, cache.__name__)
    told: dict[str, Any] = {"cache": name, "key": key, "sizes": sizes}
    if told["cache"] == "aotautograd":
        told["functorch_config"] = functorch_config()
    if (meant := meant_cache_dir()) is not None:
        told["cache_dir"] = meant
    if _earlier:
        told["after"] = sorted(_earlier)
    told["cpu"] = f"{torch.backends.cpu.get_cpu_capability()} {platform.machine()}"
    folder = cache._get_tmp_dir_for_key(key)
    flags = {
        "not_local": not local,
        "remote": remote_cache is not None,
        "guards_skipped": inductor.unsafe_skip_cache_dynamic_shape_guards,
        "without_values": key in keys_without_values,
        "counts_read": _counts_read,
        "precompiled": getattr(dynamo, "caching_precompile", False),
        # From a mega-cache, for example.
        "brought": os.path.isdir(folder) and os.listdir(folder),
    }
    return told | {name: True for name, is_so in flags.items() if is_so}


def _stored_note(cache: str, key: str, guards: str | None, why_not: str | None) -> dict[str, Any]:
    told: dict[str, Any] = {"cache": cache, "key": key, "guards": guards}
    if why_not is not None:
        told["why_not"] = why_not
    return told


def _why_not_written(compiled: Any) -> str | None:
    """Why torch could not write a graph: it pickles it as `FxGraphCache._save_graph` does."""
    written = copy.copy(compiled)
    try:
        written.prepare_for_serialization()
        pickle.dumps(written)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def _why_not_saved(entry: Any) -> str | None:
    from torch.utils import _python_dispatch as dispatch

    try:
        entry.pre_save()
        with dispatch._disable_current_modes():
            pickle.dumps(entry)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def note_beginning() -> None:
    """Note that this process has begun, and which others had ended by then."""
    folder = os.path.join(ours[OWN_FOLDER], _PROCESSES)
    with suppress(OSError):
        os.makedirs(folder, exist_ok=True)
        others = [int(name) for name in os.listdir(folder) if name != str(os.getpid())]
        _earlier[:] = [pid for pid in others if not _is_alive(pid)]
        with open(os.path.join(folder, str(os.getpid())), "w"):
            pass


def _is_alive(pid: int) -> bool:
    if sys.platform == "win32":  # such a signal would end it
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # not ours
        return True
    return True
