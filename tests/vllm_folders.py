"""Folders of vLLM made by hand, with the names that vLLM would give them: its formula written out once more."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

ENV = {"VLLM_A": "1", "VLLM_PORT_RANGE": None, "VLLM_LIST": ["x", "y"]}


def env_hash(env: dict[str, Any]) -> str:
    """`hash_factors` of vllm/config/utils.py."""
    return hashlib.sha256(json.dumps(env, sort_keys=True).encode()).hexdigest()


def folder_name(env: dict[str, Any], config: str = "cfg", code: str = "code", compiler: str = "comp") -> str:
    """`VllmBackend.__call__` of vllm/compilation/backends.py."""
    return hashlib.sha256(str([env_hash(env), config, code, compiler]).encode()).hexdigest()[:10]


def make_folder(
    root: Path,
    env: dict[str, Any] | None = None,
    *,
    config: str = "cfg",
    code: str = "code",
    compiler: str = "comp",
    name: str | None = None,
    rank: str = "rank_0_0",
    prefix: str = "backbone",
    time: int | None = None,
) -> str:
    """Write the factors of one part of one rank; returns the name of the folder."""
    env = ENV if env is None else env
    name = name or folder_name(env, config, code, compiler)
    part = root / "torch_compile_cache" / name / rank / prefix
    part.mkdir(parents=True)
    factors = {"env": env, "config_hash": config, "code_hash": code, "compiler_hash": compiler}
    file = part / "cache_key_factors.json"
    file.write_text(json.dumps(factors, indent=2, sort_keys=True))
    if time is not None:
        os.utime(file, (time, time))
    return name
