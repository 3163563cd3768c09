"""The names of folders in vLLM's ``torch_compile_cache``, from what vLLM makes them of.

Pure functions without vLLM. Each docstring names the file, symbol and releases of vLLM it mirrors.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Final, NamedTuple

from cachescope.json_types import JsonObject

FOLDER_NAME: Final = re.compile("[0-9a-f]{10}")
"""The name of a folder, where ``CompilationConfig.cache_dir`` was not given."""

RANK_FOLDER: Final = re.compile(r"rank_(\d{1,9})(?:_(\d{1,9})(?:_dev\d{1,3})?)?")
"""The name of the folder of one rank in it: ``rank_0`` in 0.7, ``rank_0_0`` since, ``rank_0_0_dev0`` in forks."""


class PlaceInTree(NamedTuple):
    """Where a file of vLLM is: the name of its folder, its ranks and the part of the model; None where the path does not show it."""

    folder: str | None
    rank: int | None
    dp_rank: int | None
    prefix: str | None


def place_in_tree(path: str) -> PlaceInTree:
    """Where a file is, by the names above it in its path: ``<folder>/rank_<rank>_<data parallel rank>/<prefix>/<file>``.

    Mirrors ``VllmBackend.__call__`` of ``vllm/compilation/backends.py``.
    """
    names = path.split("/")[:-1]
    for at in range(len(names) - 1, 0, -1):
        if (match := RANK_FOLDER.fullmatch(names[at])) is not None:
            prefix = "/".join(names[at + 1 :]) or None
            dp_rank = None if match[2] is None else int(match[2])
            return PlaceInTree(names[at - 1], int(match[1]), dp_rank, prefix)
    return PlaceInTree(None, None, None, names[-1] if names else None)


def vllm_env_hash(env: JsonObject) -> str:
    """The hash of the environment variables that vLLM counts: 64 hexadecimal digits.

    Mirrors ``hash_factors`` of ``vllm/config/utils.py`` (0.13.0 and 0.33.0). JSON turns the tuples of
    ``normalize_value`` into lists, which are written the same.

    >>> vllm_env_hash({"VLLM_USE_AOT_COMPILE": True})[:10]
    'd140fb040e'
    """
    return hashlib.sha256(json.dumps(env, sort_keys=True).encode()).hexdigest()


def vllm_folder_name(env_hash: str, config_hash: str, code_hash: str, compiler_hash: str) -> str:
    """The name of a folder in ``torch_compile_cache``: 10 hexadecimal digits.

    Mirrors ``VllmBackend.__call__`` of ``vllm/compilation/backends.py`` (0.13.0 and 0.33.0). One engine names one
    folder: what it compiles first does, and what else it compiles (a draft model, an encoder) goes into the same.

    >>> vllm_folder_name("a", "b", "c", "d")
    '31bd2d8acd'
    """
    factors = [env_hash, config_hash, code_hash, compiler_hash]
    return hashlib.sha256(str(factors).encode()).hexdigest()[:10]
