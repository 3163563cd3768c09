"""Whether a program has read torch's counts of hits and misses, which a pre-flight does not have."""

import pickle
from collections import Counter, defaultdict
from types import SimpleNamespace
from typing import Any

import pytest

from cachescope.capture.preflight import notes


@pytest.fixture
def counters(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(notes, "_counts_read", [])
    module = SimpleNamespace(counters=defaultdict(Counter, inductor=Counter(hit=1)))
    notes.patch_dynamo_utils(module, setattr)
    return module.counters


def test_torch_counts_as_before_and_that_is_no_reading(counters: Any) -> None:
    code = "counters['inductor']['hit'] += 1; counters['aot']['miss'] += 1; counters['inductor'].clear()"
    exec(code, {"__name__": "torch._inductor.codecache", "counters": counters})
    assert not notes._counts_read
    assert counters["aot"] == {"miss": 1}


@pytest.mark.parametrize(
    "read",
    [
        lambda counts: counts["hit"], lambda counts: counts.get("hit"), lambda counts: sum(counts.values()),
        lambda counts: dict(counts)["hit"], lambda counts: pickle.loads(pickle.dumps(counts))["hit"],
        lambda counts: dict(counts.items())["hit"],
    ],
)  # fmt: skip
def test_a_program_that_reads_them_is_noticed(read: Any, counters: Any) -> None:
    assert read(counters["inductor"]) == 1
    assert notes._counts_read
