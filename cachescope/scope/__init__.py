"""The Scope: everything read, as frames, with the questions it answers."""

from __future__ import annotations

from cachescope.scope.read import read
from cachescope.scope.scope import Scope

__all__ = ["Scope", "read"]
