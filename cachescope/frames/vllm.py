"""Frames of vLLM's ``torch_compile_cache``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from cachescope.columns import FLAG, TEXT, TUPLE, WHOLE, Column, Frame

VLLM_FACTORS: Final = Frame(
    "vllm_factors",
    "one cache_key_factors.json: what vLLM made the name of a folder of",
    (
        Column("entry", WHOLE, "the file, an id into entries"),
        Column("folder", TEXT, "the name of the folder", missing="the path does not tell"),
        Column("rank", WHOLE, "rank of the process", missing="the path does not tell"),
        Column("dp_rank", WHOLE, "its data parallel rank", missing="the path does not tell"),
        Column("prefix", TEXT, "the part of the model", missing="the path does not tell"),
        Column("env", TEXT, "the environment variables that vLLM counts, as JSON; of one named like a secret (KEY, TOKEN) "
               "a number stands for the value"),
        Column("env_hash", TEXT, "their hash, computed from the file as it is"),
        Column("config_hash", TEXT, "hash of the configuration; vLLM keeps nothing else of it"),
        Column("code_hash", TEXT, "hash of the files that were traced; vLLM keeps nothing else of them"),
        Column("compiler_hash", TEXT, "hash of torch and its settings; vLLM keeps nothing else of them"),
    ),
)  # fmt: skip

VLLM_FOLDERS: Final = Frame(
    "vllm_folders",
    "one part of a model that one rank keeps in one folder of vLLM's torch_compile_cache, or of SGLang's",
    (
        Column("folder", TEXT, "the name of the folder"),
        Column("path", TEXT, "where it is"),
        Column("rank", WHOLE, "rank of the process", missing="the path does not tell"),
        Column("dp_rank", WHOLE, "its data parallel rank", missing="the path does not tell"),
        Column("prefix", TEXT, "the part of the model", missing="a whole compiled model (torch_aot_compile)"),
        Column("entry", WHOLE, "its factors, an id into entries", missing="none were read"),
        Column("size_bytes", WHOLE, "what vLLM's own files of it take, without torch's caches beside them", "bytes"),
        Column("name_is", TEXT, "recomputed (the name follows from the factors), given_by_other (another part of the model "
               "gave it), differs (it follows from no factors there), of_torch (SGLang's: of torch and the GPU alone) or not_known"),
        Column("name_text", TEXT, "the same in a sentence"),
        Column("baseline", TEXT, "the nearest folder that was there before: of the same configuration if there is one, then "
               "of the fewest changed factors", missing="none, or it is not known what the name was made of"),
        Column("is_order_known", FLAG, "whether the times of modification tell that the baseline was there before",
               missing="no baseline"),
        Column("changed", TUPLE, "factors that differ from the baseline: variables by name, configuration, code, compiler"),
        Column("reason", TEXT, "why the folder exists beside its baseline, as far as it is known"),
    ),
)  # fmt: skip

VLLM_CHANGES: Final = Frame(
    "vllm_changes",
    "one factor in which a folder of vLLM differs from the nearest that was there before",
    (
        Column("folder", TEXT, "the name of the folder"),
        Column("baseline", TEXT, "the name of the one before"),
        Column("factor", TEXT, "an environment variable; or configuration, code, compiler"),
        Column("before", TEXT, "its value there, as JSON", missing="not counted there, or vLLM keeps only its hash"),
        Column("after", TEXT, "its value here, as JSON", missing="not counted here, or vLLM keeps only its hash"),
        Column("differs_by", TUPLE, "values of a process by which both differ: rank, host, path, port, time, ..."),
        Column("text", TEXT, "the same in a sentence"),
    ),
)  # fmt: skip

VLLM_FRAGMENTS: Final = Frame(
    "vllm_fragments",
    "one factor that makes folders of vLLM differ, or several: those that change together, and all values of a process",
    (
        Column("factors", TUPLE, "environment variables; or configuration, code, compiler"),
        Column("values", WHOLE, "how many values they have"),
        Column("folders", WHOLE, "how many folders were compared: those whose name follows from their factors"),
        Column("folders_without", WHOLE, "how many there would be if these factors did not count"),
        Column("differs_by", TUPLE, "values of a process by which they differ: rank, host, path, port, time, ..."),
        Column("examples", TUPLE, "some of the values, as JSON; none where vLLM keeps only the hash"),
        Column("ignored_by", TEXT, "the release of vLLM that does not count them any more", missing="none that is known"),
    ),
)  # fmt: skip

VLLM_RANKS: Final = Frame(
    "vllm_ranks",
    "one factor in which the folder of some ranks differs from that of others of the same configuration",
    (
        Column("folder", TEXT, "the name of a folder that lacks a rank which others of the same configuration have: the first, or all of the baseline's"),
        Column("ranks", TUPLE, "the ranks that are in it, as their folders are named: rank_1_0"),
        Column("baseline", TEXT, "the nearest that has such a rank: of the fewest changed factors, then without the same ranks, "
               "then of the lowest rank, then of the nearest time"),
        Column("baseline_ranks", TUPLE, "the ranks that are in that"),
        Column("factor", TEXT, "an environment variable; or configuration, code, compiler"),
        Column("before", TEXT, "its value in the baseline, as JSON", missing="not counted there, or vLLM keeps only its hash"),
        Column("after", TEXT, "its value in the folder, as JSON", missing="not counted here, or vLLM keeps only its hash"),
        Column("differs_by", TUPLE, "values of a process by which both differ: rank, host, path, port, time, ..."),
        Column("is_of_a_rank", FLAG, "whether they differ in nothing but what each rank has of its own: rank, port, bundle index, host"),
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
    "one part of a model that vLLM compiled or loaded, as its log says",
    (
        Column("source", TEXT, "the log"),
        Column("line", WHOLE, "the first line that speaks of it"),
        Column("process", TEXT, "the process, as vLLM calls it: EngineCore, Worker_TP1", missing="the log does not say"),
        Column("pid", WHOLE, "process id", missing="the log does not say"),
        Column("logged", TEXT, "day and time of that line, as it stands there: without a year"),
        Column("prefix", TEXT, "the part of the model", missing="the log does not say"),
        Column("path", TEXT, "its cache directory", missing="the log does not say: none was asked, or only torch_aot_compile"),
        Column("folder", TEXT, "the name of the folder of that directory", missing="the log does not say"),
        Column("rank", WHOLE, "rank of the process", missing="the log does not say"),
        Column("env_hash", TEXT, "hash of the environment", missing="only logged at the level DEBUG"),
        Column("config_hash", TEXT, "hash of the configuration", missing="only logged at the level DEBUG"),
        Column("code_hash", TEXT, "hash of the files that were traced", missing="only logged at the level DEBUG"),
        Column("compiler_hash", TEXT, "hash of torch and its settings", missing="only logged at the level DEBUG"),
        Column("outcome", TEXT, "loaded (all of it was stored), compiled (some of it was not), or not_known"),
        Column("is_disabled", FLAG, "whether vLLM says that its cache is switched off"),
        Column("load_error", TEXT, "why a whole compiled model that was there could not be loaded", missing="nothing is said"),
        Column("dynamo_time_ns", WHOLE, "time of Dynamo", "ns", "not said"),
        Column("compile_time_ns", WHOLE, "time of compiling, of all ranges of sizes", "ns", "nothing was compiled, or not said"),
        Column("total_time_ns", WHOLE, "time of torch.compile in total", "ns", "the log ends before, or it failed"),
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class StartRow:
    """A row of the frame ``vllm_starts``."""

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
    is_disabled: bool
    load_error: str | None
    dynamo_time_ns: int | None
    compile_time_ns: int | None
    total_time_ns: int | None
