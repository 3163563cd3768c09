"""The system hash: the name of max-autotune's timings file, ``cache/<64 hex>``."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from cachescope.keys.json_values import sorted_json


def system_hash(info: Mapping[str, object]) -> str:
    """Return torch's 64 hexadecimal digits for a ``system`` object.

    Parameters
    ----------
    info : mapping
        The ``system`` object of the file, or the same without its ``hash``. Through torch
        2.14 it is empty on a machine without CUDA or ROCm; from 2.15 it always has
        ``version`` and may have ``device_interfaces``.

    Raises
    ------
    UnsupportedValueError
        If JSON cannot represent a value.

    Notes
    -----
    Mirrors ``torch/_inductor/codecache.py`` ``CacheBase.get_system`` (2.6 to 2.15;
    ``SYSTEM_CACHE_KEY_STRATEGY`` from 2.13).

    Examples
    --------
    >>> system_hash({})[:8]
    '44136fa3'
    """
    hashed = {key: value for key, value in info.items() if key != "hash"}
    return hashlib.sha256(sorted_json(hashed).encode()).hexdigest()
