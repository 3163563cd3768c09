"""Logs of vLLM made by hand, in its words: one start of one part of a model."""

import os
import time
from collections.abc import Iterable
from pathlib import Path

from tests.vllm_folders import env_hash

NOON = 1_790_000_000


def said(text: str, at: int, pid: int | None = 1) -> str:
    """One line of vLLM, at a time since the epoch."""
    process = "" if pid is None else f"(EngineCore pid={pid}) "
    return f"{process}DEBUG {time.strftime('%m-%d %H:%M:%S', time.localtime(at))} [compilation/backends.py:500] {text}\n"


def start(
    folder: str,
    at: int = NOON,
    *,
    pid: int | None = 1,
    outcome: str = "compiled",
    env: dict[str, object] | None = None,
    config: str = "cfg",
    code: str = "code",
    compiler: str = "comp",
    root: str = "/c",
    rank: str = "rank_0_0",
    prefix: str = "backbone",
    before: Iterable[str] = (),
) -> str:
    """The lines of one start of ten seconds; with `env` the hashes are logged as at the level DEBUG."""
    path = f"{root}/torch_compile_cache/{folder}/{rank}/{prefix}"
    texts = [*before, f"Using cache directory: {path} for vLLM's torch.compile"]
    if env is not None:
        hashes = f"env={env_hash(env)} cfg={config} comp={compiler} code={code}"
        texts.append(f"torch.compile cache factors: {hashes} dir={path}")
    lines = [said(text, at, pid) for text in texts]
    if outcome in ("loaded", "partial"):
        lines.append(
            said(
                "Directly load the compiled graph(s) for compile range (1, 8) from the cache, took 1.0 s",
                at + 9,
                pid,
            )
        )
    if outcome in ("compiled", "partial"):
        lines.append(said("Compiling a graph for compile range (1, 8) takes 8.00 s", at + 9, pid))
    return "".join([*lines, said("torch.compile takes 9.00 s in total", at + 10, pid)])


def write_log(path: Path, *starts: str) -> Path:
    """Write a log as a process leaves it: last written after its last line."""
    path.write_text("".join(starts))
    os.utime(path, (NOON + 90_000, NOON + 90_000))
    return path
