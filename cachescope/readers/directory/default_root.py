"""torch's default cache directory. It is never created here."""

from __future__ import annotations

import getpass
import os
import re
import tempfile


def default_root() -> str:
    """The cache directory of a torch started in this environment; it may not exist.

    Mirrors ``cache_dir`` and ``default_cache_dir`` (torch/_inductor/runtime/cache_dir_utils.py, 2.6 to 2.15), except
    that it neither creates the directory nor sets ``TORCHINDUCTOR_CACHE_DIR``.
    """
    given = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
    return unnamed_root() if given is None else os.path.abspath(given)


def unnamed_root() -> str:
    """The cache directory of a torch whose environment sets none."""
    try:
        user = getpass.getuser()
    except (KeyError, ImportError, OSError):
        user = f"uid_{os.getuid()}" if hasattr(os, "getuid") else "unknown_user"
    return os.path.join(tempfile.gettempdir(), "torchinductor_" + re.sub(r'[\\/:*?"<>|]', "_", user))
