"""torch.compile's own hashing, without torch.

Pure functions: they read no file, create no directory and do not use the environment. Each
docstring names the torch file, symbol and versions it mirrors.
"""

from cachescope.keys.cutlass import CutlassRequest, cutlass_request_key, cutlass_requests
from cachescope.keys.detail_hash import detail_hash
from cachescope.keys.hashing import (
    best_config_name,
    code_hash,
    entry_name,
    get_hash,
    sha256_hash,
    stored_code_hash,
    system_hash,
)
from cachescope.keys.isolation import (
    CONTEXT_FORMS,
    IsolationSchema,
    all_schemas,
    isolation_key,
    select_context,
)
from cachescope.keys.json_values import UnsupportedValueError
from cachescope.keys.paths import get_path
from cachescope.terms import COMPILE_FORMS, RUNTIME_FORMS

__all__ = [
    "COMPILE_FORMS", "CONTEXT_FORMS", "RUNTIME_FORMS", "CutlassRequest", "IsolationSchema",
    "UnsupportedValueError", "all_schemas", "best_config_name", "code_hash", "cutlass_request_key",
    "cutlass_requests", "detail_hash", "entry_name", "get_hash", "get_path", "isolation_key",
    "select_context", "sha256_hash", "stored_code_hash", "system_hash",
]  # fmt: skip
