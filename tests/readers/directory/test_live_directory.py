"""A cache that is read while torch compiles into it: no exception, no problem, nothing written, and all there at the end."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cachescope.readers.directory.cache_dir import read_cache_dir
from cachescope.readers.reading import Reading

PROGRAM = """
import sys, torch
scale = float(sys.argv[1])
torch.compile(lambda x: (x * scale).relu() + x)(torch.ones(4, 8))
"""
WRITERS = 4


def read(cache: Path) -> Reading:
    reading = Reading()
    read_cache_dir(str(cache), reading)
    return reading


@pytest.mark.torch
@pytest.mark.sweep
def test_four_writers_at_work_are_no_problem(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(cache), "TORCHINDUCTOR_COMPILE_THREADS": "1"}
    command = [sys.executable, "-c", PROGRAM]
    writers = [subprocess.Popen([*command, str(at)], env=environment) for at in range(WRITERS)]
    readings = []
    try:
        while any(writer.poll() is None for writer in writers):
            readings.append(read(cache))
    finally:
        for writer in writers:
            writer.kill()
            writer.wait()
    assert [writer.returncode for writer in writers] == [0] * WRITERS
    sizes = [len(reading.entries) for reading in readings]
    assert len(set(sizes)) > 3, "it was read while it grew"
    assert [problem for reading in readings for problem in reading.problems] == []
    statuses = {entry.status for reading in readings for entry in reading.entries}
    assert statuses <= {"ok", "temporary"}
    found = read(cache)
    assert {entry.status for entry in found.entries} == {"ok"}
    on_disk = [path for path in cache.rglob("*") if path.is_file()]
    sizes = [path.stat().st_size for path in on_disk]
    assert sum(entry.size_bytes or 0 for entry in found.entries) == sum(sizes)
    assert sum(entry.cache == "fxgraph" for entry in found.entries) == WRITERS
