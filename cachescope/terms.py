"""The terms of the field, in torch's own spelling: caches, outcomes, evidence, context forms.

Torch 2.13 unless stated otherwise. Nothing is computed here.
"""

from __future__ import annotations

import re
from typing import Final, Literal

# The evidence for a verdict. Shown to users: `cachescope.describe("evidence_kinds")`.
Evidence = Literal["recorded", "inferred", "not_known"]
EVIDENCE_KINDS: Final[dict[str, str]] = {
    "recorded": "torch or the operating system wrote it down",
    "inferred": "it follows from what was written down; the sentence beside it says how",
    "not_known": "what was read does not show it; the sentence beside it says what is missing",
}

FXGRAPH: Final = "fxgraph"
AOTAUTOGRAD: Final = "aotautograd"
CACHES: Final = (AOTAUTOGRAD, FXGRAPH)
VLLM: Final = "vllm"
"""The cache of a lookup of vLLM's own: one part of a model that one rank found compiled, or compiled."""
MISSED: Final = ("full_miss", "guard_miss")

# How a lookup ended. Shown to users: `cachescope.describe("outcomes")`.
OUTCOMES: Final[dict[str, str]] = {
    "hit": "an entry was found under the key, its guards held, and it was used",
    "full_miss": "there was no entry under the key, or none could be loaded; torch compiled",
    "guard_miss": "there were entries under the key, but their guards did not hold for these sizes; torch compiled "
    "(inferred in text logs of torch 2.8 and later, which do not name it)",
    "bypass": "torch would not cache this graph; `bypass_reason` holds its reason",
    "disabled": "the cache was switched off",
    "unknown": "what was read does not show how the lookup ended; it counts in no rate",
    "would_hit": "predicted by a pre-flight: there is an entry under the key, and its guards hold",
    "would_miss": "predicted by a pre-flight: there is no entry under the key, none can be loaded, or no guards hold",
    "would_bypass": "predicted by a pre-flight: torch would not cache this graph; `bypass_reason` holds its reason",
    "not_known": "a pre-flight cannot predict how the lookup would end; `prediction` says why, and it counts in no rate",
}

# The outcomes that a pre-flight predicts, by the real outcome. Both kinds of misses have the same word here: `status_detailed`
# distinguishes a guard miss.
PREDICTED: Final = {
    "hit": "would_hit", "full_miss": "would_miss", "guard_miss": "would_miss", "bypass": "would_bypass",
    "unknown": "not_known",
}  # fmt: skip

# The kinds of files in a cache directory. Shown to users: `cachescope.describe("entry_kinds")`.
CODE: Final = "code"
AUTOTUNE: Final = "autotune"
BEST_CONFIG: Final = "best_config"
BUNDLED_AUTOTUNE: Final = "bundled_autotune"
CUTLASS_CONFIGS: Final = "cutlass_configs"
CACHING_PACKAGE: Final = "caching_package"
IMC: Final = "imc"
MEMOIZER: Final = "memoizer"
MEMOIZER_DUMP: Final = "memoizer_dump"
ON_DISK_CACHE: Final = "on_disk_cache"
PGO: Final = "pgo"
PRECOMPILE: Final = "precompile"
TRITON: Final = "triton"
MEGA_CACHE: Final = "mega_cache"
STANDALONE: Final = "standalone"
AOT_COMPILE: Final = "aot_compile"
AOTINDUCTOR: Final = "aotinductor"
PRECOMPILED_HEADER: Final = "precompiled_header"
VLLM_FACTORS: Final = "vllm_factors"
VLLM_HANDLES: Final = "vllm_handles"
VLLM_GRAPH: Final = "vllm_graph"
VLLM_ARTIFACT: Final = "vllm_artifact"
VLLM_AOT: Final = "vllm_aot"
VLLM_KINDS: Final = (VLLM_FACTORS, VLLM_HANDLES, VLLM_GRAPH, VLLM_ARTIFACT, VLLM_AOT)
SHIPPED: Final = (MEGA_CACHE, STANDALONE, AOT_COMPILE, AOTINDUCTOR)
"""Kinds of files that people ship by themselves."""
BUNDLES: Final = (MEGA_CACHE, STANDALONE, VLLM_ARTIFACT)
"""Kinds of files that hold entries."""
LOCK: Final = "lock"
OTHER: Final = "other"
ENTRY_KINDS: Final[dict[str, str]] = {
    FXGRAPH: "a compiled FX graph, for one key and one set of guards",
    AOTAUTOGRAD: "a joint, forward or inference graph of AOTAutograd, which points to FX graphs",
    CODE: "generated code (.py, .cpp, .cu) and what was compiled from it (.so, .cubin)",
    AUTOTUNE: "timings of max-autotune on one system, one file for all operators",
    BEST_CONFIG: "the fastest configuration of one Triton kernel",
    BUNDLED_AUTOTUNE: "the fastest configurations of the Triton kernels of one graph, as a remote cache holds them",
    CUTLASS_CONFIGS: "the CUTLASS operations for one architecture, toolkit and level",
    CACHING_PACKAGE: "a result that fcache or dcache stored (torch 2.10)",
    IMC: "what a deterministic cache held in memory at exit (torch 2.10)",
    MEMOIZER: "a memoized result with its parameters, such as a decision to pad (torch 2.11 and later)",
    MEMOIZER_DUMP: "the memoized results of a process, written at exit for people to read",
    ON_DISK_CACHE: "an entry of torch's general on-disk cache (torch 2.10 and later)",
    PGO: "which sizes varied between runs, for each frame (profile-guided dynamic shapes)",
    PRECOMPILE: "a whole compiled function, guards and all (TORCH_CACHING_PRECOMPILE=1)",
    TRITON: "one file of a kernel that Triton compiled: its metadata, an intermediate form, a binary",
    MEGA_CACHE: "the result of torch.compiler.save_cache_artifacts: entries of several caches in one file",
    STANDALONE: "one graph compiled by standalone_compile, saved as one file, with its entries of torch's caches",
    AOT_COMPILE: "a function that torch compiled ahead of time, guards, code and all (aot_compile, save_compiled_function)",
    AOTINDUCTOR: "a model that AOTInductor compiled ahead of time: a library and its sources, often with weights (.pt2)",
    PRECOMPILED_HEADER: "precompiled C++ headers, which all runs on a machine share",
    VLLM_FACTORS: "the factors of the name of a folder in vLLM's torch_compile_cache (cache_key_factors.json)",
    VLLM_HANDLES: "which artifact vLLM loads for which subgraph and sizes (vllm_compile_cache.py; for SGLang, sglang_compile_cache.py); never executed here",
    VLLM_GRAPH: "the graph that vLLM or SGLang compiled, for people to read (computation_graph.py)",
    VLLM_ARTIFACT: "one compiled subgraph of vLLM: torch's standalone artifact, with entries of torch's caches in it",
    VLLM_AOT: "a whole compiled model of vLLM (torch_aot_compile)",
    LOCK: "a lock file; torch leaves it behind, empty",
    OTHER: "anything else",
}

