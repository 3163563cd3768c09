"""FX graph cache entries: ``fxgraph/<kk>/<f-key>/<content hash>``, torch 2.5 to 2.15."""

from __future__ import annotations

from cachescope.readers.directory.entry_file import (
    add_hash_details,
    check_entry,
    nanoseconds,
    read_entry_file,
    text,
    words,
)
from cachescope.readers.directory.triton_dir import triton_hashes
from cachescope.readers.pickles.inert_pickle import Stub
from cachescope.readers.reading import Entry, Reading

FX_CLASSES = frozenset({"CompiledFxGraph"})


def read_fxgraph_entry(entry: Entry, path: str, name: str, reading: Reading) -> bool:
    """Fill the row of one FX graph entry; return False if the file no longer exists.

    Mirrors ``CompiledFxGraph`` (torch/_inductor/output_code.py 2.6+, codecache.py 2.5). It contains its hash details
    from 2.8, its key from 2.6. What a version does not store is missing in the row.
    """
    return read_entry_file(entry, path, name, reading, FX_CLASSES, _fill)


def check_fxgraph(entry: Entry, data: bytes, reading: Reading) -> tuple[str | None, int | None]:
    """Fill the row of one FX graph entry from its bytes; return what is wrong and at which byte, if anything."""
    return check_entry(entry, data, reading, FX_CLASSES, _fill)


def _fill(entry: Entry, graph: Stub, reading: Reading) -> str | None:
    damage = take_graph(entry, graph)
    state = graph.state
    entry.time_taken_ns = nanoseconds(state.get("_time_taken_ns"))
    entry.details, wrong = add_hash_details(state.get("_fx_graph_cache_debug_lines"), reading)
    key = text(state.get("_fx_graph_cache_key"))
    if key is not None and key != entry.cache_key:
        wrong = f"holds the entry of another key: {key[:60]}"
    return damage or wrong


def take_graph(entry: Entry, graph: Stub) -> str | None:
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
