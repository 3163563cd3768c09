"""Rows of isolation contexts: captured or reconstructed contexts, their keys, groups with equal keys, and differences."""

from __future__ import annotations

from typing import Final

from cachescope.rows import Time, col, row

_NOT_RECORDED: Final = "not recorded: a bare context, or one reconstructed from a run"
_NOT_KNOWN: Final = "null, or not known: see missing_forms"

# fmt: off


@row("contexts")
class ContextRow:
    """One isolation context: captured by a snapshot, or reconstructed from the hash details of a run."""

    context: int = col("number of the context: snapshots first, then runs")
    source: str = col("the snapshot or the source of the run that it comes from")
    run: int | None = col("the process", missing="a snapshot of no recorded run")
    inductor_configs: str | None = col(
        "context form, as JSON; for a run, as it was during its lookups, including the options of torch.compile",
        missing=_NOT_KNOWN)
    torch_determinism_configs: str | None = col("context form, as JSON", missing=_NOT_KNOWN)
    cuda_matmul_precision_configs: str | None = col("context form, as JSON", missing=_NOT_KNOWN)
    torch_version_hash: str | None = col("context form, base64 of torch's own key", missing=_NOT_KNOWN)
    triton_version_hash: str | None = col("context form, Triton's own key", missing=f"no Triton, {_NOT_KNOWN}")
    runtime: str | None = col("context form, CUDA or HIP: how torch was built", missing=f"a CPU build, {_NOT_KNOWN}")
    runtime_version: str | None = col("context form", missing=f"a CPU build, {_NOT_KNOWN}")
    accelerator_properties: str | None = col("context form, repr of the device's properties", missing=f"no device, {_NOT_KNOWN}")
    missing_forms: tuple[str, ...] = col("forms that could not be known, and forms of a newer torch")
    hashed_forms: tuple[str, ...] = col(
        "those of the missing forms whose hash by torch is known: they can be compared, but not shown")
    torch_detail_hash: str | None = col(
        "torch's hash of its own key, as the hash detail torch_version has it", missing="not known")
    text_only: tuple[str, ...] = col(
        "paths of values that JSON cannot represent, kept as text: torch itself makes no key from them",
        torch_name="not_json of the snapshot")
    known_from: str | None = col(
        "torch (its _isolation_context), rebuilt (2.6 to 2.9: the same forms, from which these versions make no key), or "
        "hash_details",
        missing="a bare context")
    torch_version: str | None = col("version of torch", missing="not recorded")
    python_version: str | None = col("version of Python", missing="not recorded")
    platform: str | None = col("operating system and machine", missing=_NOT_RECORDED)
    host: str | None = col("host name", missing=_NOT_RECORDED)
    pid: int | None = col("process id", missing="not recorded")
    time: Time | None = col("when it was captured; for a run, its first record", unit="UTC", missing="not recorded")
    environment: str | None = col("variables that affect caching, as JSON", missing=_NOT_RECORDED)
    settings: str | None = col("other settings of the process that affect a key or the code, as JSON", missing=_NOT_RECORDED)
    device_properties: tuple[str, ...] = col("torch's text for each device")
    key_fields: str | None = col(
        "field -> hash of each process-wide field of FX keys, as JSON", missing="not captured; for a run, see its hash details")
    aot_key_fields: str | None = col("the additional fields of AOTAutograd keys, as JSON", missing="as key_fields")
    key_fields_problem: str | None = col("why torch gave no key fields", missing="it gave them, or was not asked")
    torch_manifest: str | None = col(
        "the hash of each source file in torch's own key, as JSON", missing="not captured: cachescope capture --torch-manifest")


@row("isolation_keys")
class IsolationKeyRow:
    """The isolation key of one context under one schema."""

    context: int = col("the context: its number in contexts, or its place in the list")
    isolation_key: str | None = col(
        "torch's exact key", missing="a chosen form is not known, or is not JSON", torch_name="_isolation_key")
    lacking: tuple[str, ...] = col("chosen forms that are not known")
    text_only: tuple[str, ...] = col("chosen values that JSON cannot represent, for which torch raises TypeError")


@row("context_groups")
class GroupRow:
    """Contexts that are equal in every form that a schema chooses."""

    schema: str = col("the isolation schema, as JSON")
    without: tuple[str, ...] = col("the forms that it leaves out")
    group: int | None = col(
        "number of the group under this schema, the largest first",
        missing="not decided: a chosen form of the context is not known at all")
    contexts: tuple[int, ...] = col("the contexts")
    isolation_key: str | None = col("torch's exact key, the same for all of them", missing="equal by hashes only, or not decided")


@row("context_pairs")
class PairRow:
    """Two different contexts (each the first of its equals), and the smallest change to the schema under which
    they share a key; beyond 64 different contexts, later ones are compared only with the first.
    """

    before: int = col("a context")
    after: int = col("a later context")
    differing: tuple[str, ...] = col("forms that differ: a schema must leave out all of them")
    undecided: tuple[str, ...] = col("forms for which it is not known whether they differ")
    schema: str = col("the largest schema under which the two certainly share a key, as JSON")
    isolation_key: str | None = col("their key under this schema", missing="equal by hashes only")


@row("context_difference")
class FormDifference:
    """One field inside a form that differs between two contexts."""

    form: str = col("the context form")
    field: str | None = col(
        "the field inside it; for torch_version_hash a file, if both have a manifest", missing="the form as a whole")
    status: str = col("changed, added, removed, or unknown if a side is not known")
    before: str | None = col("its value as JSON text, or as text, shortened", missing="added, or not known")
    after: str | None = col("the same", missing="removed, or not known")
    note: str | None = col("what to know about it", missing="nothing")


@row("manifest_difference")
class ManifestDifference:
    """One source file of torch that differs between two manifests."""

    file: str = col("path below torch/")
    status: str = col("added, removed or changed")
    before: str | None = col("sha256 of its bytes", missing="added")
    after: str | None = col("sha256 of its bytes", missing="removed")


@row("caching_files")
class CachingFile:
    """One call of a function cached by torch 2.10's caching package, and the file it would look for."""

    callee: str = col("the function's name; torch keys nothing else of it", torch_name="fn.__name__")
    params: str = col("the parameters, as Python prints them")
    isolation_key: str = col("the isolation key under which it was looked up")
    file_name: str | None = col(
        "the file name computed from these parameters", missing="they are not plain values", torch_name="_fpath_from_key")
    status: str = col(
        "found (under one of the names possible for the parameters), absent, or unknown if the name does not follow from them")
    entry: int | None = col("the entry that was found", missing="none was found")
    reason: str | None = col("why the name does not follow from the parameters alone", missing="it does")
