"""The frames that are the contract: each column declared once, with its type, unit, meaning and torch name."""

from __future__ import annotations

from dataclasses import fields
from typing import Final

import pandas as pd

from cachescope.columns import FLAG, REAL, TEXT, TIME, TUPLE, WHOLE, Column, Frame
from cachescope.errors import NotFoundError
from cachescope.terms import ENTRY_KINDS, VERDICTS

RUNS: Final = Frame(
    "runs",
    "one process",
    (
        Column("run", WHOLE, "number of the process, in the order of the start times"),
        Column("source", TEXT, "the first file that tells of it, as given"),
        Column("sources", TUPLE, "every file that tells of it"),
        Column("pid", WHOLE, "process id", missing="the log has none (TORCH_LOGS_FORMAT=short)"),
        Column("rank", WHOLE, "rank in a distributed job", missing="not distributed, or not said"),
        Column("torch_version", TEXT, "version of torch", missing="not in the log (before 2.11)",
               torch_name="trace artifact torch_version"),
        Column("python_version", TEXT, "version of Python", missing="not in the log",
               torch_name="compilation_metrics.python_version"),
        Column("start_time", TIME, "first record", "UTC", "the log has no times"),
        Column("end_time", TIME, "last record", "UTC", "the log has no times"),
        Column("cache_dir", TEXT, "the cache directory", missing="not in the log",
               torch_name="TORCHINDUCTOR_CACHE_DIR"),
        Column("looked_up", FLAG, "False where it compiled and looked nothing up: its caches were off"),
    ),
)  # fmt: skip

LOOKUPS: Final = Frame(
    "lookups",
    "one lookup: one attempt to find one key in one cache",
    (
        Column("lookup", WHOLE, "number of the lookup: runs in order, then in the order torch made them"),
        Column("run", WHOLE, "the process, an id into runs"),
        Column("order", WHOLE, "place among the lookups of the run, from 0"),
        Column("time", TIME, "when it was made", "UTC", "the log has no times", "cache_event_time"),
        Column("end_time", TIME, "when torch wrote about it; for a miss the end of the compile", "UTC",
               "only traces tell"),
        Column("cache", TEXT, "aotautograd or fxgraph"),
        Column("cache_key", TEXT, "the key", missing="bypassed before there was one", torch_name="key"),
        Column("outcome", TEXT, "hit, full_miss, guard_miss, bypass or disabled"),
        Column("cache_state", TEXT, "torch's own word", missing="not recorded", torch_name="cache_state"),
        Column("status_detailed", TEXT, "torch's own finer word", missing="not recorded (before 2.8, text logs)",
               torch_name="cache_status_detailed"),
        Column("compile_id", TEXT, "frame / compile of that frame", missing="not recorded",
               torch_name="CompileId"),
        Column("direction", TEXT, "forward, backward or inference (FX)",
               missing="not recorded; AOTAutograd keys cover both directions"),
        Column("is_backward", FLAG, "whether the graph is a backward graph", missing="not recorded",
               torch_name="fx_kwargs[is_backward]"),
        Column("aot_lookup", WHOLE, "the AOTAutograd lookup of the same compile before it",
               missing="none, or this is one"),
        Column("bypass_reason", TEXT, "why torch would not cache", missing="not bypassed",
               torch_name="cache_bypass_reason"),
        Column("save_bypass", TEXT, "why the result of this miss was not stored", missing="stored, or not said"),
        Column("load_error", TEXT, "why a stored entry could not be loaded", missing="none, or not in a text log"),
        Column("guards_expr", TEXT, "guards of the candidate (of a guard miss: of the last one)",
               missing="no guards, or not recorded", torch_name="cache_status_guard_expr"),
        Column("time_taken_ns", WHOLE, "compile time after the miss", "ns", "a hit, or not recorded", "time_taken_ns"),
        Column("time_saved_ns", WHOLE, "compile time that the hit saved, as measured when the entry was made",
               "ns", "no hit, or not recorded", "time_saved_ns"),
        Column("details", TEXT, "where the hash details are from: recorded, from_entry (the entry of the same key), "
               "from_log (another record of the same key) or not_recorded"),
        Column("detail_set", WHOLE, "code of the set of hash details; equal sets have equal codes",
               missing="details are not_recorded"),
        Column("entry_path", TEXT, "where torch wrote the entry", missing="not said (only AOTAutograd text logs say)"),
    ),
)  # fmt: skip

