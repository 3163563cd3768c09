"""cachescope: why torch.compile's caches missed, which field of the key changed, and what it cost.

import cachescope
scope = cachescope.read("runs/", "/tmp/torchinductor_me")
scope.causes
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from cachescope.version import __version__

if TYPE_CHECKING:
    from cachescope import errors as errors
    from cachescope import figures as figures
    from cachescope import frames as frames
    from cachescope import keys as keys
    from cachescope import samples as samples
    from cachescope import scope as scope
    from cachescope.analysis.contexts.differences import manifest_difference
    from cachescope.analysis.contexts.keys import isolation_keys
    from cachescope.analysis.guards import holds
    from cachescope.auditing.audit import audit
    from cachescope.capture.contexts import capture
    from cachescope.catalogue.bypasses import bypasses
    from cachescope.catalogue.defects import defects
    from cachescope.catalogue.facts import fields
    from cachescope.errors import CachescopeError, NotFoundError, RecordError, SchemaError, SourceError
    from cachescope.frames.described import describe
    from cachescope.keys import IsolationSchema, isolation_key
    from cachescope.keys.key_schema import KeySchema
    from cachescope.report.verification import verify
    from cachescope.samples import sample
    from cachescope.scope.collect import collect
    from cachescope.scope.live import Recording, recording
    from cachescope.scope.locked import lock
    from cachescope.scope.magic import load_ipython_extension
    from cachescope.scope.preflight import Fix, Preflight, fix, preflight
    from cachescope.scope.read import read
    from cachescope.scope.scope import Scope
    from cachescope.scope.two_sides import compare, will_hit

__all__ = [
    "CachescopeError", "Fix", "IsolationSchema", "KeySchema", "NotFoundError", "Preflight", "RecordError",
    "Recording", "SchemaError", "Scope", "SourceError", "__version__", "audit", "bypasses", "capture",
    "collect", "compare", "defects", "describe", "fields", "fix", "holds", "isolation_key", "isolation_keys",
    "load_ipython_extension", "lock", "manifest_difference", "preflight", "read", "recording", "sample",
    "verify", "will_hit",
]  # fmt: skip

# Loaded on first use, so that printing help or pressing Ctrl-C does not wait for pandas.
_PLACES: Final = {
    "CachescopeError": "errors", "Fix": "scope.preflight", "IsolationSchema": "keys", "KeySchema": "keys.key_schema",
    "NotFoundError": "errors", "Preflight": "scope.preflight", "RecordError": "errors", "Recording": "scope.live",
    "SchemaError": "errors", "Scope": "scope.scope", "SourceError": "errors", "audit": "auditing.audit",
    "bypasses": "catalogue.bypasses", "capture": "capture.contexts", "collect": "scope.collect",
    "compare": "scope.two_sides", "defects": "catalogue.defects", "describe": "frames.described", "fields": "catalogue.facts",
    "holds": "analysis.guards", "isolation_key": "keys", "fix": "scope.preflight",
    "isolation_keys": "analysis.contexts.keys", "load_ipython_extension": "scope.magic", "lock": "scope.locked",
    "manifest_difference": "analysis.contexts.differences", "preflight": "scope.preflight", "read": "scope.read",
    "recording": "scope.live", "sample": "samples", "verify": "report.verification", "will_hit": "scope.two_sides",
}  # fmt: skip

_MODULES: Final = frozenset({"errors", "figures", "frames", "keys", "samples", "scope"})

# The package takes its name here when it is first imported, which is now; then the name is free for the function.
import_module(f"{__name__}.capture")
del globals()["capture"]

if not TYPE_CHECKING:  # a type checker sees the names above, and reports misspelt ones

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            return import_module(f"{__name__}.{name}")
        if name not in _PLACES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = globals()[name] = getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
        return found

    def __dir__() -> list[str]:
        return sorted({*__all__, *_MODULES})
