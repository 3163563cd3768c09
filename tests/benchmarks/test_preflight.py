"""CPU time of a pre-flight beside that of a cold compile, with all their processes: of transformers that are trained, and of one that is not.

Both ratios have the whole `cachescope preflight` in them: its own process, and the program's.

`times_cold` is the pre-flight's time in times of the whole cold run's. Importing torch and transformers and making the model are in
both, so a program of which they are most cannot come below their share, which is `uncompiled_cpu_s` in times of `cold_cpu_s`.

`times_compiling` leaves that out: what a pre-flight takes beyond the same program without torch.compile, in times of what compiling
takes beyond it. Importing Dynamo and Inductor and tracing the model are still in both.

Cold runs are as torch has them by default: the compiler is tried first, and processes that compile are started.
"""

import resource
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.capture.preflights import TORCH_PYTHON, environment, has_transformers, program
from tests.programs import ran

PROGRAMS = ["gpt2_training", "llama_training", "bert_training", "vit_training", "bert_inference"]
# The tests set them to save time.
NOT_BY_DEFAULT = ("TORCHINDUCTOR_COMPILE_THREADS", "TORCHINDUCTOR_VEC_ISA_OK")


def cpu_s(command: Sequence[str], cache: Path, **more: str) -> float:
    """The processor time of a command and of all processes that it waits for."""
    variables = environment(cache, **more)
    for name in NOT_BY_DEFAULT:
        del variables[name]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ran(command, variables)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.torch
@pytest.mark.timeout(3600)
@pytest.mark.benchmark(group="CPU time of a pre-flight")
@pytest.mark.parametrize("name", PROGRAMS)
def test_preflight(name: str, tmp_path: Path, benchmark) -> None:  # type: ignore[no-untyped-def]
    if not has_transformers():
        pytest.skip(f"transformers is not installed for {TORCH_PYTHON}")
    command = program(name)
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
