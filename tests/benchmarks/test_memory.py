"""What opening many entries keeps: the distinct texts, and nothing of the files.

``CACHESCOPE_MEMORY_FILES`` sets another number than 400; a quarter of them is read as well, so that what is
taken once does not count.
"""

import os
import re
import tracemalloc
from pathlib import Path

import pytest

from cachescope.keys.hashing import entry_name
from cachescope.readers.directory.cache_dir import read_cache_dir
from cachescope.readers.reading import Reading
from tests.conftest import Recording

FILES = int(os.environ.get("CACHESCOPE_MEMORY_FILES", "400"))
BYTES_A_FILE = 8 << 10
"""Codes of some 650 hash details, the line that no other entry has, and the row."""


def write_entries(entry: Path, root: Path, count: int) -> int:
    """Write entries of one key that differ in one hash detail; the bytes of one."""
    key = entry.parent.name
    folder = root / "fxgraph" / key[1:3] / key
    folder.mkdir(parents=True)
    data = entry.read_bytes()
    detail = re.search(rb"\[([a-z2-7]{51})\] inductor_config\[cpp\.", data)
    for number in range(count):
        own = entry_name(str(number).encode()).encode()
        changed = data[: detail.start(1)] + own + data[detail.end(1) :]
        (folder / entry_name(changed)).write_bytes(changed)
    return len(data)


def peak_of_reading(root: Path, count: int) -> int:
    tracemalloc.start()
    try:
        reading = Reading()
        read_cache_dir(str(root), reading)
        assert len(reading.entries) == len(reading.details.sets) == count
        assert not reading.problems
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", ["fxgraph"])
def test_memory_does_not_grow_with_bytes_of_files(kind: str, recording: Recording, tmp_path: Path) -> None:
    entry = next(path for path in (recording("2.13.0", "tour") / "cache" / kind).rglob("*") if path.is_file())
    size = write_entries(entry, tmp_path / "few", FILES // 4)
    write_entries(entry, tmp_path / "many", FILES)
    peak_of_reading(tmp_path / "few", FILES // 4)  # what is learned and imported once
    few, many = peak_of_reading(tmp_path / "few", FILES // 4), peak_of_reading(tmp_path / "many", FILES)
    grown = (many - few) / (FILES - FILES // 4)
    print(f"{grown / 1024:.1f} KiB a file of {size / 1024:.0f} KiB; peak {many / 2**20:.1f} MiB for {FILES}")
    assert grown < BYTES_A_FILE