SNAPSHOT_VERSION: Final = 1
"""The format of a snapshot of contexts."""

# torch/_inductor/runtime/caching/context.py, `_RuntimeContext` and `_CompileContext` (2.10+).
RUNTIME_FORMS: Final = ("inductor_configs", "torch_determinism_configs", "cuda_matmul_precision_configs")
COMPILE_FORMS: Final = (
    "torch_version_hash", "triton_version_hash", "runtime", "runtime_version", "accelerator_properties",
)  # fmt: skip

# torch/_inductor/codecache.py, `sha256_hash`: 51 characters of lower-case base32.
HASH: Final = r"[a-z2-7]{51}"
FX_KEY: Final = re.compile(rf"f{HASH}")
AOT_KEY: Final = re.compile(rf"a{HASH}")
CODE_KEY: Final = re.compile(rf"c{HASH}")

# The settings that decide whether a process uses its caches at all; no key contains them. torch/_inductor/config.py and
# torch/_functorch/config.py; the fourth came with 2.8, and since 2.10 the first is torch.compiler.config's.
FORCE_DISABLE: Final = "torch._inductor.config.force_disable_caches"
FX_SWITCH: Final = "torch._inductor.config.fx_graph_cache"
AOT_SWITCH: Final = "torch._functorch.config.enable_autograd_cache"
BUNDLED_SWITCH: Final = "torch._functorch.config.bundled_autograd_cache"
# Precompilation, too, stores graphs in AOTAutograd entries (2.10 and later).
PRECOMPILE_SWITCH: Final = "torch._dynamo.config.caching_precompile"
# Switches of the remote caches; None means off outside Meta.
FX_REMOTE_SWITCH: Final = "torch._inductor.config.fx_graph_remote_cache"
AOT_REMOTE_SWITCH: Final = "torch._functorch.config.enable_remote_autograd_cache"
CACHE_SWITCHES: Final = (
    FORCE_DISABLE, FX_SWITCH, AOT_SWITCH, BUNDLED_SWITCH, PRECOMPILE_SWITCH, FX_REMOTE_SWITCH,
    AOT_REMOTE_SWITCH,
)  # fmt: skip
# The words of a snapshot if torch would not even compute a key.
WOULD_BYPASS: Final = "torch would bypass its cache"

# The levels of an audit's findings, the worst first.
AUDIT_LEVELS: Final = ("danger", "warning", "unproven", "note")
UNPROVEN: Final = AUDIT_LEVELS[2]

# The status of a file that may be valid, but may not be opened, or was not read completely.
UNREADABLE: Final = "unreadable"

# How the `damage` of an entry begins if no torch can load it: its bytes are not a complete pickle, or not one JSON object.
REFUSED: Final = (
    "empty file", "truncated", "not a pickle", "UnpicklingError", "UnicodeDecodeError", "EOFError",
    "no JSON", "holds a JSON",
)  # fmt: skip

# The `damage` of an entry that torch loads nevertheless: it does not compare the hash.
OTHER_NAME: Final = "content hash differs from the name"
# The `damage` of generated code that was edited: torch runs the file as it is.
OTHER_TEXT: Final = "code hash differs from the name"

# The file that `cachescope record` writes next to the logs of a run.
RUN_NOTE: Final = "run.json"

# The trace of a recorded block, in a folder of its process (cachescope/capture/live_trace.py).
BLOCK: Final = re.compile(r"(?P<folder>.*[/\\])block \d+ of process \d+\.log", re.DOTALL)

# The artifact that a pre-flight writes into its trace (cachescope/capture/preflight/notes.py).
PREFLIGHT_ARTIFACT: Final = "cachescope_preflight"

# The two loggers whose DEBUG records contain the hash details.
LOGGERS: Final = "+torch._inductor.codecache,+torch._functorch._aot_autograd.autograd_cache"
HOW_TO_RECORD: Final = (
    f'record with TORCH_TRACE=DIR TORCH_LOGS="{LOGGERS}", or with: cachescope record -- COMMAND'
)
INTERRUPTED: Final = "interrupted, as by Ctrl-C: torch recorded neither code nor an error"
"""The error of a compile that ended by an exception that torch does not note: torch/_dynamo/convert_frame.py, `_compile`, 2.4 to 2.15."""