MISSES: Final = Frame(
    "misses",
    "one lookup that did not hit",
    (
        Column("lookup", WHOLE, "an id into lookups"),
        Column("verdict", TEXT, "why it missed: " + ", ".join(VERDICTS)),
        Column(
            "baseline", TEXT, "what it is compared with, as ``lookup 3`` or ``entry 5``", missing="nothing"
        ),
        Column("baseline_lookup", WHOLE, "the earlier lookup it is compared with", missing="an entry, or none"),
        Column("baseline_entry", WHOLE, "the entry it is compared with", missing="a lookup, or none"),
        Column("changed", TUPLE, "fields whose hash differs, is new or is gone; empty unless key_changed"),
        Column("root", FLAG, "False where it only follows from another miss"),
        Column("cause", WHOLE, "an id into causes"),
        Column("reason", TEXT, "one sentence"),
    ),
)  # fmt: skip

CAUSES: Final = Frame(
    "causes",
    "one distinct reason",
    (
        Column("cause", WHOLE, "number of the cause, by time lost, then by misses"),
        Column("verdict", TEXT, "verdict of its root misses"),
        Column("fields", TUPLE, "the changed fields of its root misses"),
        Column("misses", WHOLE, "misses that have this cause, consequences among them"),
        Column("roots", WHOLE, "misses that do not follow from another one"),
        Column("runs", TUPLE, "ids of the runs"),
        Column("ranks", TUPLE, "ranks, where known"),
        Column("time_lost_ns", WHOLE, "compile time of its misses", "ns", "not recorded"),
        Column("summary", TEXT, "what it is, in a few words"),
        Column("advice", TEXT, "what sets the field and how to keep it equal", missing="nothing certain to say"),
    ),
)  # fmt: skip

ENTRIES: Final = Frame(
    "entries",
    "one file in a cache directory",
    (
        Column("entry", WHOLE, "number of the entry"),
        Column("cache", TEXT, 'what the file is: ``describe("entry_kinds")``'),
        Column("cache_key", TEXT, "the key, from the name of the file or of its folder; of a lock, what it is for",
               missing="the name holds none"),
        Column("path", TEXT, "path, as reached from the source given"),
        Column("root", TEXT, "the cache directory"),
        Column("size_bytes", WHOLE, "size of the file; of a link, its own", "bytes"),
        Column("modified_time", TIME, "last written", "UTC"),
        Column("status", TEXT, "ok, damaged, temporary (being written, or left behind) or foreign (not known to be "
               "torch's, or no file)"),
        Column("damage", TEXT, "what is wrong with it", missing="nothing"),
        Column("guards_expr", TEXT, "guards that must hold for it", missing="none", torch_name="guards_expr"),
        Column("time_taken_ns", WHOLE, "compile time it stands for", "ns", "not stored", "_time_taken_ns"),
        Column("code_key", TEXT, "key of its generated code", missing="not an FX entry", torch_name="cache_key"),
        Column("device_types", TUPLE, "devices it runs on", torch_name="device_types"),
        Column("fx_keys", TUPLE, "FX keys an AOTAutograd entry points to, or a mega-cache holds",
               torch_name="fx_graph_cache_info"),
        Column("detail_set", WHOLE, "code of its set of hash details",
               missing="not stored (before 2.8, AOTAutograd)", torch_name="_fx_graph_cache_debug_lines"),
        Column("name", TEXT, "what it is of: a kernel, a memoized function, a device", missing="its key says all"),
        Column("detail", TEXT, "what the file says, in a few words", missing="nothing beyond the other columns"),
    ),
)  # fmt: skip

AUTOTUNE: Final = Frame(
    "autotune",
    "one choice that max-autotune measured for one operator, its inputs and a precision",
    (
        Column("entry", WHOLE, "the file, an id into entries"),
        Column("op", TEXT, "the operator"),
        Column("inputs", TEXT, "its inputs, as torch printed them"),
        Column("precision", TEXT, "float32 matmul precision", torch_name="torch.get_float32_matmul_precision"),
        Column("choice", TEXT, "the kernel, by the hash or name that torch gave it", torch_name="hash_key"),
        Column("time_ms", REAL, "measured time", "ms", "the choice failed"),
        Column("is_failed", FLAG, "whether it could not be run (stored as Infinity)"),
        Column("is_chosen", FLAG, "whether it is the fastest"),
        Column("margin", REAL, "time of the second best / its own", missing="not the fastest, or the only one"),
        Column("device_name", TEXT, "the device it was measured on", missing="not said: a CPU",
               torch_name="system.device.name"),
        Column("triton_version", TEXT, "version of Triton", missing="not said", torch_name="system.version.triton"),
        Column("runtime", TEXT, "cuda or hip", missing="neither", torch_name="system.version"),
        Column("runtime_version", TEXT, "its version", missing="neither", torch_name="system.version"),
    ),
)  # fmt: skip

