"""Frames of results: misses and their causes, changed fields, hit rates, predictions, differences."""

from __future__ import annotations

from typing import Final

from cachescope.columns import FLAG, REAL, TEXT, TUPLE, WHOLE, Column, Frame
from cachescope.verdict_kinds import VERDICTS

MISSES: Final = Frame(
    "misses",
    "one lookup that did not hit",
    (
        Column("lookup", WHOLE, "an id into lookups"),
        Column("verdict", TEXT, "why it missed: " + ", ".join(VERDICTS)),
        Column("kind", TEXT, "distinguishes causes with the same verdict: for entry_unavailable the reason, such as deleted or load error; for "
               "bypassed torch's reason; for guard_failed the key; for key_changed how the graph or torch changed; empty if the fields are enough"),
        Column(
            "baseline", TEXT, "what it is compared with, as ``lookup 3`` or ``entry 5``", missing="nothing"
        ),
        Column("baseline_lookup", WHOLE, "the earlier lookup it is compared with", missing="an entry, or none"),
        Column("baseline_entry", WHOLE, "the entry it is compared with", missing="a lookup, or none"),
        Column("changed", TUPLE, "fields whose hash differs, is new or is gone; for vLLM its factors, as in vllm_changes, and env_hash if only "
               "the hash of the environment is known; empty unless key_changed"),
        Column("root", FLAG, "False if it only follows from another miss, as an FX miss follows from the AOTAutograd miss of its graph"),
        Column("cause", WHOLE, "an id into causes"),
        Column("reason", TEXT, "one sentence"),
        Column("evidence", TEXT, "the kind of evidence for the verdict: recorded, inferred or not_known"),
        Column("evidence_text", TEXT, "the evidence, in one sentence"),
    ),
)  # fmt: skip

CAUSES: Final = Frame(
    "causes",
    "one distinct reason; first lookups are also a cause, with the verdict first_lookup",
    (
        Column("cause", WHOLE, "number of the cause, in order of time lost, then of misses"),
        Column("verdict", TEXT, "verdict of its root misses"),
        Column("kind", TEXT, "distinguishes causes with the same verdict and fields: why an entry was unavailable, "
               "how the code of a graph changed (a digest), from which torch to which"),
        Column("fields", TUPLE, "the changed fields of its root misses"),
        Column("misses", WHOLE, "misses with this cause, including consequences"),
        Column("roots", WHOLE, "misses that do not follow from another one"),
        Column("runs", TUPLE, "ids of the runs"),
        Column("ranks", TUPLE, "ranks, where known"),
        Column("time_lost_ns", WHOLE, "Inductor's compile time after its FX misses; AOTAutograd misses add nothing, so no time "
               "is counted twice; for vLLM what its log says, unless compile times of torch were read", "ns", "not recorded"),
        Column("summary", TEXT, "the cause in a few words"),
        Column("advice", TEXT, "what sets the field and how to keep it equal", missing="nothing certain to say"),
    ),
)  # fmt: skip

CHANGES: Final = Frame(
    "changes",
    "one field of a key that differs from the baseline: the frame of an explanation",
    (
        Column("field", TEXT, "path of the field"),
        Column("kind", TEXT, "graph, tensor, value, opaque, new or gone"),
        Column("summary", TEXT, "what changed, in one line"),
        Column("before", TEXT, "the value as torch printed it", missing="the field is new"),
        Column("after", TEXT, "the value as torch printed it", missing="the field is gone"),
        Column("differs_by", TUPLE, "the process-specific values in which it differs: rank, host, path, port, time, address, pid, "
               "random number; empty if none is recognised"),
        Column("is_certain", FLAG, "whether the logs show that these are values of both processes, or nothing else has this "
               "form; False if only their name or their look suggests it", missing="none is recognised"),
    ),
)  # fmt: skip

