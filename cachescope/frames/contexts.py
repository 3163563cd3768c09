"""Frames of isolation contexts: captured or reconstructed contexts, their keys, groups with equal keys, and differences."""

from __future__ import annotations

from typing import Final

from cachescope.columns import TEXT, TIME, TUPLE, WHOLE, Column, Frame

_NOT_RECORDED: Final = "not recorded: a bare context, or one reconstructed from a run"
_NOT_KNOWN: Final = "null, or not known: see missing_forms"

CONTEXTS: Final = Frame(
    "contexts",
    "one isolation context: captured by a snapshot, or reconstructed from the hash details of a run",
    (
        Column("context", WHOLE, "number of the context: snapshots first, then runs"),
        Column("source", TEXT, "the snapshot or the source of the run that it comes from"),
        Column("run", WHOLE, "the process", missing="a snapshot of no recorded run"),
        Column("inductor_configs", TEXT, "context form, as JSON; for a run, as it was during its lookups, including "
               "the options of torch.compile", missing=_NOT_KNOWN),
        Column("torch_determinism_configs", TEXT, "context form, as JSON", missing=_NOT_KNOWN),
        Column("cuda_matmul_precision_configs", TEXT, "context form, as JSON", missing=_NOT_KNOWN),
        Column("torch_version_hash", TEXT, "context form, base64 of torch's own key", missing=_NOT_KNOWN),
        Column("triton_version_hash", TEXT, "context form, Triton's own key", missing=f"no Triton, {_NOT_KNOWN}"),
        Column("runtime", TEXT, "context form, CUDA or HIP: how torch was built",
               missing=f"a CPU build, {_NOT_KNOWN}"),
        Column("runtime_version", TEXT, "context form", missing=f"a CPU build, {_NOT_KNOWN}"),
        Column("accelerator_properties", TEXT, "context form, repr of the device's properties",
               missing=f"no device, {_NOT_KNOWN}"),
        Column("missing_forms", TUPLE, "forms that could not be known, and forms of a newer torch"),
        Column("hashed_forms", TUPLE, "those of the missing forms whose hash by torch is known: they can be compared, "
               "but not shown"),
        Column("torch_detail_hash", TEXT, "torch's hash of its own key, as the hash detail torch_version has it",
               missing="not known"),
        Column("text_only", TUPLE, "paths of values that JSON cannot represent, kept as text: torch itself "
               "makes no key from them", torch_name="not_json of the snapshot"),
        Column("known_from", TEXT, "torch (its _isolation_context), rebuilt (2.6 to 2.9: the same forms, from "
               "which these versions make no key), or hash_details", missing="a bare context"),
        Column("torch_version", TEXT, "version of torch", missing="not recorded"),
        Column("python_version", TEXT, "version of Python", missing="not recorded"),
        Column("platform", TEXT, "operating system and machine", missing=_NOT_RECORDED),
        Column("host", TEXT, "host name", missing=_NOT_RECORDED),
        Column("pid", WHOLE, "process id", missing="not recorded"),
        Column("time", TIME, "when it was captured; for a run, its first record", "UTC", "not recorded"),
        Column("environment", TEXT, "variables that affect caching, as JSON", missing=_NOT_RECORDED),
        Column("settings", TEXT, "other settings of the process that affect a key or the code, as JSON", missing=_NOT_RECORDED),
        Column("device_properties", TUPLE, "torch's text for each device"),
        Column("key_fields", TEXT, "field -> hash of each process-wide field of FX keys, as JSON",
               missing="not captured; for a run, see its hash details"),
        Column("aot_key_fields", TEXT, "the additional fields of AOTAutograd keys, as JSON",
               missing="as key_fields"),
        Column("key_fields_problem", TEXT, "why torch gave no key fields", missing="it gave them, or was not asked"),
        Column("torch_manifest", TEXT, "the hash of each source file in torch's own key, as JSON",
               missing="not captured: cachescope capture --torch-manifest"),
    ),
)  # fmt: skip

