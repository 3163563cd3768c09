"""Reading traces and text logs, beside a raw scan of the same bytes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import cachescope

Recording = Callable[[str, str], Path]


@pytest.mark.benchmark(group="read")
@pytest.mark.parametrize("kind", ["trace", "text"])
def test_read(kind: str, recording: Recording, benchmark) -> None:  # type: ignore[no-untyped-def]
    folder = recording("2.13.0", "tour") / kind
    benchmark.extra_info["megabytes"] = sum(p.stat().st_size for p in folder.iterdir()) / 1e6
    scope = benchmark(cachescope.read, folder)
    assert len(scope.lookups) == 48


@pytest.mark.benchmark(group="read")
@pytest.mark.parametrize("kind", ["trace", "text"])
def test_raw_scan(kind: str, recording: Recording, benchmark) -> None:  # type: ignore[no-untyped-def]
    paths = list((recording("2.13.0", "tour") / kind).iterdir())
    benchmark(lambda: sum(path.read_bytes().count(b"graph_cache") for path in paths))


@pytest.mark.benchmark(group="explain")
def test_misses(recording: Recording, benchmark) -> None:  # type: ignore[no-untyped-def]
    scope = cachescope.read(recording("2.13.0", "tour") / "trace")
    assert len(benchmark(lambda: scope.with_baseline("auto").misses)) == 26
