"""The frame of the fields of a cache key."""

from __future__ import annotations

from typing import Final

from cachescope.columns import FLAG, TEXT, TUPLE, Column, Frame

FIELDS: Final = Frame(
    "fields",
    "one field of an FX graph or AOTAutograd cache key, as of one version of torch",
    (
        Column("field", TEXT, "the field as hash details name it; [*] stands for any number or name"),
        Column("version", TEXT, "the version of torch that the row is true of"),
        Column("first_version", TEXT, "the first of the versions read that has the field"),
        Column("last_version", TEXT, "the last of the versions read that has the field"),
        Column("key_versions", TUPLE, "the versions read whose keys hold the field"),
        Column("in_key", FLAG, "whether keys of this version hold it; False for options that torch leaves out",
               torch_name="_cache_config_ignore_prefix, EXCLUDED_KWARGS"),
        Column("python_name", TEXT, "the Python name that sets it", missing="follows from the program"),
        Column("environment", TUPLE, "environment variables read for its default, or that force it"),
        Column("option", TEXT, "argument of torch.compile that sets it", missing="none does"),
        Column("default", TEXT, "its default as written in torch, cut at 120 characters",
               missing="no option of a config module"),
        Column("meaning", TEXT, "the start of torch's own comment; of fields that are no option, a sentence",
               missing="torch says nothing"),
        Column("context_forms", TUPLE, "context forms that hold the same (torch 2.10 and later has them); empty where none does",
               torch_name="torch/_inductor/runtime/caching/context.py"),
        Column("affects", TEXT, "what is known: generated code (sources that make code read it), host (workers, waiting, "
               "logs), inputs, graph, or unknown"),
        Column("basis", TEXT, "what affects rests on", missing="generated code: read_by says it; unknown: nothing"),
        Column("read_by", TUPLE, "modules of torch that read the option, without the config module itself"),
    ),
)  # fmt: skip


BYPASSES: Final = Frame(
    "bypasses",
    "one reason for which torch does not cache a graph",
    (
        Column("message", TEXT, "torch's reason; … stands for what it puts in; empty where it gives none",
               torch_name="cache_bypass_reason"),
        Column("caches", TUPLE, "the caches whose lookups say it"),
        Column("versions", TUPLE, "the versions read that have it"),
        Column("first_version", TEXT, "the first of the versions read that has it"),
        Column("last_version", TEXT, "the last of the versions read that has it"),
        Column("meaning", TEXT, "when torch gives it"),
        Column("advice", TEXT, "what lifts it, or that nothing does"),
        Column("basis", TEXT, "what the advice rests on: tried with a torch, or torch's sources alone"),
        Column("raised_in", TUPLE, "the files and functions of torch that raise it",
               torch_name="BypassFxGraphCache, BypassAOTAutogradCache"),
    ),
)  # fmt: skip
