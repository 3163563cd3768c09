"""A toggle and a sensitivity over 100,000 lookups of 640 fields, made as the kind "varied" of made_lookups.py says.

So nearly every key is new, 35 fields vary, and what a replay has to hold is as large as it gets. ``CACHESCOPE_LOOKUPS``
names other sizes, ``1000,1000000`` for instance.

Started as a program with a number of lookups, it prints its own peak of memory, the store of hash details included.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cachescope.scope import Scope

sys.path.insert(0, os.path.dirname(__file__))
from made_lookups import LEAK, made_scope, peak_megabytes

SIZES = [int(size) for size in os.environ.get("CACHESCOPE_LOOKUPS", "100000").split(",")]


@pytest.fixture(scope="module", params=SIZES)
def scope(request: pytest.FixtureRequest) -> Scope:
    made = made_scope("varied", request.param)
    made.what_if()  # the first makes what all toggles share
    return made


@pytest.mark.benchmark(group="what-if")
@pytest.mark.parametrize("without", [LEAK, "inductor_configs", "gm", "inductor_config[cpp.*]"])
def test_toggle(scope: Scope, without: str, benchmark) -> None:  # type: ignore[no-untyped-def]
    """The rates before and after: what a screen shows."""
    benchmark.extra_info |= {"lookups": len(scope.lookups), "fields": len(scope.replay.table.fields)}
    scope.what_if(without=without)
    rates = benchmark(lambda: scope.what_if(without=without).rates)
    assert rates["lookups"].tolist() == [len(scope.lookups)] * 2


@pytest.mark.benchmark(group="what-if")
def test_sensitivity(scope: Scope, benchmark) -> None:  # type: ignore[no-untyped-def]
    ranking = benchmark.pedantic(scope.sensitivity, rounds=3, warmup_rounds=1)
    assert (LEAK,) in ranking["fields"].tolist()


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
@pytest.mark.benchmark(group="what-if")
def test_memory(benchmark) -> None:  # type: ignore[no-untyped-def]
    command = [sys.executable, __file__, "100000"]
    done = benchmark.pedantic(
        lambda: subprocess.run(command, capture_output=True, text=True, check=True), rounds=1
    )
    peak = int(done.stdout.split()[-2])
    benchmark.extra_info["peak_megabytes"] = peak
    assert peak < 1000


if __name__ == "__main__":
    made = made_scope("varied", int(sys.argv[1]))
    before = peak_megabytes()
    started = time.perf_counter()
    made.what_if()
    print(f"first {time.perf_counter() - started:.2f} s; {before} MB before it;", end=" ")
    for field in (LEAK, "inductor_configs", "gm"):
        started = time.perf_counter()
        _ = made.what_if(without=field).rates
        print(f"{field} {1000 * (time.perf_counter() - started):.0f} ms;", end=" ")
    started = time.perf_counter()
    found = made.sensitivity()
    print(f"sensitivity {time.perf_counter() - started:.2f} s, {len(found)} rows;", end=" ")
    print(
        f"{len(made.replay.table.varying)} of {len(made.replay.table.fields)} fields vary,",
        end=" ",
    )
    print(f"{len(made.replay.table.keys)} keys; peak {peak_megabytes()} MB")
