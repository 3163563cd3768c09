"""cachescope: why torch.compile's caches missed, which field of the key changed, and what it cost.

import cachescope
scope = cachescope.read("runs/", "/tmp/torchinductor_me")
scope.causes
"""

from __future__ import annotations

from cachescope.analysis.guards import holds
from cachescope.capture.contexts import capture
from cachescope.errors import CachescopeError, NotFoundError, RecordError, SchemaError, SourceError
from cachescope.frames import describe
from cachescope.keys import IsolationSchema, isolation_key
from cachescope.samples import sample
from cachescope.scope import Scope, read

__version__ = "0.1.0"

__all__ = [
    "CachescopeError",
    "IsolationSchema",
    "NotFoundError",
    "RecordError",
    "SchemaError",
    "Scope",
    "SourceError",
    "__version__",
    "capture",
    "describe",
    "holds",
    "isolation_key",
    "read",
    "sample",
]