CONTEXTS: Final = Frame(
    "contexts",
    "one captured context",
    (
        Column("context", WHOLE, "number of the context"),
        Column("source", TEXT, "the snapshot it is from"),
        Column("run", WHOLE, "the process", missing="a snapshot of no recorded run"),
        Column("inductor_configs", TEXT, "context form, as JSON", missing="not known"),
        Column("torch_determinism_configs", TEXT, "context form, as JSON", missing="not known"),
        Column("cuda_matmul_precision_configs", TEXT, "context form, as JSON", missing="not known"),
        Column("torch_version_hash", TEXT, "context form, base64 of torch's own key", missing="not known"),
        Column("triton_version_hash", TEXT, "context form, Triton's own key", missing="no Triton"),
        Column("runtime", TEXT, "context form, CUDA or HIP: how torch was built", missing="a CPU build"),
        Column("runtime_version", TEXT, "context form", missing="a CPU build"),
        Column("accelerator_properties", TEXT, "context form, repr of the device's properties", missing="no device"),
        Column("missing_forms", TUPLE, "forms that could not be known"),
    ),
)  # fmt: skip

DEVICES: Final = Frame(
    "devices",
    "one device seen anywhere",
    (
        Column("device", WHOLE, "number of the device"),
        Column("name", TEXT, "its name, or its type where no name is known"),
        Column("seen_in", TUPLE, "where it was seen"),
    ),
)

PROBLEMS: Final = Frame(
    "problems",
    "one thing that could not be read",
    (
        Column("source", TEXT, "the file"),
        Column("where", TEXT, "byte, line or key"),
        Column("kind", TEXT, "truncated, not_json, not_a_record, hash_detail, damaged_entry, …"),
        Column("message", TEXT, "what is wrong"),
    ),
)

GUARDS: Final = Frame(
    "guards",
    "one candidate: an entry under its key, told apart from the others there by its guards",
    (
        Column("entry", WHOLE, "an id into entries"),
        Column("cache", TEXT, "aotautograd or fxgraph"),
        Column("cache_key", TEXT, "the key"),
        Column("modified_time", TIME, "when it was made", "UTC", "vanished while being read"),
        Column("guards_expr", TEXT, "what must hold; see cachescope.holds", missing="no guards: it fits always",
               torch_name="guards_expr"),
        Column("symbols", TUPLE, "the sizes that the guards speak of"),
    ),
)  # fmt: skip

PAST_MISSES: Final = Frame(
    "past_misses",
    "one FX graph entry that was made although its graph had been stored before: a miss read from the directory",
    (
        Column("entry", WHOLE, "the entry that the miss made, an id into entries"),
        Column("cache_key", TEXT, "its key"),
        Column("graph", WHOLE, "number of the graph (equal gm, equal direction), in the order of first entries"),
        Column("direction", TEXT, "forward, backward or inference", missing="not recorded"),
        Column("made_time", TIME, "when it was made", "UTC", "vanished while being read"),
        Column("verdict", TEXT, "key_changed; under one key guard_failed for other guards, and "
               "entry_unavailable for equal ones: raced for, or made again"),
        Column("baseline_entry", WHOLE, "the earlier entry of the graph that it is compared with"),
        Column("changed", TUPLE, "fields whose hash differs; empty under one key"),
        Column("same_code", FLAG, "whether both have byte-identical generated source (equal code keys): the changed "
               "fields were not needed for this graph, as far as its source tells", missing="a code key is not stored"),
        Column("time_taken_ns", WHOLE, "compile time of the entry", "ns", "not stored"),
    ),
)  # fmt: skip

KERNELS: Final = Frame(
    "kernels",
    "one kernel of one FX graph entry",
    (
        Column("entry", WHOLE, "an id into entries"),
        Column("order", WHOLE, "place among the kernels of the entry: those it defines, then the calls of libraries"),
        Column("kernel", TEXT, "its name"),
        Column("kind", TEXT, "cpp, triton or another backend that generates it; extern for a library's",
               torch_name="AsyncCompile"),
        Column("source_nodes", TUPLE, "nodes of the graph it computes; empty where torch wrote no comment above it",
               torch_name="Source Nodes"),
        Column("aten_ops", TUPLE, "ATen operators it stands for", torch_name="Original ATen"),
    ),
)  # fmt: skip

