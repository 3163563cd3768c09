"""The request key in the name of a CUTLASS operation list: it identifies the machine that the list is for."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from itertools import product
from typing import Final, NamedTuple

# `cutlass_key()` if torch finds no Python module in its CUTLASS folder: sha256 of no bytes, as in every release.
NO_CUTLASS_KEY: Final = hashlib.sha256().digest()

TORCH_FILE_HASHES: Final[dict[tuple[str, ...], str]] = {
    (): "2.8 or older",
    (
        "fffc8e4a697b92ed1c1eded408b9af54d4bf6f4debe4c4c480f5a17781df103e",
        "35a5508d4cff2187698bf15f25db1018c860ede9c8e6cb8e2f3a6408d28cae8f",
    ): "2.9.0 or 2.9.1",
    (
        "fffc8e4a697b92ed1c1eded408b9af54d4bf6f4debe4c4c480f5a17781df103e",
        "90779e14a096ee7221bc5e87ec0da2e16d2c781dbb4acbc2866a658dcadedb40",
    ): "2.10.0",
    (
        "de7b43f75bd89c0dac5936e5dd2b409d984bf7bde7aa2e43a1b0cb7b4f6715c3",
        "582e76017c54c9dd689cc50afb50072ed9543a8a0ea1a9ead675c1be81783407",
    ): "2.11.0",
    (
        "b47c757d10aa6a1c392a92771f2afdab4ba1d130a2df97b7090b000f3bf0b909",
        "0c23a67bbc6733897e8490b057b6fb6030f3074a53645f0a9339c1cf09e9fd8e",
    ): "2.12.0 or 2.12.1",
    (
        "b47c757d10aa6a1c392a92771f2afdab4ba1d130a2df97b7090b000f3bf0b909",
        "e3b266377af6a0847d492afc94c2eea91423a8302372e8cc4d5f0dd628e15f54",
    ): "2.13.0",
    (
        "336434186038fc1321f8cae50c6ed78d1611c7a088216edfb7252fa0ea93efba",
        "f766db216235c243a5ec4eb19e209c563761456f753c63ff1b94657ed2f3ed28",
    ): "2.14.0 or 2.14.1",
    (
        "336434186038fc1321f8cae50c6ed78d1611c7a088216edfb7252fa0ea93efba",
        "f17db4efba043d4b55c1a2ed5a55eb176471ed3cb4695bd424925f5cda833851",
    ): "2.15.0",
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
