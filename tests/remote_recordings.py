"""What torch's remote caches recorded (tests/data/record_kind.py): a dump of a Redis, and the run that filled it."""

import re
import tarfile
from pathlib import Path

ARCHIVES = Path(__file__).parent / "data" / "remote"
VERSIONS = sorted(path.name.removesuffix(".tar.xz") for path in ARCHIVES.glob("*.tar.xz"))

# Of every lookup that a trace records, as torch wrote it.
_KEY = re.compile(rb'"key": "([af][a-z2-7]{51})"')


def unpacked(version: str, folder: Path) -> Path:
    """The recording of a torch, in a folder."""
    with tarfile.open(ARCHIVES / f"{version}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder / version


def keys_of_trace(recorded: Path) -> set[str]:
    """The keys that the trace names, by a plain search."""
    (trace,) = (recorded / "trace").iterdir()
    return {key.decode() for key in _KEY.findall(trace.read_bytes())}
