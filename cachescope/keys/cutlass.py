"""The request key in the name of a CUTLASS operation list: which machine the list is for."""

from __future__ import annotations

import hashlib


def cutlass_request_key(
    cutlass_key: bytes, arch: str, toolkit_version: str, instantiation_level: str, *file_hashes: str
) -> str:
    """Return the 8 hexadecimal digits of ``configs_<request key>.json``.

    Parameters
    ----------
    cutlass_key : bytes
        What torch's ``cutlass_key()`` returns.
    arch, toolkit_version : str
        ``"90"`` and ``"12.4"``, for instance.
    instantiation_level : str
        ``torch._inductor.config.cutlass.cutlass_instantiation_level``.
    *file_hashes : str
        From torch 2.9 sha256, as 64 digits, of torch's own ``serialization.py`` and ``utils.py`` for CUTLASS.

    Notes
    -----
    Mirrors ``get_config_request_key`` in ``torch/_inductor/codegen/cuda/cutlass_cache.py`` (2.8 to 2.10) and
    ``torch/_inductor/codegen/cutlass/cache.py`` (2.11 to 2.15).

    Examples
    --------
    >>> len(cutlass_request_key(b"", "90", "12.4", "0"))
    8
    """
    parts = (cutlass_key.hex(), arch, toolkit_version, instantiation_level, *file_hashes)
    return hashlib.sha256("-".join(parts).encode()).hexdigest()[:8]
