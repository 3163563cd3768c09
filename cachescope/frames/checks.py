"""Frames of checks: the bars of a check, keys that seem to stand for more than one thing, the findings of an audit."""

from __future__ import annotations

from typing import Final

from cachescope.columns import FLAG, REAL, TEXT, TUPLE, WHOLE, Column, Frame

CHECKS: Final = Frame(
    "checks",
    "one bar of a check",
    (
        Column("bar", TEXT, "min_hit_rate, max_time_lost or no_new_cause"),
        Column("wanted", REAL, "at least this hit rate, at most this time, at most this many new causes"),
        Column("found", REAL, "the value found", missing="nothing that was recorded shows it"),
        Column("unit", TEXT, "of wanted and found: share, ns or causes"),
        Column("passed", FLAG, "whether the bar is met; a value that is not known does not meet it"),
        Column("reason", TEXT, "one sentence"),
        Column("causes", TUPLE, "the causes of the failure, ids into causes; empty if the bar is met"),
    ),
)

FALSE_HITS: Final = Frame(
    "false_hits",
    "one key that seems to stand for more than one thing: a warning with its evidence, never a certainty",
    (
        Column("kind", TEXT, "different_code, different_graphs, different_devices, different_details, "
               "different_versions, different_settings or missing_field"),
        Column("cache", TEXT, "aotautograd or fxgraph"),
        Column("cache_key", TEXT, "the key", missing="it concerns all keys of an older torch, which lack the field"),
        Column("evidence", TEXT, "what was seen, in one sentence"),
        Column("fields", TUPLE, "what differs, or what the key lacks: fields, columns of runs or contexts, settings"),
        Column("entries", TUPLE, "the entries that differ, ids into entries"),
        Column("lookups", TUPLE, "the lookups of the key, ids into lookups"),
        Column("runs", TUPLE, "the runs that made them, ids into runs"),
        Column("hits", WHOLE, "how many of these lookups hit: only a hit can be a false one"),
    ),
)  # fmt: skip

AUDIT: Final = Frame(
    "audit",
    "one finding in a cache, before it is loaded",
    (
        Column("level", TEXT, "danger (made to run code, or everybody can write), warning (not known to be safe) or note"),
        Column("rule", TEXT, 'what was looked for: ``describe("audit_rules")``'),
        Column("path", TEXT, "the file or folder, as reached from the source given"),
        Column("offset", WHOLE, "where in the file it begins", "bytes", "it concerns the whole file, or is in compressed data"),
        Column("cache", TEXT, 'what the file is: ``describe("entry_kinds")``; for any other pickle, versioned, torch_save or pickle',
               missing="it does not concern the content"),
        Column("named", TEXT, "the function or class that a pickle names", missing="it names none"),
        Column("message", TEXT, "what was found, in one sentence"),
        Column("advice", TEXT, "what to do about it"),
    ),
)  # fmt: skip
