"""Frames of recorded facts: runs, lookups, hash details and problems in reading."""

from __future__ import annotations

from typing import Final

from cachescope.columns import FLAG, TEXT, TIME, TUPLE, WHOLE, Column, Frame

RUNS: Final = Frame(
    "runs",
    "one process",
    (
        Column("run", WHOLE, "number of the process, in the order of the start times"),
        Column("source", TEXT, "the first file that has records of it, as given"),
        Column("sources", TUPLE, "every file that has records of it"),
        Column("pid", WHOLE, "process id", missing="the log has none (TORCH_LOGS_FORMAT=short)"),
        Column("rank", WHOLE, "rank in a distributed job", missing="not distributed, or not recorded"),
        Column("torch_version", TEXT, "version of torch", missing="not in the log (before 2.11)",
               torch_name="trace artifact torch_version"),
        Column("python_version", TEXT, "version of Python", missing="not in the log",
               torch_name="compilation_metrics.python_version"),
        Column("start_time", TIME, "first record", "UTC", "the log has no times"),
        Column("end_time", TIME, "last record", "UTC", "the log has no times"),
        Column("cache_dir", TEXT, "the cache directory", missing="not in the log",
               torch_name="TORCHINDUCTOR_CACHE_DIR"),
        Column("command", TEXT, "the program that was run", missing="not recorded with cachescope record"),
        Column("exit_status", WHOLE, "exit status of the command; 128 + n if signal n ended it",
               missing="not recorded with cachescope record"),
        Column("command_start_time", TIME, "when the command began; its imports come before the first record",
               "UTC", "not recorded with cachescope record"),
        Column("command_end_time", TIME, "when the command ended", "UTC",
               "not recorded with cachescope record, or still running"),
        Column("is_cut", FLAG, "whether its log ends in the middle of a record: the process was killed, or the log was cut"),
        Column("looked_up", FLAG, "False if it compiled but looked nothing up: its caches were off"),
        Column("is_preflight", FLAG, "whether it was a pre-flight: it compiled nothing, and its lookups are predicted"),
    ),
)  # fmt: skip

