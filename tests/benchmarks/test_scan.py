"""Scanning a directory, beside `find` printing the same fields, in one run.

The tree is made by hand in torch's layout: names of the right shape and files of a few bytes, for it is names,
sizes and times that are measured. ``CACHESCOPE_SCAN_FILES`` sets another number than 20,000.
"""

from __future__ import annotations

import base64
import os
import subprocess
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from cachescope.readers.cache_dir import CacheWalk
from cachescope.readers.reading import Reading

FILES = int(os.environ.get("CACHESCOPE_SCAN_FILES", "20000"))


def name_of(number: int) -> str:
    return base64.b32encode(sha256(str(number).encode()).digest()).decode().lower()[:51]


def places(number: int) -> Iterator[str]:
    """Of ten files: three of generated code and their lock, an FX and an AOTAutograd entry, four of Triton."""
    name = name_of(number)
    yield from (f"{name[:2]}/c{name}{ending}" for ending in (".py", ".main.cpp", ".main.so"))
    yield f"locks/c{name}.lock"
    yield f"fxgraph/{name[:2]}/f{name}/{name}"
    yield f"aotautograd/a{name}/{name}"
    yield from (f"triton/0/{name.upper()}A/kernel.{e}" for e in ("json", "ttir", "ptx", "cubin"))


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("scan")
    for number in range(FILES // 10):
        for place in places(number):
            path = root / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"{}")
    return root


@pytest.mark.benchmark(group="scan")
def test_find(tree: Path, benchmark) -> None:  # type: ignore[no-untyped-def]
    command = ["find", str(tree), "-printf", "%p %s %T@\n"]
    benchmark(lambda: subprocess.run(command, stdout=subprocess.DEVNULL, check=True))


@pytest.mark.benchmark(group="scan")
def test_scan(tree: Path, benchmark) -> None:  # type: ignore[no-untyped-def]
    def scan() -> int:
        walk = CacheWalk(str(tree), Reading())
        walk.scan()
        return sum(entry.status == "ok" for entry in walk.entries)

    benchmark.extra_info["files"] = FILES
    assert benchmark(scan) == FILES // 10 * 10
