"""cachescope: why torch.compile's caches missed, which field of the key changed, and what it cost.

import cachescope
scope = cachescope.read("runs/", "/tmp/torchinductor_me")
scope.causes
"""

from __future__ import annotations

from cachescope.analysis.contexts.differences import manifest_difference
from cachescope.analysis.contexts.keys import isolation_keys
from cachescope.analysis.guards import holds
from cachescope.capture.contexts import capture
from cachescope.catalogue.facts import fields
from cachescope.errors import CachescopeError, NotFoundError, RecordError, SchemaError, SourceError
from cachescope.frames import describe
from cachescope.keys import IsolationSchema, isolation_key
from cachescope.keys.key_schema import KeySchema
from cachescope.samples import sample
from cachescope.scope import Scope, read
from cachescope.scope.collect import collect
from cachescope.scope.live import Recording, recording
from cachescope.scope.magic import load_ipython_extension
from cachescope.scope.two_sides import compare, will_hit

__version__ = "0.1.0"

__all__ = [
    "CachescopeError",
    "IsolationSchema",
    "KeySchema",
    "NotFoundError",
    "RecordError",
    "Recording",
    "SchemaError",
    "Scope",
    "SourceError",
    "__version__",
    "capture",
    "collect",
    "compare",
    "describe",
    "fields",
    "holds",
    "isolation_key",
    "isolation_keys",
    "load_ipython_extension",
    "manifest_difference",
    "read",
    "recording",
    "sample",
    "will_hit",
]
