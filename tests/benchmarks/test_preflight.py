"""CPU time of a pre-flight beside that of a cold compile: of four transformers, with all their processes.

`uncompiled` is the same program without torch.compile, imports and all, which both contain.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.capture.preflights import TORCH_PYTHON, environment, has_transformers, program

MODELS = ["gpt2", "llama", "bert", "vit"]


def cpu_s(command: Sequence[str], cache: Path, **more: str) -> float:
    """The processor time of a command and of all processes that it waits for."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=environment(cache, **more), check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.torch
@pytest.mark.timeout(3600)
@pytest.mark.benchmark(group="CPU time of a pre-flight")
@pytest.mark.parametrize("model", MODELS)
def test_preflight(model: str, tmp_path: Path, benchmark) -> None:  # type: ignore[no-untyped-def]
    if not has_transformers():
        pytest.skip(f"transformers is not installed for {TORCH_PYTHON}")
    command = program(f"{model}_training")
    preflight = [sys.executable, "-m", "cachescope", "preflight", "--", *command]
    cache = tmp_path / "cache"
    taken = benchmark.pedantic(lambda: cpu_s(preflight, cache), rounds=1)
    assert not cache.exists()
    cold = cpu_s(command, cache)
    uncompiled = cpu_s(command, cache, TORCHDYNAMO_DISABLE="1")
    benchmark.extra_info |= {
        "cpu_s": taken,
        "cold_cpu_s": cold,
        "uncompiled_cpu_s": uncompiled,
        "times_cold": taken / cold,
        "times_compiling": (taken - uncompiled) / (cold - uncompiled),
    }
