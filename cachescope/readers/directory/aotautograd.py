"""AOTAutograd cache entries: ``aotautograd/<a-key>/<content hash, or "entry">``, torch 2.5 to 2.15.

They do not contain the hash details of their own key, only those of their FX graphs.
"""

from __future__ import annotations

from cachescope.readers.directory.entry_file import (
    add_hash_details,
    check_entry,
    nanoseconds,
    read_entry_file,
    text,
)
from cachescope.readers.directory.fxgraph import take_graph
from cachescope.readers.pickles.inert_pickle import Stub
from cachescope.readers.reading import Entry, Reading

# autograd_cache.py 2.5 to 2.9, aot_autograd_result.py 2.10+ (both in torch/_functorch/_aot_autograd).
AOT_CLASSES = frozenset(
    {
        "AOTAutogradCacheEntry",
        "BundledAOTAutogradCacheEntry",
        "GenericAOTAutogradCacheEntry",
        "AOTAutogradResult",
        "BundledAOTAutogradResult",
        "GenericAOTAutogradResult",
    }
)


def read_aotautograd_entry(entry: Entry, path: str, name: str, reading: Reading) -> bool:
    """Fill the row of one AOTAutograd entry; return False if the file no longer exists.

    `time_taken_ns` is forward and backward together. The entry refers to its FX graphs by key
    (``CompiledForward``, ``CompiledBackward``), or contains them (``Bundled…``, 2.8+).
    """
    return read_entry_file(entry, path, name, reading, AOT_CLASSES, _fill)


def check_aotautograd(entry: Entry, data: bytes, reading: Reading) -> tuple[str | None, int | None]:
    """Fill the row of one AOTAutograd entry from its bytes; return what is wrong and at which byte, if anything."""
    return check_entry(entry, data, reading, AOT_CLASSES, _fill)


def take_bundled(entry: Entry, value: object, reading: Reading) -> None:
    """Fill the row from what ``BundledAOTAutogradSerializableCallable`` stores: a result, since 2.12 in a tuple.

    Another backend of torch.compile stores something else, which is ignored.
    """
    result = value[0] if isinstance(value, tuple) and value else value
    if isinstance(result, Stub) and result.name in AOT_CLASSES:
        _fill(entry, result, reading)


def _fill(entry: Entry, result: Stub, reading: Reading) -> str | None:
    state = result.state
    if not state:
        return "an object without a state"
    times = [nanoseconds(state.get(f"{way}_time_taken_ns")) for way in ("forward", "backward")]
    known = [time for time in times if time is not None]
    entry.time_taken_ns = nanoseconds(sum(known)) if known else None
    wrong: list[str] = []
    for part in ("compiled_fw", "compiled_bw"):
        compiled = state.get(part)
        if isinstance(compiled, Stub):
            wrong += _take_compiled(entry, compiled, reading)
    # A bundled graph has its own guards, but torch checks those of the whole entry.
    entry.guards_expr = text(state.get("guards_expr"))
    return "; ".join(wrong) or None


def _take_compiled(entry: Entry, compiled: Stub, reading: Reading) -> list[str]:
    state = compiled.state
    bundled = state.get("result")
    key: object
    lines: object
    if isinstance(bundled, Stub):
        key = bundled.state.get("_fx_graph_cache_key")
        lines = bundled.state.get("_fx_graph_cache_debug_lines")
        wrong = [take_graph(entry, bundled)] if entry.code_key is None else []
    else:
        info = state.get("fx_graph_cache_info")
        if isinstance(info, tuple) and len(info) == 2:
            key, lines = info
        else:
            key, lines = state.get("fx_graph_cache_key"), None  # 2.5 to 2.7
        wrong = []
    set_code, bad_lines = add_hash_details(lines, reading)
    if isinstance(key, str):
        entry.fx_keys += (key,)
        if "fx_graph_guard_expr" in state:
            entry.fx_guards += (text(state["fx_graph_guard_expr"]) or "",)
        if set_code is not None:
            reading.details_of_key[key] = set_code
    return [damage for damage in (*wrong, bad_lines) if damage is not None]
