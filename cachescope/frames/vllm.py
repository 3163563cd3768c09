"""Frames of vLLM's ``torch_compile_cache``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from cachescope.columns import FLAG, TEXT, TUPLE, WHOLE, Column, Frame

VLLM_FACTORS: Final = Frame(
    "vllm_factors",
    "one cache_key_factors.json: the factors from which vLLM made the name of a folder",
    (
        Column("entry", WHOLE, "the file, an id into entries"),
        Column("folder", TEXT, "the name of the folder", missing="not in the path"),
        Column("rank", WHOLE, "rank of the process", missing="not in the path"),
        Column("dp_rank", WHOLE, "its data parallel rank", missing="not in the path"),
        Column("prefix", TEXT, "the part of the model", missing="not in the path"),
        Column("env", TEXT, "the environment variables that vLLM includes, as JSON; if one is named like a secret (KEY, TOKEN), "
               "a number replaces its value"),
        Column("env_hash", TEXT, "their hash, computed from the file"),
        Column("config_hash", TEXT, "hash of the configuration; vLLM keeps only the hash"),
        Column("code_hash", TEXT, "hash of the files that were traced; vLLM keeps only the hash"),
        Column("compiler_hash", TEXT, "hash of torch and its settings; vLLM keeps only the hash"),
    ),
)  # fmt: skip

VLLM_FOLDERS: Final = Frame(
    "vllm_folders",
    "one part of a model that one rank keeps in one folder of vLLM's or SGLang's torch_compile_cache",
    (
        Column("folder", TEXT, "the name of the folder"),
        Column("path", TEXT, "where it is"),
        Column("rank", WHOLE, "rank of the process", missing="not in the path"),
        Column("dp_rank", WHOLE, "its data parallel rank", missing="not in the path"),
        Column("prefix", TEXT, "the part of the model", missing="a whole compiled model (torch_aot_compile)"),
        Column("entry", WHOLE, "its factors, an id into entries", missing="none were read"),
        Column("size_bytes", WHOLE, "size of vLLM's own files for it, without torch's caches next to them", "bytes"),
        Column("name_is", TEXT, "recomputed (the name matches the factors), given_by_other (another part of the model "
               "gave it), differs (it matches no factors there), of_torch (SGLang's: made from torch and the GPU only) or not_known"),
        Column("name_text", TEXT, "the same in a sentence"),
        Column("baseline", TEXT, "the nearest earlier folder: of the same configuration if there is one, then "
               "with the fewest changed factors", missing="none, or it is not known what the name was made from"),
        Column("is_order_known", FLAG, "whether modification times show that the baseline is older",
               missing="no baseline"),
        Column("changed", TUPLE, "factors that differ from the baseline: variables by name, configuration, code, compiler"),
        Column("reason", TEXT, "why the folder exists in addition to its baseline, as far as is known"),
    ),
)  # fmt: skip

VLLM_CHANGES: Final = Frame(
    "vllm_changes",
    "one factor in which a vLLM folder differs from the nearest earlier one",
    (
        Column("folder", TEXT, "the name of the folder"),
        Column("baseline", TEXT, "the name of the earlier folder"),
        Column("factor", TEXT, "an environment variable; or configuration, code, compiler"),
        Column("before", TEXT, "its value there, as JSON", missing="not included there, or vLLM keeps only its hash"),
        Column("after", TEXT, "its value here, as JSON", missing="not included here, or vLLM keeps only its hash"),
        Column("differs_by", TUPLE, "process-specific values in which the two differ: rank, host, path, port, time, ..."),
        Column("text", TEXT, "the same in a sentence"),
    ),
)  # fmt: skip

VLLM_FRAGMENTS: Final = Frame(
    "vllm_fragments",
    "one factor that makes vLLM folders differ, or several: factors that change together, and all process-specific values",
    (
        Column("factors", TUPLE, "environment variables; or configuration, code, compiler"),
        Column("values", WHOLE, "number of different values"),
        Column("folders", WHOLE, "number of folders compared: those whose name matches their factors"),
        Column("folders_without", WHOLE, "number of folders that would remain without these factors"),
        Column("differs_by", TUPLE, "process-specific values in which they differ: rank, host, path, port, time, ..."),
        Column("examples", TUPLE, "some of the values, as JSON; empty if vLLM keeps only the hash"),
        Column("ignored_by", TEXT, "the vLLM release that no longer includes them", missing="none is known"),
    ),
)  # fmt: skip

VLLM_RANKS: Final = Frame(
    "vllm_ranks",
    "one factor in which the folder of some ranks differs from that of other ranks with the same configuration",
    (
        Column("folder", TEXT, "the name of a folder that lacks a rank which other folders of the same configuration have: the first rank, or all ranks of the baseline"),
        Column("ranks", TUPLE, "the ranks that are in it, as their folders are named: rank_1_0"),
        Column("baseline", TEXT, "the nearest folder that has such a rank: with the fewest changed factors, then without the same ranks, "
               "then with the lowest rank, then with the nearest time"),
        Column("baseline_ranks", TUPLE, "the ranks that are in the baseline"),
        Column("factor", TEXT, "an environment variable; or configuration, code, compiler"),
        Column("before", TEXT, "its value in the baseline, as JSON", missing="not included there, or vLLM keeps only its hash"),
        Column("after", TEXT, "its value in the folder, as JSON", missing="not included here, or vLLM keeps only its hash"),
        Column("differs_by", TUPLE, "process-specific values in which the two differ: rank, host, path, port, time, ..."),
        Column("is_of_a_rank", FLAG, "whether they differ only in values that each rank has by design: rank, port, bundle index, host"),
        Column("text", TEXT, "the same in a sentence"),
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class FactorsRow:
    """A row of the frame ``vllm_factors``."""

    entry: int
    folder: str | None
    rank: int | None
    dp_rank: int | None
    prefix: str | None
    env: str
    env_hash: str
    config_hash: str
    code_hash: str
    compiler_hash: str


@dataclass(frozen=True, slots=True)
class FolderRow:
    """A row of the frame ``vllm_folders``."""

    folder: str
    path: str
    rank: int | None
    dp_rank: int | None
    prefix: str | None
    entry: int | None
    size_bytes: int
    name_is: str
    name_text: str
    baseline: str | None
    is_order_known: bool | None
    changed: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class VllmChange:
    """A row of the frame ``vllm_changes``."""

    folder: str
    baseline: str
    factor: str
    before: str | None
    after: str | None
    differs_by: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class FragmentRow:
    """A row of the frame ``vllm_fragments``."""

    factors: tuple[str, ...]
    values: int
    folders: int
    folders_without: int
    differs_by: tuple[str, ...]
    examples: tuple[str, ...]
    ignored_by: str | None


@dataclass(frozen=True, slots=True)
class RankRow:
    """A row of the frame ``vllm_ranks``."""

    folder: str
    ranks: tuple[str, ...]
    baseline: str
    baseline_ranks: tuple[str, ...]
    factor: str
    before: str | None
    after: str | None
    differs_by: tuple[str, ...]
    is_of_a_rank: bool
    text: str


VLLM_STARTS: Final = Frame(
    "vllm_starts",
    "one part of a model that vLLM compiled or loaded, according to its log",
    (
        Column("lookup", WHOLE, "the lookup that it was, an id into lookups"),
        Column("source", TEXT, "the log"),
        Column("line", WHOLE, "the first line about it"),
        Column("process", TEXT, "the process, by vLLM's name: EngineCore, Worker_TP1", missing="not in the log"),
        Column("pid", WHOLE, "process id", missing="not in the log"),
        Column("logged", TEXT, "date and time of that line, as logged: without a year"),
        Column("prefix", TEXT, "the part of the model", missing="not in the log"),
        Column("path", TEXT, "its cache directory", missing="not in the log: no cache was asked, or only torch_aot_compile"),
        Column("folder", TEXT, "the name of the folder of that directory", missing="not in the log"),
        Column("rank", WHOLE, "rank of the process", missing="not in the log"),
        Column("env_hash", TEXT, "hash of the environment", missing="logged only at the level DEBUG"),
        Column("config_hash", TEXT, "hash of the configuration", missing="logged only at the level DEBUG"),
        Column("code_hash", TEXT, "hash of the files that were traced", missing="logged only at the level DEBUG"),
        Column("compiler_hash", TEXT, "hash of torch and its settings", missing="logged only at the level DEBUG"),
        Column("outcome", TEXT, "loaded (all of it was stored), compiled (some of it was not), or not_known"),
        Column("is_partial", FLAG, "whether some of it was loaded and some compiled"),
        Column("is_disabled", FLAG, "whether vLLM says that its cache is switched off"),
        Column("load_error", TEXT, "why an existing whole compiled model could not be loaded", missing="not logged"),
        Column("dynamo_time_ns", WHOLE, "time of Dynamo", "ns", "not logged"),
        Column("compile_time_ns", WHOLE, "compile time of all size ranges", "ns", "nothing was compiled, or not logged"),
        Column("total_time_ns", WHOLE, "total time of torch.compile", "ns", "the log ends earlier, or it failed"),
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class StartRow:
    """A row of the frame ``vllm_starts``."""

    lookup: int
    source: str
    line: int
    process: str | None
    pid: int | None
    logged: str
    prefix: str | None
    path: str | None
    folder: str | None
    rank: int | None
    env_hash: str | None
    config_hash: str | None
    code_hash: str | None
    compiler_hash: str | None
    outcome: str
    is_partial: bool
    is_disabled: bool
    load_error: str | None
    dynamo_time_ns: int | None
    compile_time_ns: int | None
    total_time_ns: int | None