ISOLATION_KEYS: Final = Frame(
    "isolation_keys",
    "the isolation key of one context under one schema",
    (
        Column("context", WHOLE, "the context: its number in contexts, or its place in the list"),
        Column("isolation_key", TEXT, "torch's exact key", missing="a chosen form is not known, or is not JSON",
               torch_name="_isolation_key"),
        Column("lacking", TUPLE, "chosen forms that are not known"),
        Column("text_only", TUPLE, "chosen values that JSON cannot represent, for which torch raises TypeError"),
    ),
)  # fmt: skip

CONTEXT_GROUPS: Final = Frame(
    "context_groups",
    "contexts that are equal in every form that a schema chooses",
    (
        Column("schema", TEXT, "the isolation schema, as JSON"),
        Column("without", TUPLE, "the forms that it leaves out"),
        Column("group", WHOLE, "number of the group under this schema, the largest first",
               missing="not decided: a chosen form of the context is not known at all"),
        Column("contexts", TUPLE, "the contexts"),
        Column("isolation_key", TEXT, "torch's exact key, the same for all of them",
               missing="equal by hashes only, or not decided"),
    ),
)  # fmt: skip

CONTEXT_PAIRS: Final = Frame(
    "context_pairs",
    "two different contexts (each the first of its equals), and the smallest change to the schema under which they share a key; "
    "beyond 64 different contexts, later ones are compared only with the first",
    (
        Column("before", WHOLE, "a context"),
        Column("after", WHOLE, "a later context"),
        Column("differing", TUPLE, "forms that differ: a schema must leave out all of them"),
        Column("undecided", TUPLE, "forms for which it is not known whether they differ"),
        Column("schema", TEXT, "the largest schema under which the two certainly share a key, as JSON"),
        Column("isolation_key", TEXT, "their key under this schema", missing="equal by hashes only"),
    ),
)

CONTEXT_DIFFERENCE: Final = Frame(
    "context_difference",
    "one field inside a form that differs between two contexts",
    (
        Column("form", TEXT, "the context form"),
        Column(
            "field",
            TEXT,
            "the field inside it; for torch_version_hash a file, if both have a manifest",
            missing="the form as a whole",
        ),
        Column("status", TEXT, "changed, added, removed, or unknown if a side is not known"),
        Column(
            "before", TEXT, "its value as JSON text, or as text, shortened", missing="added, or not known"
        ),
        Column("after", TEXT, "the same", missing="removed, or not known"),
        Column("note", TEXT, "what to know about it", missing="nothing"),
    ),
)

MANIFEST_DIFFERENCE: Final = Frame(
    "manifest_difference",
    "one source file of torch that differs between two manifests",
    (
        Column("file", TEXT, "path below torch/"),
        Column("status", TEXT, "added, removed or changed"),
        Column("before", TEXT, "sha256 of its bytes", missing="added"),
        Column("after", TEXT, "sha256 of its bytes", missing="removed"),
    ),
)

CACHING_FILES: Final = Frame(
    "caching_files",
    "one call of a function cached by torch 2.10's caching package, and the file it would look for",
    (
        Column("callee", TEXT, "the function's name; torch keys nothing else of it", torch_name="fn.__name__"),
        Column("params", TEXT, "the parameters, as Python prints them"),
        Column("isolation_key", TEXT, "the isolation key under which it was looked up"),
        Column("file_name", TEXT, "the file name computed from these parameters",
               missing="they are not plain values", torch_name="_fpath_from_key"),
        Column("status", TEXT, "found (under one of the names possible for the parameters), absent, or unknown "
               "if the name does not follow from them"),
        Column("entry", WHOLE, "the entry that was found", missing="none was found"),
        Column("reason", TEXT, "why the name does not follow from the parameters alone", missing="it does"),
    ),
)  # fmt: skip
