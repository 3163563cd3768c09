"""Where torch puts its cache where nobody says where. The directory is not made."""

from __future__ import annotations

import getpass
import os
import re
import tempfile


def default_root() -> str:
    """The cache directory of a torch started in this environment; it may not be there.

    Mirrors ``cache_dir`` and ``default_cache_dir`` (torch/_inductor/runtime/cache_dir_utils.py, 2.6 to 2.15), but
    for making the directory and setting ``TORCHINDUCTOR_CACHE_DIR``.
    """
    given = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
    return unnamed_root() if given is None else os.path.abspath(given)


def unnamed_root() -> str:
    """The cache directory of a torch whose environment names none."""
    try:
        user = getpass.getuser()
    except (KeyError, ImportError, OSError):
        user = f"uid_{os.getuid()}" if hasattr(os, "getuid") else "unknown_user"
    return os.path.join(tempfile.gettempdir(), "torchinductor_" + re.sub(r'[\\/:*?"<>|]', "_", user))
