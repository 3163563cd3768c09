"""The Scope: everything that was read, as frames, and the questions that it answers."""

from __future__ import annotations

from cachescope.scope.read import read
from cachescope.scope.scope import Scope

__all__ = ["Scope", "read"]
