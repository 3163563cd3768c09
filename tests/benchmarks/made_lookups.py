"""Lookups by the thousand to the million, made from one real recording: what the benchmarks of the analysis stand on.

The recording is config_flip of 2.13.0: an AOTAutograd and an FX lookup of about 640 fields each. It is repeated as runs
of 50 graphs, two lookups a graph, so 1,000,000 lookups are 10,000 runs. What is varied, by hand, in every kind: `gm`
by graph (its hash, and its code by some operations), the key, the compile id, the times, the run, its rank and start.

======== =================================================================================================================
varied   one run after the other: of each the output path (64 ranks), one to three of 30 other configs, the thread count,
         now and then torch itself; nearly every key is new and 35 fields vary
hitting  every rank but the first hits everything
cold     all ranks at once and nothing stored: each misses every key while another one compiles it
leaking  all ranks at once, each with an output path of its own: no two keys are equal
mixed    one run after the other: hits, configs of a run (key_changed), graphs edited between runs and looked up under
         shifted compile ids, guard misses, bypasses, keys whose details nobody recorded
======== =================================================================================================================
"""

from __future__ import annotations

import random
import re
import tarfile
import tempfile
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

import cachescope
from cachescope.components import parse_component
from cachescope.details import HashDetails
from cachescope.frames.recorded_rows import LookupRow, RunRow
from cachescope.rows import columns_of
from cachescope.scope import Scope
from cachescope.table import Table

KINDS: Final = ("varied", "hitting", "cold", "leaking", "mixed")
GRAPHS: Final = 50
RANKS: Final = 64
LEAK: Final = "inductor_config[aot_inductor.output_path]"
_ARCHIVE: Final = Path(__file__).parent.parent / "data" / "recordings" / "2.13.0" / "config_flip.tar.xz"
_HASH_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz234567"
_OPERATIONS: Final = (
    "relu", "tanh", "sigmoid", "exp", "log", "sin", "cos", "sqrt", "abs", "neg", "mul", "add",
)  # fmt: skip
_START: Final = 1_700_000_000_000_000_000
_SECOND: Final = 1_000_000_000
_COMPILE_NS: Final = _SECOND // 2

Changed = Mapping[str, int]
Row = dict[str, Any]