LOOKUPS: Final = Frame(
    "lookups",
    "one lookup: one attempt to find one key in one cache",
    (
        Column("lookup", WHOLE, "number of the lookup: by run, then in the order in which torch made them"),
        Column("run", WHOLE, "the process, an id into runs"),
        Column("order", WHOLE, "position among the lookups of the run, from 0"),
        Column("time", TIME, "when it was made", "UTC", "the log has no times", "cache_event_time"),
        Column("end_time", TIME, "when torch logged it; for a miss, the end of the compile", "UTC",
               "only traces have it"),
        Column("cache", TEXT, "aotautograd, fxgraph, or vllm for vLLM's own cache: one start of one part of a model"),
        Column("cache_key", TEXT, "the key; for vLLM the name of its folder, or of the whole compiled model that it loaded",
               missing="bypassed before there was a key", torch_name="key"),
        Column("outcome", TEXT, "hit, full_miss, guard_miss, bypass, disabled or unknown; in a pre-flight would_hit, would_miss, "
               "would_bypass, disabled or not_known: `describe(\"outcomes\")`"),
        Column("cache_state", TEXT, "torch's own word", missing="not recorded", torch_name="cache_state"),
        Column("status_detailed", TEXT, "torch's own finer word", missing="not recorded (before 2.8, text logs)",
               torch_name="cache_status_detailed"),
        Column("compile_id", TEXT, "frame / compile of that frame", missing="not recorded",
               torch_name="CompileId"),
        Column("segment", WHOLE, "distinguishes compiles of a run with the same compile id, from 1: torch counts compile ids from 0 "
               "again after torch._dynamo.reset(); 0 if the log does not show the beginning of the compile (text logs)"),
        Column("direction", TEXT, "forward, backward or inference (FX)",
               missing="not recorded; AOTAutograd keys cover both directions"),
        Column("is_backward", FLAG, "whether the graph is a backward graph", missing="not recorded",
               torch_name="fx_kwargs[is_backward]"),
        Column("aot_lookup", WHOLE, "the preceding AOTAutograd lookup of the same compile",
               missing="there is none, or this is an AOTAutograd lookup"),
        Column("bypass_reason", TEXT, "why torch would not cache", missing="not bypassed",
               torch_name="cache_bypass_reason"),
        Column("bypass_exception", TEXT, "the class of the exception that bypassed it: BypassAOTAutogradCache if torch would not cache it, "
               "any other if an error ended the lookup (Exception if torch does not name the class, as in 2.6)",
               missing="not bypassed, or not recorded (fxgraph, text logs, or torch does not name the class, as in 2.6)", torch_name="cache_bypass_exception_type"),
        Column("aot_mode", FLAG, "True if AOTInductor compiled it, which never asks a cache",
               missing="False, or not recorded (a text log without TORCH_LOGS=+inductor, traces before 2.7)", torch_name="aot_mode"),
        Column("save_bypass", TEXT, "why torch would not store the result of this miss", missing="stored, or not recorded"),
        Column("save_error", TEXT, "why the result could not be stored, although torch wanted to",
               missing="stored, or no text log was read"),
        Column("compile_error", TEXT, "why the compile that it was part of failed",
               missing="it did not fail, or only a text log was read", torch_name="fail_type, fail_reason"),
        Column("compile_ended", FLAG, "False if the log ends before the compile after the miss does: the process ended, "
               "or is still running", missing="the log does not show it"),
        Column("load_error", TEXT, "why a stored entry could not be loaded; for vLLM, why a whole compiled model was not used",
               missing="none, or not in a text log"),
        Column("guards_expr", TEXT, "guards of the candidate (after a guard miss, of the last one)",
               missing="no guards, or not recorded", torch_name="cache_status_guard_expr"),
        Column("function", TEXT, "the user's function that was compiled; in a trace its caller, if torch compiles it through a wrapper",
               missing="not in a text log without Dynamo's messages (TORCH_LOGS=dynamo)", torch_name="dynamo_start"),
        Column("file", TEXT, "the file of the function", missing="as for function", torch_name="dynamo_start"),
        Column("line", WHOLE, "the line of the function", missing="as for function", torch_name="dynamo_start"),
        Column("time_taken_ns", WHOLE, "Inductor's compile time after the miss; for vLLM, what its log says that compiling took", "ns",
               "a hit, an AOTAutograd lookup, or not recorded (text logs); for vLLM also if compile times of torch were read, which are part of it",
               "time_taken_ns"),
        Column("time_saved_ns", WHOLE, "compile time that the hit saved, as measured when the entry was made; for an "
               "AOTAutograd hit it includes its FX graphs, so add up only one cache",
               "ns", "no hit, or not recorded (text logs)", "time_saved_ns"),
        Column("details", TEXT, "where the hash details come from: recorded, from_entry (the entry of the same key), "
               "from_log (another record of the same key), incomplete (lines are missing, so none are used) "
               "or not_recorded; always not_recorded for vLLM, whose factors are in vllm_factors"),
        Column("detail_set", WHOLE, "code of the set of hash details; equal sets have equal codes",
               missing="details are not_recorded or incomplete"),
        Column("entry_path", TEXT, "where torch wrote the entry", missing="not recorded (only AOTAutograd text logs have it)"),
        Column("prediction", TEXT, "for a lookup predicted by a pre-flight: the basis of its outcome", missing="a real lookup"),
        Column("predicted_entry", WHOLE, "the entry that it would find, an id into entries",
               missing="none, or the program itself stored it, or it is known only from a recording"),
        Column("preflight_note", TEXT, "what a pre-flight noted about it, as JSON: the sizes in guards, the directory, "
               "what would be stored", missing="not a lookup of a pre-flight"),
    ),
)  # fmt: skip

HASH_DETAILS: Final = Frame(
    "hash_details",
    "one hash detail of one key",
    (
        Column("field", TEXT, "path of the field"),
        Column("detail_hash", TEXT, "torch's hash of its value"),
        Column("value_text", TEXT, "the value as torch printed it; may be cut, and may contain addresses"),
    ),
)

PROBLEMS: Final = Frame(
    "problems",
    "one thing that could not be read",
    (
        Column("source", TEXT, "the file"),
        Column("where", TEXT, "byte, line or key"),
        Column(
            "kind",
            TEXT,
            "truncated, not_json, not_a_record, bad_value, hash_detail, damaged_entry, lost (no more bytes came), no_lookups (a cache was asked, "
            "but the log has no record of it), …; for a whole source: missing, unreadable, empty, unknown_source",
        ),
        Column("message", TEXT, "what is wrong"),
    ),
)
