"""Rows for figures, made by hand: small, huge, hostile."""

from typing import Any

import pandas as pd

from cachescope.columns import frame_of
from cachescope.frames.described import FRAMES
from cachescope.rows import TUPLE, columns_of

START = 1_700_000_000 * 10**9
HOSTILE = "<script>alert(1)</script><b>\x1b[31m\x00\u202e\u200b\U000e0041$x$ %{x}" + "A" * 1_000_000
OUTCOMES = ("hit", "full_miss", "guard_miss", "bypass", "disabled")


def rows(name: str, given: list[dict[str, Any]]) -> list[Any]:
    """Rows of a declared frame that name only some of its columns."""
    kind = FRAMES[name]
    blank = {c.name: () if c.dtype == TUPLE else None for c in columns_of(kind)}
    return [kind(**blank | row) for row in given]


def frame(name: str, given: list[dict[str, Any]]) -> pd.DataFrame:
    """Their frame."""
    return frame_of(rows(name, given), FRAMES[name])


def runs_of(count: int) -> pd.DataFrame:
    return frame("runs", [{"run": i, "rank": i, "source": "x", "start_time": START} for i in range(count)])


def many_lookups(count: int, runs: int, graphs: int) -> pd.DataFrame:
    """Lookups spread evenly over runs, graphs and outcomes."""
    rows = []
    for lookup in range(count):
        run, order = lookup % runs, lookup // runs
        outcome = OUTCOMES[lookup % 5]
        taken = 10**9 if outcome == "full_miss" else None
        time = START + order * 10**8
        rows.append(
            {
                "lookup": lookup, "run": run, "order": order, "time": time, "end_time": time + (taken or 0),
                "cache": "aotautograd" if order % 2 else "fxgraph", "cache_key": "f" + "a" * 51, "outcome": outcome,
                "compile_id": f"{order // 2 % graphs}/0", "direction": None if order % 2 else "inference",
                "time_taken_ns": taken, "details": "recorded",
            }
        )  # fmt: skip
    return frame("lookups", rows)


def many_entries(count: int) -> pd.DataFrame:
    kinds = ("fxgraph", "aotautograd", "code", "triton", "lock")
    return frame(
        "entries",
        [
            {
                "entry": i, "cache": kinds[i % 5], "path": f"/c/{i % 5000:04x}/{i}.bin", "root": "/c",
                "size_bytes": 100 + i % 977, "modified_time": START + i * 10**9, "status": "ok",
            }
            for i in range(count)
        ],
    )  # fmt: skip
