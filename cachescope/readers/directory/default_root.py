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
    return os.path.join(tempfile.gettempdir(), "torchinductor_" + file_name_of(user_name()))


def user_name() -> str:
    """Who torch takes the user for."""
    try:
        return getpass.getuser()
    except (KeyError, ImportError, OSError):
        return f"uid_{os.getuid()}" if hasattr(os, "getuid") else "unknown_user"


def file_name_of(user: str) -> str:
    """The user's name in that of a folder."""
    return re.sub(r'[\\/:*?"<>|]', "_", user)
