"""Rows of what is read of vLLM: the factors of its folders, and its starts."""

from __future__ import annotations

from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.recorded_rows import LookupRow
from cachescope.rows import col, row

# fmt: off


@row("vllm_factors", frozen=False)
class FactorsRow:
    """One cache_key_factors.json: the factors from which vLLM made the name of a folder."""

    entry: int = col("the file, an id into entries")
    folder: str | None = col("the name of the folder", missing="not in the path")
    rank: int | None = col("rank of the process", missing="not in the path")
    dp_rank: int | None = col("its data parallel rank", missing="not in the path")
    prefix: str | None = col("the part of the model", missing="not in the path")
    env: str = col(
        "the environment variables that vLLM includes, as JSON; if one is named like a secret (KEY, TOKEN), a number replaces "
        "its value")
    env_hash: str = col("their hash, computed from the file")
    config_hash: str = col("hash of the configuration; vLLM keeps only the hash")
    code_hash: str = col("hash of the files that were traced; vLLM keeps only the hash")
    compiler_hash: str = col("hash of torch and its settings; vLLM keeps only the hash")
    file: EntryRow | None = None
    """The file, whose number is known once all sources are read."""



@row("vllm_starts", frozen=False)
class StartRow:
    """One part of a model that vLLM compiled or loaded, according to its log."""

    lookup: int = col("the lookup that it was, an id into lookups")
    source: str = col("the log")
    line: int = col("the first line about it")
    process: str | None = col("the process, by vLLM's name: EngineCore, Worker_TP1", missing="not in the log")
    pid: int | None = col("process id", missing="not in the log")
    logged: str = col("date and time of that line, as logged: without a year")
    prefix: str | None = col("the part of the model", missing="not in the log")
    path: str | None = col("its cache directory", missing="not in the log: no cache was asked, or only torch_aot_compile")
    folder: str | None = col("the name of the folder of that directory", missing="not in the log")
    rank: int | None = col("rank of the process", missing="not in the log")
    env_hash: str | None = col("hash of the environment", missing="logged only at the level DEBUG")
    config_hash: str | None = col("hash of the configuration", missing="logged only at the level DEBUG")
    code_hash: str | None = col("hash of the files that were traced", missing="logged only at the level DEBUG")
    compiler_hash: str | None = col("hash of torch and its settings", missing="logged only at the level DEBUG")
    outcome: str = col("loaded (all of it was stored), compiled (some of it was not), or not_known")
    is_partial: bool = col("whether some of it was loaded and some compiled")
    is_disabled: bool = col("whether vLLM says that its cache is switched off")
    load_error: str | None = col("why an existing whole compiled model could not be loaded", missing="not logged")
    dynamo_time_ns: int | None = col("time of Dynamo", unit="ns", missing="not logged")
    compile_time_ns: int | None = col("compile time of all size ranges", unit="ns", missing="nothing was compiled, or not logged")
    total_time_ns: int | None = col("total time of torch.compile", unit="ns", missing="the log ends earlier, or it failed")
    load_time_ns: int | None = col("time of loading its compiled graphs", unit="ns", missing="nothing was loaded, or not logged", default=None)
    save_error: str | None = col("why the whole compiled model could not be saved", missing="not logged", default=None)
    found: LookupRow | None = None
    """That lookup, whose number is known once all logs are read."""
