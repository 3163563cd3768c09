"""Where torch.compile stores a key below a cache root.

Pure functions without torch: the cache root is an argument, and no directory is created
(torch's own functions call ``cache_dir()``, which creates it and sets the environment).
"""

from __future__ import annotations

import os


def get_path(
    basename: str, extension: str, specified_dir: str = "", cache_root: str = ""
) -> tuple[str, str, str]:
    """Return where torch puts generated code: its base name, folder and path.

    Parameters
    ----------
    basename : str
        The key, for example ``c`` and 51 characters.
    extension : str
        Without the leading dot; may contain dots (``main.cpp``).
    specified_dir : str, optional
        Another folder: absolute, or below `cache_root`. By default the folder is the
        second and third character of `basename`.
    cache_root : str, optional
        What torch's ``cache_dir()`` returns.

    Notes
    -----
    Mirrors ``torch/_inductor/codecache.py`` ``get_path`` (2.6 to 2.15).

    Examples
    --------
    >>> get_path("cev5uo2", "py", cache_root="/tmp/torchinductor_me")[2]
    '/tmp/torchinductor_me/ev/cev5uo2.py'
    """
    subdir = os.path.join(cache_root, specified_dir or basename[1:3])
    return basename, subdir, os.path.join(subdir, f"{basename}.{extension}")


def is_in_remote_cache(path: str) -> bool:
    """Whether the path of an entry is a key of a remote cache: it is no file, has no time, and nothing lies beside it.

    Such a path is what was read, an address or a dump, and the key of ``RedisRemoteCache``
    (torch/_inductor/remote_cache.py, 2.6 to 2.15).

    >>> is_in_remote_cache("redis://cache-host:6379/0/pt2:dynamo-pgo::job:0::c1")
    True
    """
    key, _, version = path.partition("/pt2:")[2].rpartition(":c")
    return "::" in key and version.isdecimal()
