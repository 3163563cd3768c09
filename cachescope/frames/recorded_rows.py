"""Rows of recorded facts: runs, lookups and problems in reading."""

from __future__ import annotations

from cachescope.rows import Time, col, row
from cachescope.terms import CACHES, OUTCOMES, VLLM

# fmt: off


@row("runs", frozen=False)
class RunRow:
    """One process."""

    run: int = col("number of the process, in the order of the start times", default=0)
    source: str = col("the first file that has records of it, as given", default="")
    sources: tuple[str, ...] = col("every file that has records of it", default=())
    pid: int | None = col("process id", missing="the log has none (TORCH_LOGS_FORMAT=short)", default=None)
    rank: int | None = col("rank in a distributed job", missing="not distributed, or not recorded", default=None)
    torch_version: str | None = col(
        "version of torch", missing="not in the log (before 2.11)", torch_name="trace artifact torch_version", default=None)
    python_version: str | None = col(
        "version of Python", missing="not in the log", torch_name="compilation_metrics.python_version", default=None)
    start_time: Time | None = col("first record", unit="UTC", missing="the log has no times", default=None)
    end_time: Time | None = col("last record", unit="UTC", missing="the log has no times", default=None)
    cache_dir: str | None = col("the cache directory", missing="not in the log", torch_name="TORCHINDUCTOR_CACHE_DIR", default=None)
    command: str | None = col("the program that was run", missing="not recorded with cachescope record", default=None)
    exit_status: int | None = col(
        "exit status of the command; 128 + n if signal n ended it", missing="not recorded with cachescope record", default=None)
    own_exit_status: int | None = col(
        "exit status of the process, or 128 + n for the signal n that it was sent, where torchrun or torch.multiprocessing logged that it had "
        "failed or was to end", missing="not in the log", default=None)
    command_start_time: Time | None = col(
        "when the command began; its imports come before the first record", unit="UTC",
        missing="not recorded with cachescope record", default=None)
    command_end_time: Time | None = col(
        "when the command ended", unit="UTC", missing="not recorded with cachescope record, or still running", default=None)
    is_cut: bool = col("whether its log ends in the middle of a record: the process was killed, or the log was cut", default=False)
    looked_up: bool = col(
        "False if it compiled and no lookup of it is recorded: its caches were off, its backend asks none, no graph has an operator, or it "
        "loaded a package", default=True)
    is_preflight: bool = col("whether it was a pre-flight: it compiled nothing, and its lookups are predicted", default=False)
    failed_compiles: tuple[str, ...] = col(
        "the compiles that failed, each as text, once, the first 100: ``forward (model.py:88): `` and torch's error; torch runs the "
        "function without compiling it, as at its recompile limit, or raises. Only traces have them",
        torch_name="fail_type, fail_reason", default=())
    unrecorded_compiles: tuple[str, ...] = col(
        "what was being compiled when the backend failed, the compile was interrupted, or the log ends, without a record of its lookups: "
        "``forward (model.py:88)``; a later lookup of it may not be the first. Only traces have them, most often those of torch 2.6 and earlier", default=())
    gpus: tuple[str, ...] = col(
        "the models of its GPUs, once each; only traces of processes that saw a CUDA or ROCm device have them",
        torch_name="trace artifact fx_graph_runnable", default=())
    kernel_lookups: tuple[str, ...] = col(
        "what Triton's autotuning asked its cache for, the tuned configuration of one kernel each, as text: ``0/0 miss triton_poi_fused_0``, "
        "the compile, torch's word (hit, miss or force_disabled) and the kernel; only traces of torch 2.8 and later have them",
        torch_name="trace artifact triton_kernel_info", default=())
    environment: tuple[str, ...] = col(
        "the variables TORCH*, PYTORCH*, VLLM*, TRITON* and OMP_* of its command, ``NAME=value``, without secrets and those of recording; only "
        "cachescope record notes them", default=())
    commit: str | None = col(
        "the commit of the working directory, with ``-dirty`` if tracked files were changed since",
        missing="not recorded with cachescope record, or in no repository", default=None)
    label: str | None = col(
        "the label that cachescope record was given; else what tells it from other runs: words of its command, each after its option, "
        "variables, the commit",
        missing="not recorded with cachescope record, or nothing tells the runs apart", default=None)
    filled_dir: str | None = col(
        "the cache directory that its command was given, if entries lay in it before",
        missing="none did, it could not be listed, or not recorded with cachescope record", default=None)
    has_lost_lines: bool = col(
        "whether lines of hash details are missing from its text log: other lines may be as well, so what it does not say may have been so", default=False)