HIT_RATES: Final = Frame(
    "hit_rates",
    "one group of lookups; the columns that it is grouped by come first",
    (
        Column("lookups", WHOLE, "lookups"),
        Column("hits", WHOLE, "lookups that hit"),
        Column("misses", WHOLE, "full misses and guard misses"),
        Column("bypasses", WHOLE, "lookups bypassed or with caching switched off"),
        Column(
            "unknown",
            WHOLE,
            "lookups whose outcome was not seen: the log ends before it, or its line is missing",
        ),
        Column(
            "hit_rate",
            REAL,
            "hits / lookups with a known outcome; bypassed and disabled ones count, and lower it",
            missing="there are none",
        ),
        Column("time_saved_ns", WHOLE, "compile time saved by FX hits", "ns", "not recorded"),
        Column(
            "time_lost_ns",
            WHOLE,
            "compile time after FX lookups that did not hit; if no time of torch was read, that of vLLM's own",
            "ns",
            "not recorded",
        ),
        Column(
            "time_hit_rate",
            REAL,
            "time saved / (time saved + time lost)",
            missing="the times of the hits, or those of the others, are not recorded",
        ),
    ),
)

PREDICTIONS: Final = Frame(
    "predictions",
    "one FX or AOTAutograd entry, and whether a process would find it",
    (
        Column("entry", WHOLE, "an id into entries"),
        Column("cache", TEXT, "aotautograd or fxgraph"),
        Column("cache_key", TEXT, "its key"),
        Column("will_hit", TEXT, "yes, no or unknown, under the assumptions in the last column"),
        Column(
            "is_unsafe",
            FLAG,
            "whether its code was made for a different CPU, which no key contains: numbers may be wrong, or the process may crash",
            missing="not known, or it would not be found",
        ),
        Column("fields", TUPLE, "fields in which the process differs from the one that made the entry"),
        Column("reason", TEXT, "one sentence"),
        Column(
            "unsafe_reason",
            TEXT,
            "why it is unsafe, or why that is not known",
            missing="it is safe as far as is known, or would not be found",
        ),
        Column("assuming", TUPLE, "what was assumed; empty if the process looked the key up"),
    ),
)

COVERAGE: Final = Frame(
    "coverage",
    "one key that a run looked up, or one entry of a cache directory, and whether a mega-cache holds it",
    (
        Column("cache", TEXT, "for a lookup aotautograd or fxgraph, for an entry its kind"),
        Column("cache_key", TEXT, "the key", missing="torch made none, or the kind has none"),
        Column("held", TEXT, "yes, no or unknown; never: torch never puts this kind into a mega-cache"),
        Column("reason", TEXT, "one sentence"),
        Column("lookups", WHOLE, "number of lookups of the key", missing="it is an entry"),
        Column("lookup", WHOLE, "the first of them, an id into lookups", missing="it is an entry"),
        Column("entry", WHOLE, "an id into entries", missing="it is a looked-up key"),
    ),
)  # fmt: skip

BUILT: Final = Frame(
    "built",
    "one item that two directories have under the same key, and whether both built it the same way",
    (
        Column("cache", TEXT, "fxgraph, best_config (of a Triton kernel) or autotune (of max-autotune)"),
        Column("cache_key", TEXT, "the key, with equal guards", missing="max-autotune: its operator, inputs and device are equal"),
        Column("name", TEXT, "the operator or kernel", missing="not recorded, or an FX graph"),
        Column("result", TEXT, "same; code, kernels or choice: these differ; times: the choice is the same, only the measured "
               "times differ; not_known"),
        Column("before", TEXT, "key of the generated code, configuration, or fastest choice", missing="none is named"),
        Column("after", TEXT, "the same for the other side", missing="none is named"),
        Column("evidence", TEXT, "what was compared, and how it differs"),
        Column("entry_before", WHOLE, "an id into entries"),
        Column("entry_after", WHOLE, "an id into entries"),
    ),
)  # fmt: skip

DIFFERENCES: Final = Frame(
    "differences",
    "one field that differs between the paired keys of two sides",
    (
        Column(
            "group", WHOLE, "number of the difference: keys that differ in the same fields in the same way"
        ),
        Column("field", TEXT, "path of the field"),
        Column("kind", TEXT, "graph, tensor, value, opaque, new or gone"),
        Column("summary", TEXT, "what differs, in one line"),
        Column(
            "before", TEXT, "the value as torch printed it, of the first pair", missing="the field is new"
        ),
        Column(
            "after", TEXT, "the value as torch printed it, of the first pair", missing="the field is gone"
        ),
        Column("pairs", WHOLE, "pairs of keys that differ this way"),
    ),
)
