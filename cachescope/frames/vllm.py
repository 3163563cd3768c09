"""Rows of vLLM: the factors of its folders and its starts, which are read; its folders, and how they differ."""

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
    outcome: str = col("loaded (all of it was stored), compiled (some of it was not), or not_known", words=("loaded", "compiled", "not_known"))
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


@row("vllm_folders")
class FolderRow:
    """One part of a model that one rank keeps in one folder of vLLM's or SGLang's torch_compile_cache."""

    folder: str = col("the name of the folder")
    path: str = col("where it is")
    rank: int | None = col("rank of the process", missing="not in the path")
    dp_rank: int | None = col("its data parallel rank", missing="not in the path")
    prefix: str | None = col("the part of the model", missing="a whole compiled model (torch_aot_compile)")
    entry: int | None = col("its factors, an id into entries", missing="none were read")
    size_bytes: int = col("size of vLLM's own files for it, without torch's caches next to them", unit="bytes")
    name_is: str = col(
        "recomputed (the name matches the factors), given_by_other (another part of the model gave it), differs (it matches no "
        "factors there), of_torch (SGLang's: made from torch and the GPU only) or not_known")
    name_text: str = col("the same in a sentence")
    baseline: str | None = col(
        "the nearest earlier folder: of the same configuration if there is one, then with the fewest changed factors",
        missing="none, or it is not known what the name was made from")
    is_order_known: bool | None = col("whether modification times show that the baseline is older", missing="no baseline")
    changed: tuple[str, ...] = col("factors that differ from the baseline: variables by name, configuration, code, compiler")
    reason: str = col("why the folder exists in addition to its baseline, as far as is known")


@row("vllm_changes")
class VllmChange:
    """One factor in which a vLLM folder differs from the nearest earlier one."""

    folder: str = col("the name of the folder")
    baseline: str = col("the name of the earlier folder")
    factor: str = col("an environment variable; or configuration, code, compiler")
    before: str | None = col("its value there, as JSON", missing="not included there, or vLLM keeps only its hash")
    after: str | None = col("its value here, as JSON", missing="not included here, or vLLM keeps only its hash")
    differs_by: tuple[str, ...] = col("process-specific values in which the two differ: rank, host, path, port, time, ...")
    text: str = col("the same in a sentence")


@row("vllm_fragments")
class FragmentRow:
    """One factor that makes vLLM folders differ, or several: factors that change together, and all
    process-specific values.
    """

    factors: tuple[str, ...] = col("environment variables; or configuration, code, compiler")
    values: int = col("number of different values")
    folders: int = col("number of folders compared: those whose name matches their factors")
    folders_without: int = col("number of folders that would remain without these factors")
    differs_by: tuple[str, ...] = col("process-specific values in which they differ: rank, host, path, port, time, ...")
    examples: tuple[str, ...] = col("some of the values, as JSON; empty if vLLM keeps only the hash")
    ignored_by: str | None = col("the vLLM release that no longer includes them", missing="none is known")


@row("vllm_ranks")
class RankRow:
    """One factor in which the folder of some ranks differs from that of other ranks with the same
    configuration.
    """

    folder: str = col(
        "the name of a folder that lacks a rank which other folders of the same configuration have: the first rank, or all ranks "
        "of the baseline")
    ranks: tuple[str, ...] = col("the ranks that are in it, as their folders are named: rank_1_0")
    baseline: str = col(
        "the nearest folder that has such a rank: with the fewest changed factors, then without the same ranks, then with the "
        "lowest rank, then with the nearest time")
    baseline_ranks: tuple[str, ...] = col("the ranks that are in the baseline")
    factor: str = col("an environment variable; or configuration, code, compiler")
    before: str | None = col("its value in the baseline, as JSON", missing="not included there, or vLLM keeps only its hash")
    after: str | None = col("its value in the folder, as JSON", missing="not included here, or vLLM keeps only its hash")
    differs_by: tuple[str, ...] = col("process-specific values in which the two differ: rank, host, path, port, time, ...")
    is_of_a_rank: bool = col("whether they differ only in values that each rank has by design: rank, port, bundle index, host")
    text: str = col("the same in a sentence")