LINKS: Final = Frame(
    "links",
    "one reference from a file of a cache directory to another",
    (
        Column("parent", WHOLE, "the file that refers, an id into entries"),
        Column("parent_kind", TEXT, "its kind"),
        Column("child", WHOLE, "the file it refers to, an id into entries", missing="it is gone"),
        Column("child_kind", TEXT, "its kind"),
        Column("child_key", TEXT, "the key by which it is known"),
        Column("known_by", TEXT, "where the reference was read"),
    ),
)  # fmt: skip

ORPHANS: Final = Frame(
    "orphans",
    "one file whose other side is gone, or that nothing refers to",
    (
        Column("entry", WHOLE, "the file, an id into entries"),
        Column("cache", TEXT, "its kind"),
        Column("reason", TEXT, "what is missing"),
    ),
)  # fmt: skip

REMOVABLE: Final = Frame(
    "removable",
    "one file that can go without a later process noticing",
    (
        Column("entry", WHOLE, "the file, an id into entries"),
        Column("cache", TEXT, "its kind"),
        Column("path", TEXT, "where it is"),
        Column("size_bytes", WHOLE, "what it takes", "bytes"),
        Column("reason", TEXT, "why nothing needs it"),
    ),
)

HASH_DETAILS: Final = Frame(
    "hash_details",
    "one hash detail of one key",
    (
        Column("field", TEXT, "path of the field"),
        Column("detail_hash", TEXT, "torch's hash of its value"),
        Column("value_text", TEXT, "the value as torch printed it; may be cut, and may hold addresses"),
    ),
)

CHANGES: Final = Frame(
    "changes",
    "one field of a key that changed against the baseline: the frame of an explanation",
    (
        Column("field", TEXT, "path of the field"),
        Column("kind", TEXT, "graph, tensor, value, opaque, new or gone"),
        Column("summary", TEXT, "what changed, in one line"),
        Column("before", TEXT, "the value as torch printed it", missing="the field is new"),
        Column("after", TEXT, "the value as torch printed it", missing="the field is gone"),
    ),
)

HIT_RATES: Final = Frame(
    "hit_rates",
    "one group of lookups",
    (
        Column("lookups", WHOLE, "lookups"),
        Column("hits", WHOLE, "lookups that hit"),
        Column("misses", WHOLE, "full misses and guard misses"),
        Column("bypasses", WHOLE, "lookups that torch bypassed or had switched off"),
        Column("hit_rate", REAL, "hits / lookups", missing="no lookups"),
        Column("time_saved_ns", WHOLE, "compile time saved by the hits", "ns", "not recorded"),
        Column("time_lost_ns", WHOLE, "compile time taken after the misses", "ns", "not recorded"),
        Column("time_hit_rate", REAL, "saved / (saved + lost)", missing="no times recorded"),
    ),
)

FRAMES: Final = {
    frame.name: frame
    for frame in (
        RUNS,
        LOOKUPS,
        MISSES,
        CAUSES,
        ENTRIES,
        CONTEXTS,
        DEVICES,
        PROBLEMS,
        GUARDS,
        PAST_MISSES,
        KERNELS,
        LINKS,
        ORPHANS,
        REMOVABLE,
        AUTOTUNE,
        HASH_DETAILS,
        CHANGES,
        HIT_RATES,
    )
}


def describe(name: str | None = None) -> pd.DataFrame:
    """What a frame holds.

    Parameters
    ----------
    name : str, optional
        A frame, ``"verdicts"`` or ``"entry_kinds"``. Without it, the list of frames.

    Returns
    -------
    DataFrame
        One row per column: column, dtype, unit, meaning, missing (what a missing value means), torch_name.

    Raises
    ------
    NotFoundError
        If there is no such frame.

    Examples
    --------
    >>> import cachescope
    >>> cachescope.describe("problems")["column"].tolist()
    ['source', 'where', 'kind', 'message']
    """
    if name is None:
        rows = [{"frame": f.name, "grain": f.grain, "columns": len(f.columns)} for f in FRAMES.values()]
        return pd.DataFrame(rows)
    if name == "verdicts":
        return pd.DataFrame([{"verdict": v, "meaning": text} for v, text in VERDICTS.items()])
    if name == "entry_kinds":
        return pd.DataFrame([{"entry_kind": k, "meaning": text} for k, text in ENTRY_KINDS.items()])
    if name not in FRAMES:
        raise NotFoundError(f"no frame {name!r}; there are {', '.join(FRAMES)}, verdicts and entry_kinds")
    rename = {"name": "column"}
    rows = [
        {rename.get(f.name, f.name): getattr(column, f.name) for f in fields(Column)}
        for column in FRAMES[name].columns
    ]
    return pd.DataFrame(rows)[["column", "dtype", "unit", "meaning", "missing", "torch_name"]]
