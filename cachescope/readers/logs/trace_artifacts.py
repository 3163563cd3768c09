"""The cache artifacts of TORCH_TRACE, one name at a time, from torch 2.5 to 2.15.

FX: torch/_inductor/compile_fx.py; AOTAutograd: torch/_functorch/_aot_autograd/autograd_cache.py. Through 2.5
(FX) and 2.6 (AOTAutograd) one artifact served every state; the state is then only in the payload.
"""

from __future__ import annotations

import re
from typing import Final

from cachescope.frames.recorded_rows import LookupRow
from cachescope.readers.json_record import Record, well_formed
from cachescope.readers.logs.trace_compiles import NO_COMPILE
from cachescope.terms import AOTAUTOGRAD, FXGRAPH, PREFLIGHT_ARTIFACT

# `fx_graph_bundled_cache_hit` (2.8+) is no lookup: the graph came inlined in the AOTAutograd entry.
LOOKUP_ARTIFACTS: Final = {
    "fx_graph_cache_hash": (FXGRAPH, None), "fx_graph_cache_hit": (FXGRAPH, "hit"),
    "fx_graph_cache_miss": (FXGRAPH, "miss"), "fx_graph_cache_bypass": (FXGRAPH, "bypass"),
    "aotautograd_cache_hash": (AOTAUTOGRAD, None), "aotautograd_cache_hit": (AOTAUTOGRAD, "hit"),
    "aotautograd_cache_miss": (AOTAUTOGRAD, "miss"), "aotautograd_cache_bypass": (AOTAUTOGRAD, "bypass"),
}  # fmt: skip
VERSION_ARTIFACT: Final = "torch_version"
RECOMPILE_ARTIFACT: Final = "recompile_reasons"
RUNNABLE_ARTIFACT: Final = "fx_graph_runnable"
# torch/_inductor/async_compile.py, `_compile_end` (2.8 to 2.15): what `check_autotune_cache` found for each kernel that was loaded.
KERNELS_ARTIFACT: Final = "triton_kernel_info"
ARTIFACTS: Final = (
    *LOOKUP_ARTIFACTS, VERSION_ARTIFACT, RECOMPILE_ARTIFACT, RUNNABLE_ARTIFACT, KERNELS_ARTIFACT, PREFLIGHT_ARTIFACT,
)  # fmt: skip
"""All that are read."""
# torch/_dynamo/debug_utils.py, `_cuda_system_info_comment` (2.4 to 2.15), in the script that runs a graph again.
_GPUS: Final = re.compile(rb"# GPU Hardware Info: \n((?:\t?# [^\n]+ : \d+ *\n){1,64})")
_ASKED: Final = ("hit", "miss", "force_disabled")
_ERROR: Final = re.compile(r"[\w.]+: ")


def lookup_from_artifact(name: str, payload: Record) -> LookupRow:
    """Make a lookup from the payload of one cache artifact, without its hash details.

    `time` is torch's own `cache_event_time` if the payload has one (FX), else None.
    """
    cache, named_state = LOOKUP_ARTIFACTS[name]
    state = payload.text("cache_state")
    status = payload.text("cache_status_detailed")
    return LookupRow(
        cache=cache,
        time=payload.moment_ns("cache_event_time"),
        cache_key=payload.text("key"),
        # In 2.5 an FX miss below AOTAutograd left the state null. In 2.4 there is none: what follows in the trace tells.
        outcome="unknown"
        if named_state is None and "cache_state" not in payload.values
        else _outcome(state or named_state or "miss", status),
        cache_state=state or named_state,
        status_detailed=status,
        compile_id=_compile_id(payload),
        bypass_reason=_bypass_reason(payload),
        bypass_exception=_bypass_exception(payload),
        guards_expr=payload.text("cache_status_guard_expr"),
        time_taken_ns=payload.duration_ns("time_taken_ns"),
        time_saved_ns=_time_saved(payload),
    )


def gpus_in(runnable: bytes) -> tuple[str, ...]:
    r"""The models of GPUs that stand in the script which runs a graph again.

    >>> gpus_in(b"# GPU Hardware Info: \n# NVIDIA RTX A6000 : 1 \n# NVIDIA L4 : 2 \n")
    ('NVIDIA RTX A6000', 'NVIDIA L4')
    """
    found = _GPUS.search(runnable)
    lines = found[1].decode("utf-8", "replace").splitlines() if found else []
    return tuple(line.strip()[2:].rpartition(" : ")[0] for line in lines)


def kernel_lookups(compile_id: str | None, kernels: Record) -> tuple[str, ...]:
    """What autotuning found stored for the kernels of one compile; torch asks for none that has one configuration."""
    infos = ((name, kernels.record(name)) for name in kernels.values)
    found = ((name, info.text("autotune_cache_state")) for name, info in infos if info is not None)
    return tuple(
        f"{compile_id or NO_COMPILE} {state} {well_formed(name)}" for name, state in found if state in _ASKED
    )


def lookup_from_event(event: Record) -> LookupRow | None:
    """Make a lookup from the event that ends an FX compile: a disabled cache or a bypass.

    torch/_inductor/compile_fx.py, `_compile_fx_inner`: the event ``inductor_compile`` has the cache state
    among its arguments; a disabled cache leaves no artifact.
    """
    if event.text("ph") != "E" or event.text("name") != "inductor_compile":
        return None
    args = event.record("args")
    if args is None:
        return None
    state, began = args.text("cache_state"), args.moment_ns("cache_event_time")
    ended, is_backward = event.moment_of_us("ts"), args.flag("is_backward")
    taken = None if began is None or ended is None else max(ended - began, 0)
    lookup = LookupRow(cache=FXGRAPH, time=began, outcome="bypass", compile_id=_compile_id(args))
    lookup.is_backward, lookup.time_taken_ns = is_backward, taken
    if state == "disabled":
        lookup.outcome = lookup.cache_state = state
        lookup.bypass_reason = args.text("cache_bypass_reason")
    return lookup


def _bypass_reason(payload: Record) -> str | None:
    """Why a lookup was bypassed; of a key that could not be pickled, with the error in the traceback that 2.10 and later record."""
    reason, traceback = payload.text("cache_bypass_reason"), payload.values.get("cache_bypass_traceback")
    if reason is None or "pickl" not in reason or not isinstance(traceback, list):
        return reason
    # The first error is the cause of the others.
    errors = (line for part in traceback for line in str(part).splitlines() if _ERROR.match(line))
    error = next(errors, None)
    return reason if error is None or reason in error else f"{reason}: {error}"


def _bypass_exception(payload: Record) -> str | None:
    """The class of what ended an AOTAutograd lookup. torch 2.6 says only whether it was one of its own, 2.10 and later name it."""
    named = payload.text("cache_bypass_exception_type")
    return "Exception" if named is None and payload.flag("cache_bypass_hard_exception") else named


def _compile_id(args: Record) -> str | None:
    """The compile id; none where torch compiles outside of one, as AOTInductor does."""
    printed = args.text("compile_id")
    return None if printed == NO_COMPILE else printed


def _outcome(state: str, status: str | None) -> str:
    if state != "miss":
        return state if state in ("hit", "bypass", "disabled") else "full_miss"
    return "guard_miss" if status == "guard_miss" else "full_miss"


def _time_saved(payload: Record) -> int | None:
    """The time saved in nanoseconds: FX records nanoseconds, AOTAutograd milliseconds."""
    saved = payload.duration_ns("time_saved_ns")
    return saved if saved is not None else payload.duration_ns("time_saved_ms", 1_000_000)
