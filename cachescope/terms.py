"""The words of the field, in torch's own spelling: caches, outcomes, verdicts, context forms.

Torch 2.13 unless said otherwise. Nothing here computes.
"""

from __future__ import annotations

import re
from typing import Final, Literal

Cache = Literal["fxgraph", "aotautograd"]
Outcome = Literal["hit", "full_miss", "guard_miss", "bypass", "disabled"]
Direction = Literal["forward", "backward", "inference"]
Details = Literal["recorded", "from_entry", "from_log", "not_recorded"]
Verdict = Literal[
    "first_lookup",
    "key_changed",
    "guard_failed",
    "entry_unavailable",
    "compiled_concurrently",
    "bypassed",
    "disabled",
    "details_not_recorded",
    "no_detail_differs",
]

FXGRAPH: Final = "fxgraph"
AOTAUTOGRAD: Final = "aotautograd"
CACHES: Final = (AOTAUTOGRAD, FXGRAPH)

# Meanings are shown to people: `cachescope.describe("verdicts")`.
VERDICTS: Final[dict[str, str]] = {
    "first_lookup": "nothing earlier to compare with: the graph is new, as at every cold start",
    "key_changed": "another key for the same graph: a field's hash differs, is new or is gone",
    "guard_failed": "the key was found, but no stored entry's guards held",
    "entry_unavailable": "the same key had been stored, and was not found or could not be loaded",
    "compiled_concurrently": "another process was compiling the same key at that moment",
    "bypassed": "torch would not cache it, and says why",
    "disabled": "caching was switched off",
    "details_not_recorded": "it missed and nothing says what was in the key",
    "no_detail_differs": "the keys differ and every recorded field is equal",
}

# torch/_inductor/runtime/caching/context.py, `_RuntimeContext` and `_CompileContext` (2.10+).
RUNTIME_FORMS: Final = (
    "inductor_configs",
    "torch_determinism_configs",
    "cuda_matmul_precision_configs",
)
COMPILE_FORMS: Final = (
    "torch_version_hash",
    "triton_version_hash",
    "runtime",
    "runtime_version",
    "accelerator_properties",
)

# torch/_inductor/codecache.py, `sha256_hash`: 51 characters of lower-case base32.
HASH: Final = r"[a-z2-7]{51}"
FX_KEY: Final = re.compile(rf"f{HASH}")
AOT_KEY: Final = re.compile(rf"a{HASH}")
CODE_KEY: Final = re.compile(rf"c{HASH}")

# The two loggers whose DEBUG records hold the hash details.
LOGGERS: Final = "+torch._inductor.codecache,+torch._functorch._aot_autograd.autograd_cache"
HOW_TO_RECORD: Final = (
    f'record with TORCH_TRACE=DIR TORCH_LOGS="{LOGGERS}", or with: cachescope record -- COMMAND'
)