def peak_megabytes() -> int:
    """The most memory this process had. Not by getrusage: a child starts with the peak of its parent there."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) // 1024


def made_scope(kind: str, lookups: int) -> Scope:
    """About so many lookups of one kind (see above): whole runs of 100."""
    return _Fleet(max(lookups // (2 * GRAPHS), 1)).scope(kind)


@dataclass(frozen=True, slots=True)
class _Compile:
    """The two lookups of one graph in one run."""

    run: int
    graph: int
    time: int
    changed: Changed
    outcome: str = "full_miss"
    place: int | None = None
    is_recorded: bool = True


class _Fleet:
    """Many runs made from one."""

    def __init__(self, runs: int) -> None:
        self._runs = runs
        self._random = random.Random(0)
        self._store = HashDetails()
        self._source = self._recorded()
        first = self._source.lookups.head(2)
        self._sets = [self._copied(int(code)) for code in first["detail_set"]]
        self._places = [
            {self._store.fields[self._store.field_codes[c]]: at for at, c in enumerate(s)} for s in self._sets
        ]
        gm = parse_component(self._store.components[self._sets[0][self._places[0]["gm"]]])
        assert gm is not None
        self._code = gm.value_text
        switches = [f for f in self._store.fields if f.startswith("inductor_config[") and f != LEAK]
        self._switches = switches[:: len(switches) // 30][:30]
        self._component_of: dict[tuple[str, int], int] = {}
        self._sets_of: dict[tuple[Any, ...], list[int]] = {}

    def scope(self, kind: str) -> Scope:
        columns: dict[str, list[Any]] = {name: [] for name in _VARIED}
        by_run = sorted(getattr(self, f"_{kind}")(), key=lambda one: (one.run, one.time))
        for at, one in enumerate(by_run):
            self._add_lookups(columns, one, 2 * (at % GRAPHS))
        lookups = Table(LookupRow, frame=self._frame(columns))
        runs = Table(RunRow, frame=self._processes(kind))
        return Scope(replace(self._source.tables, lookups=lookups, runs=runs, hash_details=self._store))

    def _varied(self) -> Iterator[_Compile]:
        known = set()
        for run in range(self._runs):
            changed = {LEAK: run % RANKS}
            for field in self._random.sample(self._switches, run // RANKS % 4):
                changed[field] = self._random.randrange(1, 3)
            if run % 10 == 9:
                changed["cpp_runtime_thread_count"] = 1
            if run % 200 == 199:
                changed["torch_version"] = run
            for graph in range(GRAPHS):
                name = (graph, *sorted(changed.items()))
                yield self._one(run, graph, changed, "hit" if name in known else "full_miss")
                known.add(name)

    def _hitting(self) -> Iterator[_Compile]:
        for run in range(self._runs):
            for graph in range(GRAPHS):
                yield self._one(run, graph, {}, "hit" if run else "full_miss")

    def _cold(self) -> Iterator[_Compile]:
        # Within one compile of each other, however many they are.
        late = 4 * _COMPILE_NS // (5 * self._runs)
        for run in range(self._runs):
            for graph in range(GRAPHS):
                yield _Compile(run, graph, _START + graph * _SECOND + run * late, {})

    def _leaking(self) -> Iterator[_Compile]:
        late = 4 * _COMPILE_NS // (5 * self._runs)
        for run in range(self._runs):
            for graph in range(GRAPHS):
                yield _Compile(run, graph, _START + graph * _SECOND + run * late, {LEAK: run})

    def _mixed(self) -> Iterator[_Compile]:
        known: set[tuple[Any, ...]] = set()
        for run in range(self._runs):
            configs: dict[str, int] = {}
            if run % 3 == 2:
                configs = dict.fromkeys(self._random.sample(self._switches, 1 + run % 2), run % 7 + 1)
            shift = run % 5 == 4
            for graph in range(GRAPHS):
                # A graph in ten is edited every twenty runs.
                edited = run // 20 if graph % 10 == 3 else 0
                changed = {**configs, "edition": edited}
                name = (graph, *sorted(changed.items()))
                outcome = "hit" if name in known else "full_miss"
                chance = self._random.random()
                if chance < 0.02:
                    outcome = "bypass"
                elif chance < 0.06 and name in known:
                    outcome = "guard_miss"
                else:
                    known.add(name)
                one = self._one(run, graph, changed, outcome)
                yield replace(one, place=graph + 1 if shift else graph, is_recorded=graph % 17 != 16)

    def _one(self, run: int, graph: int, changed: Changed, outcome: str) -> _Compile:
        return _Compile(run, graph, _START + run * 100 * _SECOND + graph * _SECOND, changed, outcome)

    # From a compile to two lookups.

    def _add_lookups(self, columns: dict[str, list[Any]], one: _Compile, order: int) -> None:
        sets = self._sets_with(one.graph, one.changed)
        number = len(columns["lookup"])
        is_bypass, is_hit = one.outcome == "bypass", one.outcome == "hit"
        for at, letter in enumerate("af"):
            is_known = one.is_recorded and not is_bypass
            row = {
                "lookup": number + at, "run": one.run, "order": order + at,
                "time": one.time + at * 1_000_000, "end_time": one.time + at * 1_000_000,
                "cache": ("aotautograd", "fxgraph")[at],
                "cache_key": None if is_bypass else f"{letter}{sets[at]:051d}", "outcome": one.outcome,
                "cache_state": {"hit": "hit", "bypass": "bypass"}.get(one.outcome, "miss"),
                "status_detailed": None if is_bypass else one.outcome.replace("full_miss", "miss"),
                "compile_id": f"{one.graph if one.place is None else one.place}/0",
                "direction": "inference" if at else None, "aot_lookup": number if at else None,
                "bypass_reason": f"custom pass {one.graph % 3} at 0x{number:x}" if is_bypass else None,
                "guards_expr": "L['t0'] <= 8" if one.outcome == "guard_miss" else None,
                "time_taken_ns": None if is_hit or not at else _COMPILE_NS,
                "time_saved_ns": _COMPILE_NS if is_hit and at else None, "segment": 1,
                "details": "recorded" if is_known else "not_recorded",
                "detail_set": sets[at] if is_known else None,
            }  # fmt: skip
            for name, values in columns.items():
                values.append(row[name])

    def _sets_with(self, graph: int, changed: Changed) -> list[int]:
        name = (graph, *sorted(changed.items()))
        if name not in self._sets_of:
            fields = {**changed, "gm": graph + 1000 * changed.get("edition", 0)}
            self._sets_of[name] = [
                self._set_with(codes, place, fields)
                for codes, place in zip(self._sets, self._places, strict=True)
            ]
        return self._sets_of[name]

    def _set_with(self, codes: array[int], place: Mapping[str, int], fields: Changed) -> int:
        mine = codes[:]
        for field, value in fields.items():
            if field in place:
                mine[place[field]] = self._component(field, value)
        return self._store.sets.add(mine.tobytes())

    def _component(self, field: str, value: int) -> int:
        """A component that the recording does not have: the field with another hash."""
        if (field, value) not in self._component_of:
            name = "".join(random.Random(f"{field} {value}").choices(_HASH_LETTERS, k=51))
            text = self._edited(value) if field == "gm" else f"value {value}"
            self._store.add_component(f"[{name}] {field}: {text}")
            self._component_of[field, value] = len(self._store.components) - 1
        return self._component_of[field, value]

    def _edited(self, graph: int) -> str:
        """The code of the recorded graph with operations of its own; editions of one graph have most in common."""
        edition, number = divmod(graph, 1000)
        chosen = [*random.Random(number).choices(_OPERATIONS, k=20), f"edit_{edition}"]
        lines = "".join(f"    {op}_{n} = torch.ops.aten.{op}(x_{n})\n" for n, op in enumerate(chosen))
        return self._code.replace("    return", f"{lines}    return", 1)

    def _frame(self, columns: dict[str, list[Any]]) -> pd.DataFrame:
        template = self._source.lookups.head(1)
        rest = {name: None for name in template.columns if name not in columns}
        dtypes = {column.name: column.dtype for column in columns_of(LookupRow)}
        times = {n: pd.to_datetime(pd.Series(columns.pop(n)), utc=True) for n in ("time", "end_time")}
        frame = pd.DataFrame({n: pd.array(v, dtype=dtypes[n]) for n, v in columns.items()} | times | rest)
        return frame.astype(dtypes)[list(template.columns)]

    def _processes(self, kind: str) -> pd.DataFrame:
        runs = np.arange(self._runs)
        frame = pd.concat([self._source.runs.head(1)] * self._runs, ignore_index=True)
        frame["run"] = pd.array(runs, dtype="Int64")
        frame["source"] = [f"rank_{run}.log" for run in runs]
        if kind in ("hitting", "cold", "leaking"):
            frame["rank"] = pd.array(runs, dtype="Int64")
        elif kind == "mixed":
            frame["rank"] = pd.array(runs % 8, dtype="Int64")
        return frame

    def _recorded(self) -> Scope:
        with tempfile.TemporaryDirectory() as folder:
            with tarfile.open(_ARCHIVE) as archive:
                archive.extractall(folder, filter="data")
            return cachescope.read(Path(folder) / "trace")

    def _copied(self, code: int) -> np.ndarray:
        details = self._source.tables.hash_details
        set_code, _ = self._store.add(details.components[c] for c in details.sets[code])
        assert set_code is not None
        return self._store.sets[set_code]


_VARIED: Final = (
    "lookup", "run", "order", "time", "end_time", "cache", "cache_key", "outcome", "cache_state",
    "status_detailed", "compile_id", "direction", "aot_lookup", "bypass_reason", "guards_expr",
    "time_taken_ns", "time_saved_ns", "segment", "details", "detail_set",
)  # fmt: skip
