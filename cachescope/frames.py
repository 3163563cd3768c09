"""The frames that are the contract: each column declared once, with its type, unit, meaning and torch name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

import pandas as pd

from cachescope.errors import NotFoundError
from cachescope.terms import ENTRY_KINDS, VERDICTS

_WHOLE: Final = "Int64"
_TEXT: Final = "str"
_FLAG: Final = "boolean"
_REAL: Final = "Float64"
_TIME: Final = "datetime64[ns, UTC]"
_TUPLE: Final = "object"


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a frame."""

    name: str
    dtype: str
    meaning: str
    unit: str = ""
    missing: str = "never"
    torch_name: str = ""


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame: its name, what one row is, and its columns in order."""

    name: str
    grain: str
    columns: tuple[Column, ...]

    def build(self, rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
        """A DataFrame of exactly these columns and types, also when there are no rows."""
        listed = list(rows)
        data = {c.name: _series([row[c.name] for row in listed], c.dtype) for c in self.columns}
        return pd.DataFrame(data)


def _series(values: list[Any], dtype: str) -> pd.Series[Any]:
    if dtype == _TIME:
        # Through integers: a float on the way would lose the nanoseconds.
        whole = pd.array(values, dtype="Int64")
        return pd.Series(pd.to_datetime(whole, unit="ns", utc=True)).astype(_TIME)
    if dtype == _TUPLE:
        return pd.Series(values, dtype=object)
    return pd.Series(values, dtype=dtype)


RUNS: Final = Frame(
    "runs",
    "one process",
    (
        Column("run", _WHOLE, "number of the process, in the order of the start times"),
        Column("source", _TEXT, "the first file that tells of it, as given"),
        Column("sources", _TUPLE, "every file that tells of it"),
        Column("pid", _WHOLE, "process id", missing="the log has none (TORCH_LOGS_FORMAT=short)"),
        Column("rank", _WHOLE, "rank in a distributed job", missing="not distributed, or not said"),
        Column("torch_version", _TEXT, "version of torch", missing="not in the log (before 2.11)",
               torch_name="trace artifact torch_version"),
        Column("python_version", _TEXT, "version of Python", missing="not in the log",
               torch_name="compilation_metrics.python_version"),
        Column("start_time", _TIME, "first record", "UTC", "the log has no times"),
        Column("end_time", _TIME, "last record", "UTC", "the log has no times"),
        Column("cache_dir", _TEXT, "the cache directory", missing="not in the log",
               torch_name="TORCHINDUCTOR_CACHE_DIR"),
        Column("looked_up", _FLAG, "False where it compiled and looked nothing up: its caches were off"),
    ),
)  # fmt: skip

LOOKUPS: Final = Frame(
    "lookups",
    "one lookup: one attempt to find one key in one cache",
    (
        Column("lookup", _WHOLE, "number of the lookup: runs in order, then in the order torch made them"),
        Column("run", _WHOLE, "the process, an id into runs"),
        Column("order", _WHOLE, "place among the lookups of the run, from 0"),
        Column("time", _TIME, "when it was made", "UTC", "the log has no times", "cache_event_time"),
        Column("end_time", _TIME, "when torch wrote about it; for a miss the end of the compile", "UTC",
               "only traces tell"),
        Column("cache", _TEXT, "aotautograd or fxgraph"),
        Column("cache_key", _TEXT, "the key", missing="bypassed before there was one", torch_name="key"),
        Column("outcome", _TEXT, "hit, full_miss, guard_miss, bypass or disabled"),
        Column("cache_state", _TEXT, "torch's own word", missing="not recorded", torch_name="cache_state"),
        Column("status_detailed", _TEXT, "torch's own finer word", missing="not recorded (before 2.8, text logs)",
               torch_name="cache_status_detailed"),
        Column("compile_id", _TEXT, "frame / compile of that frame", missing="not recorded",
               torch_name="CompileId"),
        Column("direction", _TEXT, "forward, backward or inference (FX)",
               missing="not recorded; AOTAutograd keys cover both directions"),
        Column("is_backward", _FLAG, "whether the graph is a backward graph", missing="not recorded",
               torch_name="fx_kwargs[is_backward]"),
        Column("aot_lookup", _WHOLE, "the AOTAutograd lookup of the same compile before it",
               missing="none, or this is one"),
        Column("bypass_reason", _TEXT, "why torch would not cache", missing="not bypassed",
               torch_name="cache_bypass_reason"),
        Column("save_bypass", _TEXT, "why the result of this miss was not stored", missing="stored, or not said"),
        Column("load_error", _TEXT, "why a stored entry could not be loaded", missing="none, or not in a text log"),
        Column("guards_expr", _TEXT, "guards of the candidate (of a guard miss: of the last one)",
               missing="no guards, or not recorded", torch_name="cache_status_guard_expr"),
        Column("time_taken_ns", _WHOLE, "compile time after the miss", "ns", "a hit, or not recorded", "time_taken_ns"),
        Column("time_saved_ns", _WHOLE, "compile time that the hit saved, as measured when the entry was made",
               "ns", "no hit, or not recorded", "time_saved_ns"),
        Column("details", _TEXT, "where the hash details are from: recorded, from_entry (the entry of the same key), "
               "from_log (another record of the same key) or not_recorded"),
        Column("detail_set", _WHOLE, "code of the set of hash details; equal sets have equal codes",
               missing="details are not_recorded"),
        Column("entry_path", _TEXT, "where torch wrote the entry", missing="not said (only AOTAutograd text logs say)"),
    ),
)  # fmt: skip

MISSES: Final = Frame(
    "misses",
    "one lookup that did not hit",
    (
        Column("lookup", _WHOLE, "an id into lookups"),
        Column("verdict", _TEXT, "why it missed: " + ", ".join(VERDICTS)),
        Column(
            "baseline", _TEXT, "what it is compared with, as ``lookup 3`` or ``entry 5``", missing="nothing"
        ),
        Column("baseline_lookup", _WHOLE, "the earlier lookup it is compared with", missing="an entry, or none"),
        Column("baseline_entry", _WHOLE, "the entry it is compared with", missing="a lookup, or none"),
        Column("changed", _TUPLE, "fields whose hash differs, is new or is gone; empty unless key_changed"),
        Column("root", _FLAG, "False where it only follows from another miss"),
        Column("cause", _WHOLE, "an id into causes"),
        Column("reason", _TEXT, "one sentence"),
    ),
)  # fmt: skip

CAUSES: Final = Frame(
    "causes",
    "one distinct reason",
    (
        Column("cause", _WHOLE, "number of the cause, by time lost, then by misses"),
        Column("verdict", _TEXT, "verdict of its root misses"),
        Column("fields", _TUPLE, "the changed fields of its root misses"),
        Column("misses", _WHOLE, "misses that have this cause, consequences among them"),
        Column("roots", _WHOLE, "misses that do not follow from another one"),
        Column("runs", _TUPLE, "ids of the runs"),
        Column("ranks", _TUPLE, "ranks, where known"),
        Column("time_lost_ns", _WHOLE, "compile time of its misses", "ns", "not recorded"),
        Column("summary", _TEXT, "what it is, in a few words"),
        Column("advice", _TEXT, "what sets the field and how to keep it equal", missing="nothing certain to say"),
    ),
)  # fmt: skip

ENTRIES: Final = Frame(
    "entries",
    "one file in a cache directory",
    (
        Column("entry", _WHOLE, "number of the entry"),
        Column("cache", _TEXT, 'what the file is: ``describe("entry_kinds")``'),
        Column("cache_key", _TEXT, "the key, from the name of the file or of its folder; of a lock, what it is for",
               missing="the name holds none"),
        Column("path", _TEXT, "path, as reached from the source given"),
        Column("root", _TEXT, "the cache directory"),
        Column("size_bytes", _WHOLE, "size of the file; of a link, its own", "bytes"),
        Column("modified_time", _TIME, "last written", "UTC"),
        Column("status", _TEXT, "ok, damaged, temporary (being written, or left behind) or foreign (not known to be "
               "torch's, or no file)"),
        Column("damage", _TEXT, "what is wrong with it", missing="nothing"),
        Column("guards_expr", _TEXT, "guards that must hold for it", missing="none", torch_name="guards_expr"),
        Column("time_taken_ns", _WHOLE, "compile time it stands for", "ns", "not stored", "_time_taken_ns"),
        Column("code_key", _TEXT, "key of its generated code", missing="not an FX entry", torch_name="cache_key"),
        Column("device_types", _TUPLE, "devices it runs on", torch_name="device_types"),
        Column("fx_keys", _TUPLE, "FX keys an AOTAutograd entry points to, or a mega-cache holds",
               torch_name="fx_graph_cache_info"),
        Column("detail_set", _WHOLE, "code of its set of hash details",
               missing="not stored (before 2.8, AOTAutograd)", torch_name="_fx_graph_cache_debug_lines"),
        Column("name", _TEXT, "what it is of: a kernel, a memoized function, a device", missing="its key says all"),
        Column("detail", _TEXT, "what the file says, in a few words", missing="nothing beyond the other columns"),
    ),
)  # fmt: skip

AUTOTUNE: Final = Frame(
    "autotune",
    "one choice that max-autotune measured for one operator, its inputs and a precision",
    (
        Column("entry", _WHOLE, "the file, an id into entries"),
        Column("op", _TEXT, "the operator"),
        Column("inputs", _TEXT, "its inputs, as torch printed them"),
        Column("precision", _TEXT, "float32 matmul precision", torch_name="torch.get_float32_matmul_precision"),
        Column("choice", _TEXT, "the kernel, by the hash or name that torch gave it", torch_name="hash_key"),
        Column("time_ms", _REAL, "measured time", "ms", "the choice failed"),
        Column("is_failed", _FLAG, "whether it could not be run (stored as Infinity)"),
        Column("is_chosen", _FLAG, "whether it is the fastest"),
        Column("margin", _REAL, "time of the second best / its own", missing="not the fastest, or the only one"),
        Column("device_name", _TEXT, "the device it was measured on", missing="not said: a CPU",
               torch_name="system.device.name"),
        Column("triton_version", _TEXT, "version of Triton", missing="not said", torch_name="system.version.triton"),
        Column("runtime", _TEXT, "cuda or hip", missing="neither", torch_name="system.version"),
        Column("runtime_version", _TEXT, "its version", missing="neither", torch_name="system.version"),
    ),
)  # fmt: skip

CONTEXTS: Final = Frame(
    "contexts",
    "one captured context",
    (
        Column("context", _WHOLE, "number of the context"),
        Column("source", _TEXT, "the snapshot it is from"),
        Column("run", _WHOLE, "the process", missing="a snapshot of no recorded run"),
        Column("inductor_configs", _TEXT, "context form, as JSON", missing="not known"),
        Column("torch_determinism_configs", _TEXT, "context form, as JSON", missing="not known"),
        Column("cuda_matmul_precision_configs", _TEXT, "context form, as JSON", missing="not known"),
        Column("torch_version_hash", _TEXT, "context form, base64 of torch's own key", missing="not known"),
        Column("triton_version_hash", _TEXT, "context form, Triton's own key", missing="no Triton"),
        Column("runtime", _TEXT, "context form, CUDA or HIP: how torch was built", missing="a CPU build"),
        Column("runtime_version", _TEXT, "context form", missing="a CPU build"),
        Column("accelerator_properties", _TEXT, "context form, repr of the device's properties", missing="no device"),
        Column("missing_forms", _TUPLE, "forms that could not be known"),
    ),
)  # fmt: skip

DEVICES: Final = Frame(
    "devices",
    "one device seen anywhere",
    (
        Column("device", _WHOLE, "number of the device"),
        Column("name", _TEXT, "its name, or its type where no name is known"),
        Column("seen_in", _TUPLE, "where it was seen"),
    ),
)

PROBLEMS: Final = Frame(
    "problems",
    "one thing that could not be read",
    (
        Column("source", _TEXT, "the file"),
        Column("where", _TEXT, "byte, line or key"),
        Column("kind", _TEXT, "truncated, not_json, not_a_record, hash_detail, damaged_entry, …"),
        Column("message", _TEXT, "what is wrong"),
    ),
)

GUARDS: Final = Frame(
    "guards",
    "one candidate: an entry under its key, told apart from the others there by its guards",
    (
        Column("entry", _WHOLE, "an id into entries"),
        Column("cache", _TEXT, "aotautograd or fxgraph"),
        Column("cache_key", _TEXT, "the key"),
        Column("modified_time", _TIME, "when it was made", "UTC", "vanished while being read"),
        Column("guards_expr", _TEXT, "what must hold; see cachescope.holds", missing="no guards: it fits always",
               torch_name="guards_expr"),
        Column("symbols", _TUPLE, "the sizes that the guards speak of"),
    ),
)  # fmt: skip

PAST_MISSES: Final = Frame(
    "past_misses",
    "one FX graph entry that was made although its graph had been stored before: a miss read from the directory",
    (
        Column("entry", _WHOLE, "the entry that the miss made, an id into entries"),
        Column("cache_key", _TEXT, "its key"),
        Column("graph", _WHOLE, "number of the graph (equal gm, equal direction), in the order of first entries"),
        Column("direction", _TEXT, "forward, backward or inference", missing="not recorded"),
        Column("made_time", _TIME, "when it was made", "UTC", "vanished while being read"),
        Column("verdict", _TEXT, "key_changed; under one key guard_failed for other guards, and "
               "entry_unavailable for equal ones: raced for, or made again"),
        Column("baseline_entry", _WHOLE, "the earlier entry of the graph that it is compared with"),
        Column("changed", _TUPLE, "fields whose hash differs; empty under one key"),
        Column("same_code", _FLAG, "whether both have byte-identical generated source (equal code keys): the changed "
               "fields were not needed for this graph, as far as its source tells", missing="a code key is not stored"),
        Column("time_taken_ns", _WHOLE, "compile time of the entry", "ns", "not stored"),
    ),
)  # fmt: skip

KERNELS: Final = Frame(
    "kernels",
    "one kernel of one FX graph entry",
    (
        Column("entry", _WHOLE, "an id into entries"),
        Column("order", _WHOLE, "place among the kernels of the entry: those it defines, then the calls of libraries"),
        Column("kernel", _TEXT, "its name"),
        Column("kind", _TEXT, "cpp, triton or another backend that generates it; extern for a library's",
               torch_name="AsyncCompile"),
        Column("source_nodes", _TUPLE, "nodes of the graph it computes; empty where torch wrote no comment above it",
               torch_name="Source Nodes"),
        Column("aten_ops", _TUPLE, "ATen operators it stands for", torch_name="Original ATen"),
    ),
)  # fmt: skip

LINKS: Final = Frame(
    "links",
    "one reference from a file of a cache directory to another",
    (
        Column("parent", _WHOLE, "the file that refers, an id into entries"),
        Column("parent_kind", _TEXT, "its kind"),
        Column("child", _WHOLE, "the file it refers to, an id into entries", missing="it is gone"),
        Column("child_kind", _TEXT, "its kind"),
        Column("child_key", _TEXT, "the key by which it is known"),
        Column("known_by", _TEXT, "where the reference was read"),
    ),
)  # fmt: skip

ORPHANS: Final = Frame(
    "orphans",
    "one file whose other side is gone, or that nothing refers to",
    (
        Column("entry", _WHOLE, "the file, an id into entries"),
        Column("cache", _TEXT, "its kind"),
        Column("reason", _TEXT, "what is missing"),
    ),
)  # fmt: skip

REMOVABLE: Final = Frame(
    "removable",
    "one file that can go without a later process noticing",
    (
        Column("entry", _WHOLE, "the file, an id into entries"),
        Column("cache", _TEXT, "its kind"),
        Column("path", _TEXT, "where it is"),
        Column("size_bytes", _WHOLE, "what it takes", "bytes"),
        Column("reason", _TEXT, "why nothing needs it"),
    ),
)

HASH_DETAILS: Final = Frame(
    "hash_details",
    "one hash detail of one key",
    (
        Column("field", _TEXT, "path of the field"),
        Column("detail_hash", _TEXT, "torch's hash of its value"),
        Column("value_text", _TEXT, "the value as torch printed it; may be cut, and may hold addresses"),
    ),
)

HIT_RATES: Final = Frame(
    "hit_rates",
    "one group of lookups",
    (
        Column("lookups", _WHOLE, "lookups"),
        Column("hits", _WHOLE, "lookups that hit"),
        Column("misses", _WHOLE, "full misses and guard misses"),
        Column("bypasses", _WHOLE, "lookups that torch bypassed or had switched off"),
        Column("hit_rate", _REAL, "hits / lookups", missing="no lookups"),
        Column("time_saved_ns", _WHOLE, "compile time saved by the hits", "ns", "not recorded"),
        Column("time_lost_ns", _WHOLE, "compile time taken after the misses", "ns", "not recorded"),
        Column("time_hit_rate", _REAL, "saved / (saved + lost)", missing="no times recorded"),
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
        HIT_RATES,
    )
}


def records(frame: pd.DataFrame, names: Iterable[str] | None = None) -> list[dict[str, Any]]:
    """Rows as dictionaries of plain Python values; times as nanoseconds, missing values as None.

    Parameters
    ----------
    frame : DataFrame
    names : iterable of str, optional
        Columns to take; all of them by default.
    """
    columns: dict[str, list[Any]] = {}
    for name in frame.columns if names is None else names:
        series = frame[name]
        if isinstance(series.dtype, pd.DatetimeTZDtype):
            present = series.notna()
            series = series.astype("int64").astype("Int64").where(present)
        columns[name] = [None if _is_missing(value) else value for value in series.tolist()]
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def _is_missing(value: object) -> bool:
    return value is None or value is pd.NA or (isinstance(value, float) and value != value)


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
