"""The request key in the name of a CUTLASS operation list: it identifies the machine that the list is for."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from itertools import product
from typing import Final, NamedTuple

from cachescope.catalogue.facts import document

# `cutlass_key()` if torch finds no Python module in its CUTLASS folder: sha256 of no bytes, as in every release.
NO_CUTLASS_KEY: Final = hashlib.sha256().digest()

TORCH_FILE_HASHES: Final = {
    tuple(hashes): releases for releases, hashes in document("cutlass_files.json").items()
}
"""`file_hashes` -> the torch releases whose wheels contain ``serialization.py`` and ``utils.py`` with these hashes.

In 2.9 and 2.10 the second file is ``cutlass_utils.py``.
"""


class CutlassRequest(NamedTuple):
    """The machine and the level that an operation list is for."""

    arch: str
    toolkit_version: str
    instantiation_level: str


def cutlass_request_key(
    cutlass_key: bytes, arch: str, toolkit_version: str, instantiation_level: str, *file_hashes: str
) -> str:
    """Return the 8 hexadecimal digits of ``configs_<request key>.json``.

    Parameters
    ----------
    cutlass_key : bytes
        What torch's ``cutlass_key()`` returns.
    arch, toolkit_version : str
        For example ``"90"`` and ``"12.4"``.
    instantiation_level : str
        ``torch._inductor.config.cutlass.cutlass_instantiation_level``.
    *file_hashes : str
        From torch 2.9: sha256, as 64 digits, of torch's own ``serialization.py`` and ``utils.py`` for CUTLASS.

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


def cutlass_requests(
    request_key: str,
    archs: Iterable[str],
    toolkit_versions: Iterable[str],
    instantiation_levels: Iterable[str] = ("0",),
    cutlass_key: bytes = NO_CUTLASS_KEY,
    file_hashes: Iterable[str] = (),
) -> list[CutlassRequest]:
    """Return those of the given machines and levels that a CUTLASS operation list is for.

    Parameters
    ----------
    request_key : str
        From the name of the file: the column ``cache_key`` of its entry.
    archs, toolkit_versions, instantiation_levels : iterable of str
        The values to try, in all combinations.
    cutlass_key : bytes, optional
        What torch's ``cutlass_key()`` returns; by default that of a CUTLASS folder without modules, such as
        CUTLASS's own source tree.
    file_hashes : iterable of str, optional
        As for `cutlass_request_key`: none for torch 2.8, two from 2.9.

    Returns
    -------
    list of CutlassRequest
        A wrong match has a chance of one in four thousand million for each combination.

    Examples
    --------
    >>> key = cutlass_request_key(NO_CUTLASS_KEY, "90", "12.4", "0")
    >>> cutlass_requests(key, archs=["80", "90"], toolkit_versions=["12.4", "12.8"])
    [CutlassRequest(arch='90', toolkit_version='12.4', instantiation_level='0')]
    """
    hashes = tuple(file_hashes)
    tried = (CutlassRequest(*parts) for parts in product(archs, toolkit_versions, instantiation_levels))
    return [one for one in tried if cutlass_request_key(cutlass_key, *one, *hashes) == request_key]
