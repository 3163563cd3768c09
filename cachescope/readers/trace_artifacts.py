"""The cache artifacts of TORCH_TRACE, one name at a time, from torch 2.5 to 2.15.

FX: torch/_inductor/compile_fx.py; AOTAutograd: torch/_functorch/_aot_autograd/autograd_cache.py. Through 2.5
(FX) and 2.6 (AOTAutograd) one artifact served every state, which then stands in the payload only.
"""

from __future__ import annotations

from typing import Any, Final

from cachescope.readers.reading import Lookup
from cachescope.terms import AOTAUTOGRAD, FXGRAPH

# `fx_graph_bundled_cache_hit` (2.8+) is no lookup: the graph came inlined in the AOTAutograd entry.
LOOKUP_ARTIFACTS: Final = {
    "fx_graph_cache_hash": (FXGRAPH, None),
    "fx_graph_cache_hit": (FXGRAPH, "hit"),
    "fx_graph_cache_miss": (FXGRAPH, "miss"),
    "fx_graph_cache_bypass": (FXGRAPH, "bypass"),
    "aotautograd_cache_hash": (AOTAUTOGRAD, None),
    "aotautograd_cache_hit": (AOTAUTOGRAD, "hit"),
    "aotautograd_cache_miss": (AOTAUTOGRAD, "miss"),
    "aotautograd_cache_bypass": (AOTAUTOGRAD, "bypass"),
}


def lookup_from_artifact(name: str, payload: dict[str, Any]) -> Lookup:
    """One lookup from the payload of one cache artifact; its hash details are left to the caller.

    `time_ns` is torch's own `cache_event_time` where the payload has one (FX), else None.
    """
    cache, named_state = LOOKUP_ARTIFACTS[name]
    state = _text(payload, "cache_state")
    status = _text(payload, "cache_status_detailed")
    return Lookup(
        cache=cache,
        time_ns=_whole(payload, "cache_event_time"),
        cache_key=_text(payload, "key"),
        # In 2.5 an FX miss below AOTAutograd left the state null.
        outcome=_outcome(state or named_state or "miss", status),
        cache_state=state or named_state,
        status_detailed=status,
        compile_id=_text(payload, "compile_id"),
        bypass_reason=_text(payload, "cache_bypass_reason"),
        guards_expr=_text(payload, "cache_status_guard_expr"),
        time_taken_ns=_whole(payload, "time_taken_ns"),
        time_saved_ns=_time_saved(payload),
    )


def note_compile_event(event: dict[str, Any], lookups: list[Lookup]) -> Lookup | None:
    """What the event that ends an FX compile adds where no artifact tells: a bypass's time, a disabled cache.

    torch/_inductor/compile_fx.py, `_compile_fx_inner`: the event ``inductor_compile`` has the cache state
    among its arguments; a disabled cache leaves no artifact.

    Returns
    -------
    Lookup or None
        A lookup of outcome ``disabled``; None where the event only completes one of `lookups`, or is another.
    """
    args = event.get("args")
    if event.get("ph") != "E" or event.get("name") != "inductor_compile" or not isinstance(args, dict):
        return None
    state, began = _text(args, "cache_state"), _whole(args, "cache_event_time")
    stamp = event.get("ts")
    taken = None
    if began is not None and isinstance(stamp, int | float):
        taken = max(round(stamp * 1000) - began, 0)
    backward = args.get("is_backward")
    is_backward = backward if isinstance(backward, bool) else None
    if state == "disabled":
        return Lookup(
            FXGRAPH,
            time_ns=began,
            outcome="disabled",
            cache_state=state,
            is_backward=is_backward,
            compile_id=_text(args, "compile_id"),
            bypass_reason=_text(args, "cache_bypass_reason"),
            time_taken_ns=taken,
        )
    for lookup in reversed(lookups):
        if (lookup.cache, lookup.outcome, lookup.time_ns) == (FXGRAPH, "bypass", began):
            lookup.time_taken_ns, lookup.is_backward = taken, is_backward
            break
    return None


def _outcome(state: str, status: str | None) -> str:
    if state != "miss":
        return state if state in ("hit", "bypass", "disabled") else "full_miss"
    return "guard_miss" if status == "guard_miss" else "full_miss"


def _time_saved(payload: dict[str, Any]) -> int | None:
    """FX gives nanoseconds, AOTAutograd milliseconds."""
    if (saved := _whole(payload, "time_saved_ns")) is not None:
        return saved
    milliseconds = payload.get("time_saved_ms")
    return round(milliseconds * 1e6) if isinstance(milliseconds, int | float) else None


def _text(payload: dict[str, Any], name: str) -> str | None:
    value = payload.get(name)
    return value if isinstance(value, str) else None


def _whole(payload: dict[str, Any], name: str) -> int | None:
    value = payload.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
