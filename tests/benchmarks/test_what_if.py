"""A toggle and a sensitivity over 100,000 lookups of 640 fields.

Made from one real recording (config_flip of 2.13.0: an AOTAutograd and an FX lookup of about 640 fields each), which is
repeated as 1,000 runs of 50 graphs. What is varied, by hand: `gm` by graph; of each run the output path (64
ranks), one, two or three of 30 other configs, the thread count and now and then torch itself. So nearly every key is
new, 35 fields vary, and what a replay has to hold is as large as it gets. ``CACHESCOPE_WHAT_IF_RUNS`` sets another number
of runs.

Started as a program, it prints its own peak of memory, the store of hash details included.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import tarfile
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import cachescope
from cachescope.details import HashDetails
from cachescope.scope import Scope

RUNS = int(os.environ.get("CACHESCOPE_WHAT_IF_RUNS", "1000"))
GRAPHS = 50
RANKS = 64
ARCHIVE = Path(__file__).parent.parent / "data" / "recordings" / "2.13.0" / "config_flip.tar.xz"
LEAK = "inductor_config[aot_inductor.output_path]"
HASH_LETTERS = "abcdefghijklmnopqrstuvwxyz234567"


def recorded() -> Scope:
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(ARCHIVE) as archive:
            archive.extractall(folder, filter="data")
        return cachescope.read(Path(folder) / "trace")


class Repeated:
    """Many runs made from one."""

    def __init__(self) -> None:
        self.random = random.Random(0)
        self.source = recorded()
        self.store = HashDetails()
        first = self.source.lookups.head(2)
        self.sets = [self._copied(int(code)) for code in first["detail_set"]]
        switches = [f for f in self.store.fields if f.startswith("inductor_config[")]
        self.switches = [f for f in switches if f != LEAK][:: len(switches) // 30][:30]
        self.codes: dict[tuple[str, int], int] = {}

    def _copied(self, code: int) -> np.ndarray:
        details = self.source.tables.hash_details
        components = [details.components[c] for c in details.sets[code]]
        set_code, _ = self.store.add(components)
        assert set_code is not None
        return self.store.sets[set_code]

    def component(self, field: str, value: int) -> int:
        """A component that the recording does not have: the field with another hash."""
        if (field, value) not in self.codes:
            name = "".join(random.Random(f"{field} {value}").choices(HASH_LETTERS, k=51))
            self.store._add_component(f"[{name}] {field}: value {value}")
            self.codes[field, value] = len(self.store.components) - 1
        return self.codes[field, value]

    def scope(self) -> Scope:
        rows, known, start = [], {}, 1_700_000_000_000_000_000
        places = [
            {self.store.fields[self.store.field_codes[c]]: at for at, c in enumerate(s)} for s in self.sets
        ]
        for run in range(RUNS):
            changed = {LEAK: run % RANKS}
            for field in self.random.sample(self.switches, run // RANKS % 4):
                changed[field] = self.random.randrange(1, 3)
            if run % 10 == 9:
                changed["cpp_runtime_thread_count"] = 1
            if run % 200 == 199:
                changed["torch_version"] = run
            for graph in range(GRAPHS):
                name = (graph, *sorted(changed.items()))
                is_new = name not in known
                if is_new:
                    known[name] = self._sets(places, graph, changed)
                rows += self._lookups(run, graph, known[name], is_new, start + run * 10**11, len(rows))
        tables = self.source.tables
        lookups = pd.DataFrame(rows).astype(tables.lookups.dtypes.to_dict())[list(tables.lookups.columns)]
        processes = pd.concat([tables.runs.head(1)] * RUNS, ignore_index=True)
        processes["run"] = np.arange(RUNS)
        processes["run"] = processes["run"].astype("Int64")
        return Scope(replace(tables, lookups=lookups, runs=processes, hash_details=self.store))

    def _sets(self, places: list[dict[str, int]], graph: int, changed: dict[str, int]) -> list[int]:
        found = []
        for codes, place in zip(self.sets, places, strict=True):
            mine = codes.copy()
            for field, value in {**changed, "gm": graph}.items():
                mine[place[field]] = self.component(field, value)
            found.append(len(self.store.sets))
            self.store.sets.append(mine)
        return found

    def _lookups(
        self, run: int, graph: int, sets: list[int], is_new: bool, start: int, number: int
    ) -> list[dict[str, object]]:
        rows = []
        for at, (row, letter) in enumerate(zip(self._rows, "af", strict=True)):
            when = pd.Timestamp(start + graph * 10**9 + at * 10**6, tz="UTC")
            changed = {
                "lookup": number + at,
                "run": run,
                "order": 2 * graph + at,
                "time": when,
                "end_time": when,
                "cache_key": f"{letter}{sets[at]:051d}",
                "outcome": "full_miss" if is_new else "hit",
                "compile_id": f"{graph}/0",
                "aot_lookup": number if at else None,
                "time_taken_ns": 500_000_000 if is_new and at else None,
                "time_saved_ns": None if is_new or not at else 500_000_000,
                "detail_set": sets[at],
            }
            rows.append(row | changed)
        return rows

    @property
    def _rows(self) -> list[dict[str, object]]:
        if not hasattr(self, "_two"):
            self._two = self.source.lookups.head(2).to_dict("records")
        return self._two


@pytest.fixture(scope="module")
def scope() -> Scope:
    made = Repeated().scope()
    made.what_if()  # the first makes what all toggles share
    return made


@pytest.mark.benchmark(group="what-if")
@pytest.mark.parametrize("without", [LEAK, "inductor_configs", "gm", "inductor_config[cpp.*]"])
def test_toggle(scope: Scope, without: str, benchmark) -> None:  # type: ignore[no-untyped-def]
    """The rates before and after: what a screen shows."""
    benchmark.extra_info |= {"lookups": len(scope.lookups), "fields": len(scope._ground.replay.table.fields)}
    scope.what_if(without=without)
    rates = benchmark(lambda: scope.what_if(without=without).rates)
    assert rates["lookups"].tolist() == [RUNS * GRAPHS * 2] * 2


@pytest.mark.benchmark(group="what-if")
def test_sensitivity(scope: Scope, benchmark) -> None:  # type: ignore[no-untyped-def]
    ranking = benchmark.pedantic(scope.sensitivity, rounds=3, warmup_rounds=1)
    assert (LEAK,) in ranking["fields"].tolist()


def peak_megabytes() -> int:
    """The most memory this process had. Not by getrusage: a child starts with the peak of its parent there."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) // 1024


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
@pytest.mark.benchmark(group="what-if")
def test_memory(benchmark) -> None:  # type: ignore[no-untyped-def]
    command = [sys.executable, __file__]
    done = benchmark.pedantic(
        lambda: subprocess.run(command, capture_output=True, text=True, check=True), rounds=1
    )
    peak = int(done.stdout.split()[-2])
    benchmark.extra_info["peak_megabytes"] = peak
    assert peak < 1000


if __name__ == "__main__":
    made = Repeated().scope()
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
        f"{len(made._ground.replay.table.varying)} of {len(made._ground.replay.table.fields)} fields vary,",
        end=" ",
    )
    print(f"{len(made._ground.replay.table.keys)} keys; peak {peak_megabytes()} MB")
