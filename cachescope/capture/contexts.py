"""A snapshot of what this process's torch would put into its isolation context.

The only module of capture/ that asks torch for contexts; torch is imported inside functions.
Asking has torch's own side effects: its cache directory is created if it does not exist.
"""

from __future__ import annotations

import importlib
import inspect
import json
import logging
import os
import platform
import socket
import warnings
from base64 import b64encode
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any, Final

from cachescope.capture.devices import torch_devices
from cachescope.capture.key_fields import aot_key_fields, functorch_config, key_fields
from cachescope.capture.torch_manifest import torch_manifest as manifest_of_torch
from cachescope.capture.torch_modules import torch_module
from cachescope.errors import telling
from cachescope.keys.json_values import json_ready
from cachescope.terms import CACHE_SWITCHES, SNAPSHOT_VERSION
from cachescope.whole_file import write_whole

# Environment variables that decide whether and where torch.compile caches, or what its keys contain.
SWITCH_PREFIXES: Final = tuple(
    "TORCHINDUCTOR_ TORCH_COMPILE_ TORCH_CACHING_ TORCHDYNAMO_ TRITON_ INDUCTOR_".split()  # noqa: SIM905
)
SWITCHES: Final = frozenset(
    "CUBLAS_WORKSPACE_CONFIG CUDA_VISIBLE_DEVICES CXX ENABLE_AOT_AUTOGRAD_CACHE HIP_VISIBLE_DEVICES LOCAL_RANK "  # noqa: SIM905
    "MKL_NUM_THREADS NVIDIA_TF32_OVERRIDE OMP_NUM_THREADS RANK ROCR_VISIBLE_DEVICES TMPDIR "
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE TORCH_LOGS TORCH_TRACE WORLD_SIZE".split()
)
_SETTINGS: Final = (
    "torch.get_num_threads()", "torch.get_default_dtype()", "torch.get_default_device()", "torch.is_grad_enabled()",
    "torch.backends.cpu.get_cpu_capability()", "torch.get_float32_matmul_precision()", "torch.compiler.config.cache_key_tag",
    "pickle.DEFAULT_PROTOCOL",
)  # fmt: skip
_GROUPS: Final = "/sys/fs/cgroup"
# Version 1 writes the largest number of pages for no limit.
_NO_LIMIT: Final = 1 << 60
# TORCHINDUCTOR_REDIS_URL and the like may contain a password: record that it is set, not its value.
_SECRET_PARTS: Final = ("REDIS", "PASSWORD", "SECRET", "TOKEN")


def capture(*, torch_manifest: bool = False) -> dict[str, object]:
    """Return a snapshot of this process's isolation context and its circumstances.

    Parameters
    ----------
    torch_manifest : bool, default False
        Add the hash of every source file that goes into torch's own key, which explains why two
        ``torch_version_hash`` differ.

    Returns
    -------
    dict
        Ready for JSON: ``cachescope_snapshot`` (the format, 1), ``context`` (as torch's
        ``_isolation_context()``), ``context_source`` (``torch`` if torch has that function,
        2.10 and later; otherwise ``rebuilt`` from the same calls, and then no torch ever made a key
        of it), ``torch_version``, ``python_version``, ``platform``, ``host``, ``pid``, ``time``
        (ISO 8601, UTC), ``environment`` (variables that affect caching, as they were before
        torch was asked), ``settings`` (which caches are on, threads, default dtype and device, gradient
        mode, the CPU's capability, matmul precision, cache key tag, pickle protocol), ``device_properties``
        (torch's text for each device), ``not_json`` (paths of values in the context that JSON
        cannot hold and that are kept as text: torch itself makes no key of these), ``key_fields``
        and ``aot_key_fields`` (torch's hash of each process-wide field of its FX keys, and of the
        fields that only AOTAutograd keys have; null if ``key_fields_problem`` gives a reason),
        ``functorch_config`` (the options that are hashed as ``autograd_config``, as Python writes them),
        ``torch_manifest`` (null unless requested), and ``machine`` (the cores, those that this process may run on, and the limits
        of its control groups: what is not limited is not there).

    Raises
    ------
    CachescopeError
        If torch is not installed, or fails to import.

    Notes
    -----
    Mirrors ``_isolation_context`` of ``torch/_inductor/runtime/caching/context.py``, 2.13.
    """
    # Before torch is imported: its cache_dir() sets TORCHINDUCTOR_CACHE_DIR.
    environment = _switches(os.environ)
    torch = torch_module("torch", "capturing a context asks it")
    context, source = _context(torch)
    kept, not_json = json_ready(context)
    fields, problem = key_fields()
    aot_fields, aot_problem = aot_key_fields()
    return {
        "cachescope_snapshot": SNAPSHOT_VERSION,
        "context": kept,
        "context_source": source,
        "torch_version": str(torch.__version__),
        "python_version": platform.python_version(),
        "platform": platform.platform(),
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "time": datetime.now(UTC).isoformat(),
        "environment": environment,
        "settings": _settings(),
        "device_properties": [device.text for device in torch_devices(torch)],
        "not_json": not_json,
        "key_fields": fields,
        "aot_key_fields": aot_fields,
        "functorch_config": functorch_config(),
        "key_fields_problem": problem or aot_problem,
        "torch_manifest": manifest_of_torch() if torch_manifest else None,
        "machine": _machine(),
    }


def write_snapshot(path: str | os.PathLike[str], *, torch_manifest: bool = False) -> dict[str, object]:
    """Capture a snapshot, write it as one JSON file, of which a reader never sees half, and return it."""
    snapshot = capture(torch_manifest=torch_manifest)
    target = Path(path)
    with telling(f"{target}: cannot write the snapshot"):
        # json, not orjson: contexts may contain NaN and integers beyond 64 bits.
        write_whole(target, (json.dumps(snapshot, indent=1) + "\n").encode())
    return snapshot


