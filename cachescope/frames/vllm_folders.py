"""Rows of the folders of vLLM's ``torch_compile_cache``, and how they differ."""

from __future__ import annotations

from cachescope.rows import col, row

# fmt: off


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
