"""What all recorders share: where they work, how they run programs, and how they pack what was recorded."""

import contextlib
import fnmatch
import lzma
import os
import shutil
import socket
import subprocess
import tarfile
from collections.abc import Iterable
from pathlib import Path

HERE = Path(__file__).resolve().parent
WORKSHOP = Path("/tmp/cachescope-recording")
"""Recorders work here, so that no path of the machine gets into the data."""
STEP_TIMEOUT_S = 600
MAX_ARCHIVE_BYTES = 1_000_000


def torch_version(python: str | Path) -> str:
    """Ask the interpreter for its torch, without loading torch."""
    question = "import importlib.metadata as m; print(m.version('torch'))"
    return subprocess.run([python, "-c", question], check=True, capture_output=True, text=True).stdout.strip()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def emptied(*parts: str) -> Path:
    """An empty folder of the workshop."""
    folder = WORKSHOP.joinpath(*parts)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def placed(kind: str, program: Path | str, name: str = "program.py") -> Path:
    """A program, or its text, in a folder of the workshop: entries and traces hold its path."""
    path = WORKSHOP / kind / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(program if isinstance(program, str) else program.read_text())
    return path


def started(
    *command: str | Path, cache: Path | str | None = None, log: Path | None = None, **variables: object
) -> subprocess.Popen[str]:
    """A process of torch, with a cache directory if one is named; what it writes to stderr goes to a log, if one is named."""
    named = variables if cache is None else {"TORCHINDUCTOR_CACHE_DIR": cache, **variables}
    environment = os.environ | {name: str(value) for name, value in named.items()}
    with contextlib.nullcontext() if log is None else log.open("wb") as stderr:
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=stderr, text=True)


def run(*command: str | Path, **settings: object) -> str:
    """What such a process prints."""
    process = started(*command, **settings)
    printed, _ = process.communicate(timeout=STEP_TIMEOUT_S)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return printed


def without_owner(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    return info


def pack(
    archive: Path,
    folder: Path,
    paths: Iterable[Path] | None = None,
    leave_out: Iterable[str] = (),
    top: str = "",
    most_bytes: int = MAX_ARCHIVE_BYTES,
) -> Path:
    """Pack all of a folder, or some paths of it, but for what has a name that is left out (``*`` stands for any letters)."""

    def kept(info: tarfile.TarInfo) -> tarfile.TarInfo | None:
        name = Path(info.name).name
        return None if any(fnmatch.fnmatch(name, one) for one in leave_out) else without_owner(info)

    archive.parent.mkdir(parents=True, exist_ok=True)
    # Of many files that are alike, extreme makes a third less. The PAX format keeps modification times below a second.
    preset = 9 | lzma.PRESET_EXTREME
    with tarfile.open(archive, "w:xz", format=tarfile.PAX_FORMAT, preset=preset) as tar:
        for path in sorted(folder.iterdir()) if paths is None else paths:
            tar.add(path, str(Path(top, path.relative_to(folder))), filter=kept)
    size = archive.stat().st_size
    if size > most_bytes:
        raise RuntimeError(f"{archive} has {size} bytes; the limit is {most_bytes}")
    print(archive, size, flush=True)
    return archive
