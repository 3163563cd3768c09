"""The frame lookups with what pre-flights foretell: their lookups and a directory in, rows out; made by hand."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd

from tests.made import Made, entry, fx, run, scope_of

SECOND_NS = 10**9


def asked(key: str, outcome: str = "full_miss", **told: Any) -> Made:
    """A lookup of a pre-flight, which finds nothing, with its note."""
    note = {"lookup": {"cache": "fxgraph", "key": key, "cache_dir": "/cache"}}
    return fx(key, outcome, at=0, took=0.25, preflight_note=json.dumps(note), **told)


def plain(value: Any) -> Any:
    return None if pd.isna(value) else value


def test_a_foretold_hit_saves_what_its_entry_took() -> None:
    scope = scope_of(
        run(asked("f11"), asked("f22"), asked("f33"), asked("f44", "bypass", bypass_reason="no"), is_preflight=True),
        entries=[
            entry("fxgraph", "f99", time_taken_ns=9 * SECOND_NS),
            entry("fxgraph", "f11", time_taken_ns=3 * SECOND_NS),
            # Of an older torch, which stored no time; one that torch cannot load saves nothing.
            entry("fxgraph", "f22"),
            entry("fxgraph", "f33", status="damaged", damage="truncated", time_taken_ns=5 * SECOND_NS),
            entry("fxgraph", "f44", time_taken_ns=7 * SECOND_NS),
        ],
    )  # fmt: skip
    lookups = scope.lookups
    assert lookups["outcome"].tolist() == ["would_hit", "would_hit", "would_miss", "would_bypass"]
    assert [plain(value) for value in lookups["foretold_entry"]] == [1, 2, None, None]
    assert [plain(value) for value in lookups["time_saved_ns"]] == [3 * SECOND_NS, None, None, None]
    # The stand-in for the compiler took no time of a compile.
    assert lookups["time_taken_ns"].isna().all()
