"""Why lookups missed, at more and more lookups: ten times the lookups, about ten times the time.

``CACHESCOPE_LOOKUPS`` names the sizes, ``1000,10000,100000,1000000`` for instance; without it 1,000. What
the lookups are made from is said in made_lookups.py. Started as a program with a kind and a number of lookups, it
prints what each step took (processor time, so that other work does not count) and the peak of memory after it; with
``--saved`` in a process that reads them from a saved scope.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

import cachescope
from cachescope.scope import Scope

sys.path.insert(0, os.path.dirname(__file__))
from made_lookups import KINDS, LEAK, made_scope, peak_megabytes

from tests.programs import ran

SIZES = [int(size) for size in os.environ.get("CACHESCOPE_LOOKUPS", "1000").split(",")]

MOST = {
    "varied": "key_changed",
    "hitting": "first_lookup",
    "cold": "compiled_concurrently",
    "leaking": "key_changed",
    "mixed": "key_changed",
}

STEPS: dict[str, Callable[[Scope], Any]] = {
    "lookups": lambda scope: scope.lookups,
    "misses": lambda scope: scope.misses,
    "causes": lambda scope: scope.causes,
    "facts": lambda scope: scope.facts,
    "hit_rates": lambda scope: scope.hit_rates(by=["run", "cache"]),
    "repr": repr,
    "html": lambda scope: scope._repr_html_(),
    "explain": lambda scope: scope.explain(),
    "first toggle": lambda scope: scope.what_if(without=LEAK).rates,
    "toggle": lambda scope: scope.what_if(without=LEAK).rates,
    "sensitivity": lambda scope: scope.sensitivity(),
}


@pytest.mark.benchmark(group="judging")
@pytest.mark.parametrize("lookups", SIZES)
@pytest.mark.parametrize("kind", KINDS)
def test_judging(kind: str, lookups: int, benchmark: Any) -> None:
    """Every miss with its verdict and its cause."""
    made = made_scope(kind, lookups)

    def judge() -> Scope:
        scope = Scope(made.tables)
        assert len(scope.causes) > 0
        return scope

    scope = benchmark.pedantic(judge, rounds=3 if lookups <= 10_000 else 1)
    # So that a benchmark measures what it names.
    assert scope.misses["verdict"].mode().tolist() == [MOST[kind]]
    assert scope.causes["misses"].sum() == len(scope.misses) == (scope.lookups["outcome"] != "hit").sum()
    if benchmark.stats is not None:
        each = benchmark.stats.stats.median / len(scope.lookups)
        benchmark.extra_info |= {"microseconds_a_lookup": round(1e6 * each, 1)}


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
@pytest.mark.benchmark(group="judging")
def test_memory(benchmark: Any) -> None:
    """Of all steps, and of making the lookups, which are nearly all of different keys."""
    command = [sys.executable, __file__, "varied", "100000"]
    done = benchmark.pedantic(lambda: ran(command), rounds=1)
    peak = int(done.stdout.split()[-2])
    benchmark.extra_info["peak_megabytes"] = peak
    assert peak < 1000


def report(kind: str, scope: Scope, steps: Iterable[str]) -> None:
    """Print what each step takes."""
    print(f"{kind}, {len(scope.lookups):,} lookups; peak {peak_megabytes()} MB", flush=True)
    for name in steps:
        started = time.process_time()
        STEPS[name](scope)
        took = time.process_time() - started
        each = 1e6 * took / len(scope.lookups)
        print(f"{name:>14} {took:8.2f} s {each:8.1f} µs a lookup; peak {peak_megabytes()} MB", flush=True)


# A toggle and a sensitivity over lookups of 640 fields: nearly every key is new, 35 fields vary, and what a replay has to hold is
# as large as it gets.
MANY = [int(size) for size in os.environ.get("CACHESCOPE_LOOKUPS", "100000").split(",")]


@pytest.fixture(scope="module", params=MANY)
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


if __name__ == "__main__":
    kind, size, *saved = sys.argv[1:]
    if not saved:
        report(kind, made_scope(kind, int(size)), STEPS)
    elif saved == ["--saved"]:
        # Making the lookups leaves memory behind: a process of its own reads them, and judges.
        with tempfile.TemporaryDirectory() as folder:
            made_scope(kind, int(size)).save(Path(folder) / "saved")
            subprocess.run([sys.executable, __file__, kind, size, f"{folder}/saved"], check=True)
    else:
        report(kind, cachescope.read(saved[0]), ("misses", "first toggle", "toggle", "sensitivity"))