def write_last_snapshot(folder: str) -> None:
    """Write the snapshot of a process that ends, beside its trace; nothing is logged or warned of meanwhile."""
    logging.disable()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        write_snapshot(os.path.join(folder, f"context-{os.getpid()}.json"))


def _switches(environment: Mapping[str, str]) -> dict[str, str]:
    return {
        name: "(set)" if any(part in name for part in _SECRET_PARTS) else value
        for name, value in sorted(environment.items())
        if name in SWITCHES or name.startswith(SWITCH_PREFIXES)
    }


def _machine() -> dict[str, int]:
    """The cores and the limits that this process has here; each limit of control groups is the least of those around it."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    found = {"cores": os.cpu_count(), "usable_cores": usable}
    quotas = _limits("cpu", "cpu.max", "cpu.cfs_quota_us", "cpu.cfs_period_us")
    if quotas:
        found["cpu_quota_us"], found["cpu_period_us"] = min(quotas, key=lambda one: one[0] / one[1])
    memory = [one for (one,) in _limits("memory", "memory.max", "memory.limit_in_bytes") if one < _NO_LIMIT]
    found["memory_limit_bytes"] = min(memory, default=None)
    return {name: value for name, value in found.items() if value}


def _limits(controller: str, name: str, *before: str) -> list[list[int]]:
    """The numbers in a file of each control group around this process, in version 2 or, of a controller, 1; none where it has no limit."""
    found = []
    for line in _text("/proc/self/cgroup").splitlines():
        _, controllers, place = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        folder, names = (f"{_GROUPS}/{controller}", before) if controllers else (_GROUPS, (name,))
        # In a container the path may be that outside of it: what is mounted at the root is then its own group.
        for group in (PurePosixPath(place), *PurePosixPath(place).parents):
            words = " ".join(_text(f"{folder}{group}/{one}") for one in names).split()
            if words and all(map(str.isdecimal, words)):
                found.append([*map(int, words)])
    return found


def _text(path: str) -> str:
    with suppress(OSError):
        return Path(path).read_text(encoding="utf-8", errors="replace")
    return ""


def _context(torch: Any) -> tuple[dict[str, object], str]:
    try:
        import torch._inductor.runtime.caching.context as module
    except ModuleNotFoundError:
        return _rebuilt_context(torch), "rebuilt"
    return module._isolation_context(), "torch"


def _rebuilt_context(torch: Any) -> dict[str, object]:
    """Return the values that 2.13's ``_RuntimeContext`` and ``_CompileContext`` collect, from 2.6 to 2.9.

    ``fp32_precision`` came with 2.9; before that the same switch is ``allow_tf32``. Private
    Inductor configs are left out if ``save_config_portable`` cannot return them (2.6, 2.7).
    """
    from torch._inductor import codecache, config

    portable = config.save_config_portable
    private = "ignore_private_configs" in inspect.signature(portable).parameters
    runtime = "CUDA" if torch.version.cuda else "HIP" if torch.version.hip else None
    available = bool(runtime and torch.cuda.is_available())
    return {
        "runtime_context": {
            "inductor_configs": portable(ignore_private_configs=False) if private else portable(),
            "torch_determinism_configs": _determinism(torch),
            "cuda_matmul_precision_configs": _matmul_precision(torch.backends.cuda.matmul),
        },
        "compile_context": {
            "torch_version_hash": b64encode(codecache.torch_key()).decode(),
            "triton_version_hash": _triton_key(),
            "runtime": runtime,
            "runtime_version": torch.version.cuda or torch.version.hip or None,
            "accelerator_properties": (
                repr(torch.cuda.get_device_properties(torch.cuda.current_device())) if available else None
            ),
        },
    }


def _determinism(torch: Any) -> dict[str, object]:
    called = ("are_deterministic_algorithms_enabled", "is_deterministic_algorithms_warn_only_enabled")
    fill = getattr(torch.utils.deterministic, "fill_uninitialized_memory", None)
    found = {f"torch.{name}": getattr(torch, name)() for name in called}
    return found | {"torch.utils.deterministic.fill_uninitialized_memory": fill}


def _matmul_precision(matmul: Any) -> dict[str, object]:
    fp32 = "fp32_precision" if hasattr(matmul, "fp32_precision") else "allow_tf32"
    names = (fp32, "allow_fp16_reduced_precision_reduction", "allow_bf16_reduced_precision_reduction")
    return {f"torch.backends.cuda.matmul.{name}": getattr(matmul, name) for name in names}


def _triton_key() -> str | None:
    """Ask Triton in the places that torch's ``triton_compat`` tries: first the new one, then the old one."""
    for name in ("triton.runtime.cache", "triton.compiler.compiler"):
        try:
            module: Any = importlib.import_module(name)
        except ImportError:
            continue
        if hasattr(module, "triton_key"):
            return str(module.triton_key())
    return None


def _settings() -> dict[str, str]:
    """Return other state of the process that decides a key or the generated code, as text, under torch's own names.

    The number of threads and the default dtype are in FX keys (from 2.13), the capability of the CPU in the keys
    of generated C++, the tag in every key. The switches of `CACHE_SWITCHES` are in none: keys do not show whether
    a process looks anything up.
    """
    found = {}
    for name in (*CACHE_SWITCHES, *_SETTINGS):
        module, _, attribute = name.removesuffix("()").rpartition(".")
        owner: Any = importlib.import_module(module)
        if hasattr(owner, attribute):
            value = getattr(owner, attribute)
            found[name] = str(value() if name.endswith("()") else value)
    return found
