"""The cache directory of a pre-flight: an empty one of its own, whatever the program chooses.

What the program chose is noted with each lookup: the real run would look there.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final

OWN_FOLDER: Final = "CACHESCOPE_PREFLIGHT_CACHE"
"""The variable that names the folder."""
MEANT_FOLDER: Final = "CACHESCOPE_PREFLIGHT_MEANT"
"""The variable that holds what ``TORCHINDUCTOR_CACHE_DIR`` was before: a process that is not reached keeps to the own folder."""
_INDUCTOR_DIR: Final = "TORCHINDUCTOR_CACHE_DIR"

_torchs_own: dict[str, Callable[[], str]] = {}


def patch_cache_dir(module: Any, replace: Any) -> None:
    """Make torch's ``cache_dir`` give the own folder (torch/_inductor/runtime/cache_dir_utils.py, 2.5 to 2.15)."""
    _torchs_own["default_cache_dir"] = module.default_cache_dir
    replace(module, "cache_dir", cache_dir)
    # Below it lie caches that ignore the variable.
    replace(module, "default_cache_dir", cache_dir)


def cache_dir() -> str:
    """The folder that torch uses; made if it does not exist."""
    folder = os.environ[OWN_FOLDER]
    os.makedirs(folder, exist_ok=True)
    return folder


def meant_cache_dir() -> str | None:
    """The directory that the program would use now; None if it is not known."""
    named, own, meant = (os.environ.get(name) for name in (_INDUCTOR_DIR, OWN_FOLDER, MEANT_FOLDER))
    if named == own:
        named = meant
    elif named is not None and own is not None and named.startswith(own):
        # The program derived it from the variable, as one folder for each rank.
        return None if meant is None else os.path.abspath(meant + named.removeprefix(own))
    if named is None and "default_cache_dir" in _torchs_own:
        named = _torchs_own["default_cache_dir"]()
    return None if named is None else os.path.abspath(named)