@row("lookups", frozen=False)
class LookupRow:
    """One lookup: one attempt to find one key in one cache.

    A log tells what it has of it; the rest is filled in once all logs are read.
    """

    lookup: int = col("number of the lookup: by run, then in the order in which torch made them", default=0)
    run: int = col("the process, an id into runs", default=0)
    order: int = col("position among the lookups of the run, from 0", default=0)
    time: Time | None = col(
        "when it was made", unit="UTC", missing="the log has no times", torch_name="cache_event_time", default=None)
    end_time: Time | None = col(
        "when torch logged it; for a miss, the end of the compile", unit="UTC", missing="only traces have it", default=None)
    cache: str = col(
        "aotautograd, fxgraph, or vllm for vLLM's own cache: one start of one part of a model", words=(*CACHES, VLLM), default="")
    cache_key: str | None = col(
        "the key; for vLLM the name of its folder, or of the whole compiled model that it loaded",
        missing="bypassed before there was a key", torch_name="key", default=None)
    outcome: str = col(
        'hit, full_miss, guard_miss, bypass, disabled or unknown; in a pre-flight would_hit, would_miss, would_bypass, disabled '
        'or not_known: `describe("outcomes")`', words=OUTCOMES, default="full_miss")
    cache_state: str | None = col("torch's own word", missing="not recorded", torch_name="cache_state", default=None)
    status_detailed: str | None = col(
        "torch's own finer word", missing="not recorded (before 2.8, text logs)", torch_name="cache_status_detailed",
        default=None)
    compile_id: str | None = col("frame / compile of that frame", missing="not recorded", torch_name="CompileId", default=None)
    segment: int = col(
        "distinguishes compiles of a run with the same compile id, from 1: torch counts compile ids from 0 again after "
        "torch._dynamo.reset(); 0 if the log does not show the beginning of the compile (text logs)", default=0)
    direction: str | None = col(
        "forward, backward or inference (FX)", words=("forward", "backward", "inference"),
        missing="not recorded; AOTAutograd keys cover both directions", default=None)
    is_backward: bool | None = col(
        "whether the graph is a backward graph", missing="not recorded", torch_name="fx_kwargs[is_backward]", default=None)
    aot_lookup: int | None = col(
        "the preceding AOTAutograd lookup of the same compile", missing="there is none, or this is an AOTAutograd lookup",
        default=None)
    bypass_reason: str | None = col(
        "why torch would not cache", missing="not bypassed", torch_name="cache_bypass_reason", default=None)
    bypass_exception: str | None = col(
        "the class of the exception that bypassed it: BypassAOTAutogradCache if torch would not cache it, any other if an error "
        "ended the lookup (Exception if torch does not name the class, as in 2.6)",
        missing="not bypassed, or not recorded (fxgraph, text logs, or torch does not name the class, as in 2.6)",
        torch_name="cache_bypass_exception_type", default=None)
    aot_mode: bool | None = col(
        "True if AOTInductor compiled it, which never asks a cache",
        missing="False, or not recorded (a text log without TORCH_LOGS=+inductor, traces before 2.7)", torch_name="aot_mode",
        default=None)
    save_bypass: str | None = col(
        "why torch would not store the result of this miss", missing="stored, or not recorded", default=None)
    save_error: str | None = col(
        "why the result could not be stored, although torch wanted to", missing="stored, or no text log was read", default=None)
    compile_error: str | None = col(
        "why the compile that it was part of failed", missing="it did not fail, or only a text log was read",
        torch_name="fail_type, fail_reason", default=None)
    compile_ended: bool | None = col(
        "False if the log ends before the compile after the miss does: the process ended, or is still running",
        missing="the log does not show it", default=None)
    load_error: str | None = col(
        "why a stored entry could not be loaded; for vLLM, why a whole compiled model was not used",
        missing="none, or not in a text log", default=None)
    guards_expr: str | None = col(
        "guards of the candidate (after a guard miss, of the last one)", missing="no guards, or not recorded",
        torch_name="cache_status_guard_expr", default=None)
    function: str | None = col(
        "the user's function that was compiled; in a trace its caller, if torch compiles it through a wrapper",
        missing="not in a text log without Dynamo's messages (TORCH_LOGS=dynamo)", torch_name="dynamo_start", default=None)
    file: str | None = col("the file of the function", missing="as for function", torch_name="dynamo_start", default=None)
    line: int | None = col("the line of the function", missing="as for function", torch_name="dynamo_start", default=None)
    class_name: str | None = col(
        "the class of the function's `self`", missing="no method, or no guards name it: text logs, torch before 2.9, a compile that did not end, one through a wrapper",
        torch_name="dynamo_cpp_guards_str", default=None)
    default_device: str | None = col(
        "the default device, as torch prints it: of torch.set_default_device, or of torch.device around the call if the guards name it; else ``None``",
        missing="no guards name it: text logs, a compile that did not end", torch_name="dynamo_cpp_guards_str", default=None)
    traced_graph: str | None = col(
        "a hash of the graph that Dynamo traced and of its lines of the program, without the types and sizes of values", missing="only traces have it",
        torch_name="dynamo_output_graph", default=None)
    traced_code: str | None = col(
        "the same without whole numbers and dtypes in the graph, which may follow from inputs", missing="only traces have it", torch_name="dynamo_output_graph", default=None)
    recompile_reasons: str | None = col(
        "why it was compiled again: the earlier compiles of the function in the process, the latest first, and the guard of each that "
        "failed, as torch prints them, one a line: ``0/0: n == 2``",
        missing="it was compiled for the first time, or a text log has no messages of TORCH_LOGS=recompiles", torch_name="recompile_reasons", default=None)
    time_taken_ns: int | None = col(
        "Inductor's compile time after the miss; for vLLM, what its log says that compiling took", unit="ns",
        missing="a hit, an AOTAutograd lookup, or not recorded (text logs); for vLLM also if compile times of torch were read, "
                "which are part of it",
        torch_name="time_taken_ns", default=None)
    time_saved_ns: int | None = col(
        "compile time that the hit saved, as measured when the entry was made; for an AOTAutograd hit it includes its FX graphs, "
        "so add up only one cache",
        unit="ns", missing="no hit, or not recorded (text logs)", torch_name="time_saved_ns", default=None)
    details: str = col(
        "where the hash details come from: recorded, from_entry (the entry of the same key), from_log (another record of the "
        "same key), incomplete (lines are missing, so none are used) or not_recorded; always not_recorded for vLLM, whose "
        "factors are in vllm_factors",
        words=("recorded", "from_entry", "from_log", "incomplete", "not_recorded"), default="not_recorded")
    detail_set: int | None = col(
        "code of the set of hash details; equal sets have equal codes", missing="details are not_recorded or incomplete",
        default=None)
    entry_path: str | None = col(
        "where torch wrote the entry", missing="not recorded (only AOTAutograd text logs have it)", default=None)
    prediction: str | None = col(
        "for a lookup predicted by a pre-flight: the basis of its outcome", missing="a real lookup", default=None)
    predicted_entry: int | None = col(
        "the entry that it would find, an id into entries",
        missing="none, or the program itself stored it, or it is known only from a recording", default=None)
    preflight_note: str | None = col(
        "what a pre-flight noted about it, as JSON: the sizes in guards, the directory, what would be stored",
        missing="not a lookup of a pre-flight", default=None)
    cache_dir: str | None = col(
        "the cache directory that it used, where that is another than its run's, as within torch's ``fresh_cache``",
        missing="that of its run, or not recorded", torch_name="inductor_output_code", default=None)
    logged_time: Time | None = None
    """When its outcome was logged: two logs of one process agree on it."""
    is_details_cut: bool = False
    """Whether lines of its hash details are missing; none are kept then."""


OF_A_RUN = ("run", "sources", "end_time", "failed_compiles", "unrecorded_compiles", "has_lost_lines")
"""What is worked out of a process once its logs are joined."""
OF_ALL_LOGS = ("lookup", "run", "order", "direction", "aot_lookup", "details", "prediction", "predicted_entry")
"""What no single log tells of a lookup."""


@row("problems", frozen=False)
class ProblemRow:
    """One thing that could not be read, or several alike."""

    source: str = col("the file")
    where: str = col("byte, line or key, of the first")
    kind: str = col(
        "truncated, not_json, not_a_record, bad_value, hash_detail, damaged_entry, lost (no more bytes came), no_lookups (a "
        "cache was asked, but the log has no record of it, or an error of a lookup alone), quoted (a line of a cache that no row holds), …; for a whole source: missing, unreadable, empty, unknown_source")
    message: str = col("what is wrong, with the first")
    count: int = col("how many there are: with this message or, of a kind that has more than a hundred, with any other", default=1)
