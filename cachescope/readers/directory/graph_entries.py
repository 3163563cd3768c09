"""Entries of graphs: ``fxgraph/<kk>/<f-key>/<hash>`` and ``aotautograd/<a-key>/<hash, or "entry">``, torch 2.5 to 2.15.

They do not contain the hash details of their own key, only those of their FX graphs.
"""

from __future__ import annotations

from cachescope.frames.directory_rows import EntryRow
from cachescope.readers.directory.entry_file import (
    add_hash_details,
    check_entry,
    entry_reader,
    nanoseconds,
    text,
    words,
)
from cachescope.readers.directory.triton_files import triton_hashes
from cachescope.readers.pickles.inert_pickle import Stub
from cachescope.readers.reading import Reading

FX_CLASSES = frozenset({"CompiledFxGraph"})

# autograd_cache.py 2.5 to 2.9, aot_autograd_result.py 2.10+ (both in torch/_functorch/_aot_autograd).
AOT_CLASSES = frozenset({
    "AOTAutogradCacheEntry", "BundledAOTAutogradCacheEntry", "GenericAOTAutogradCacheEntry",
    "AOTAutogradResult", "BundledAOTAutogradResult", "GenericAOTAutogradResult",
})  # fmt: skip


def check_fxgraph(entry: EntryRow, name: str, data: bytes, reading: Reading) -> None:
    """Fill the row of one FX graph entry from its bytes.

    Mirrors ``CompiledFxGraph`` (torch/_inductor/output_code.py 2.6+, codecache.py 2.5). It contains its hash details
    from 2.8, its key from 2.6. What a version does not store is missing in the row.
    """
    check_entry(entry, data, reading, FX_CLASSES, _fill_graph)


read_fxgraph_entry = entry_reader(check_fxgraph)


def _fill_graph(entry: EntryRow, graph: Stub, reading: Reading) -> str | None:
    damage = take_graph(entry, graph)
    state = graph.state
    entry.time_taken_ns = nanoseconds(state.get("_time_taken_ns"))
    entry.detail_set, wrong = add_hash_details(state.get("_fx_graph_cache_debug_lines"), reading)
    key = text(state.get("_fx_graph_cache_key"))
    if key is not None and key != entry.cache_key:
        wrong = f"holds the entry of another key: {key[:60]}"
    return damage or wrong


def take_graph(entry: EntryRow, graph: Stub) -> str | None:
    """Fill the row with a ``CompiledFxGraph``'s facts about its code; return what is wrong with it, if anything."""
    state = graph.state
    if not state:
        return "an object without a state"
    entry.guards_expr = text(state.get("guards_expr"))
    entry.code_key = text(state.get("cache_key"))
    entry.source_code = text(state.get("source_code"))
    entry.device_types = words(state.get("device_types"))
    entry.triton_hashes = triton_hashes(_bundled(state.get("_triton_bundle")))
    entry.cudagraphs_skipped = text(state.get("disabled_cudagraphs_reason"))
    return None


def _bundled(bundle: object) -> list[object]:
    """Keys of the Triton kernels in a bundle: a list in 2.6, a ``TritonBundle`` from 2.7.

    torch/_inductor/triton_bundler.py, ``TritonKernelArtifacts.kernel_hash``.
    """
    if isinstance(bundle, Stub) and isinstance(bundle.state, dict):
        bundle = bundle.state.get("kernel_artifacts")
    if not isinstance(bundle, list):
        return []
    kernels = [one.state for one in bundle if isinstance(one, Stub)]
    return [state.get("kernel_hash") for state in kernels if isinstance(state, dict)]


def check_aotautograd(entry: EntryRow, name: str, data: bytes, reading: Reading) -> None:
    """Fill the row of one AOTAutograd entry from its bytes.

    `time_taken_ns` is forward and backward together. The entry refers to its FX graphs by key
    (``CompiledForward``, ``CompiledBackward``), or contains them (``Bundled…``, 2.8+).
    """
    check_entry(entry, data, reading, AOT_CLASSES, _fill_autograd)


read_aotautograd_entry = entry_reader(check_aotautograd)


def take_bundled(entry: EntryRow, value: object, reading: Reading) -> None:
    """Fill the row from what ``BundledAOTAutogradSerializableCallable`` stores: a result, since 2.12 in a tuple.

    Another backend of torch.compile stores something else, which is ignored.
    """
    result = value[0] if isinstance(value, tuple) and value else value
    if isinstance(result, Stub) and result.name in AOT_CLASSES:
        _fill_autograd(entry, result, reading)


def _fill_autograd(entry: EntryRow, result: Stub, reading: Reading) -> str | None:
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


def _take_compiled(entry: EntryRow, compiled: Stub, reading: Reading) -> list[str]:
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
