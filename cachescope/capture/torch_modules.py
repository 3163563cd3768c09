"""Imports of torch, which may not be installed."""

from __future__ import annotations

import importlib
from typing import Any

from cachescope.errors import CachescopeError


def torch_module(name: str, why: str = "recording a block needs it") -> Any:
    """Import a module of torch; raises `CachescopeError` if that fails."""
    try:
        return importlib.import_module(name)
    except (ImportError, OSError) as error:
        if isinstance(error, ModuleNotFoundError) and error.name == "torch":
            message = f"torch is not installed here, and {why}: pip install torch"
        else:
            message = f"torch is installed but does not import: {error}"
        raise CachescopeError(message) from error
