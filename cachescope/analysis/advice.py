"""What to do about a cause: only what is true of torch, with torch's own option names."""

from __future__ import annotations

from cachescope.analysis.fields import field_advice
from cachescope.analysis.misses import Miss
from cachescope.terms import HOW_TO_RECORD


def cause_advice(root: Miss) -> str | None:
    """Advice for a cause, from its root miss; None where nothing certain can be said."""
    match root.verdict:
        case "key_changed":
            return _fields_advice(root.changed)
        case "guard_failed":
            return (
                "A key holds one entry per set of guards. Mark the dimension dynamic over the range that you need "
                "(torch._dynamo.mark_dynamic(tensor, dim, min=…, max=…)), or warm the cache with a size of each range."
            )
        case "entry_unavailable":
            return _unavailable_advice(root.kind)
        case "compiled_concurrently":
            return (
                "Every process compiled the same graph because none had finished. Let one rank compile first "
                "(a barrier after the first step), or ship a cache made beforehand."
            )
        case "bypassed":
            return _bypass_advice(root.kind)
        case "disabled":
            return (
                "Look for TORCHINDUCTOR_FORCE_DISABLE_CACHES, TORCH_COMPILE_FORCE_DISABLE_CACHES, "
                "TORCHINDUCTOR_FX_GRAPH_CACHE=0 and torch.compiler.config.force_disable_caches."
            )
        case "details_not_recorded":
            return f"{HOW_TO_RECORD[0].upper()}{HOW_TO_RECORD[1:]}."
        case "no_detail_differs":
            return (
                "Equal fields and another key point to state in a pickled object (order of a set, shared references): "
                "record the same program twice with PYTHONHASHSEED=0 to see whether the key settles."
            )
        case "first_lookup":
            return None


def _fields_advice(changed: tuple[str, ...]) -> str | None:
    texts = dict.fromkeys(text for field in changed if (text := field_advice(field)))
    return " ".join(texts) or None


def _unavailable_advice(kind: str) -> str | None:
    match kind:
        case "damaged" | "graph entry":
            return (
                "torch never removes a damaged entry: each lookup reads it again and warns. Delete the files under "
                "that key (cachescope entries DIR lists the damaged ones) and let one process write them anew."
            )
        case "another directory":
            return (
                "Point TORCHINDUCTOR_CACHE_DIR of both processes to one directory, or copy the cache there."
            )
        case "deleted":
            return (
                "The default directory lies in /tmp, which is often wiped or private to a job; set "
                "TORCHINDUCTOR_CACHE_DIR to a place that stays."
            )
    return None


def _bypass_advice(kind: str) -> str | None:
    if "custom pass" in kind.lower():
        return (
            "Give the pass a uuid: subclass torch._inductor.custom_graph_pass.CustomGraphPass and return bytes that "
            "change whenever the pass does."
        )
    if "freezing" in kind.lower() or "mkldnn" in kind.lower():
        return "Frozen graphs hold weights in a form that torch cannot store: leave torch._inductor.config.freezing off to cache."
    if "not enabled" in kind.lower():
        return "The AOTAutograd cache needs the FX graph cache: leave TORCHINDUCTOR_FX_GRAPH_CACHE on."
    return None
