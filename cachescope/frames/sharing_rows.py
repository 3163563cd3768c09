"""Rows of what machines can share: keys and groups of isolation contexts, what differs between them, predictions."""

from __future__ import annotations

from cachescope.rows import col, row

# fmt: off


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


@row("predictions")
class PredictionRow:
    """One FX or AOTAutograd entry, and whether a process would find it."""

    entry: int = col("an id into entries")
    cache: str = col("aotautograd or fxgraph")
    cache_key: str = col("its key")
    will_hit: str = col("yes, no or unknown, under the assumptions in the last column")
    is_unsafe: bool | None = col(
        "whether its code was made for a different CPU, which no key contains: numbers may be wrong, or the process may crash",
        missing="not known, or it would not be found")
    fields: tuple[str, ...] = col("fields in which the process differs from the one that made the entry")
    reason: str = col("one sentence")
    unsafe_reason: str | None = col(
        "why it is unsafe, or why that is not known", missing="it is safe as far as is known, or would not be found")
    assuming: tuple[str, ...] = col("what was assumed; empty if the process looked the key up")
