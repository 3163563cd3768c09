"""What record.py does to a cache directory before a step: who may write to it, and whether its disk has room.

Needs root: a tiny file system stands in for a full disk, and permissions say nothing to root alone.
"""

import shutil
import subprocess
from pathlib import Path

OTHER_USER = 65534
"""The number of `nobody`, who runs the steps of another user."""


def not_writable(cache: Path) -> None:
    """An empty directory of root's that others may read."""
    cache.mkdir(exist_ok=True)


def entries_not_writable(cache: Path) -> None:
    """Anyone may write to the directory, but nobody but root to its folders of entries."""
    for name in ("fxgraph", "aotautograd"):
        (cache / name).mkdir(parents=True)
    cache.chmod(0o777)


def writable(cache: Path) -> None:
    """Whatever is in it, anyone may write to it from now on."""
    subprocess.run(["chmod", "-R", "a+rwX", cache], check=True)


def disk_full(cache: Path) -> None:
    """The directory lies on a disk of its own that is full."""
    _mount(cache, "8m")
    with (cache / "filler").open("wb") as filler:
        try:
            while True:
                filler.write(bytes(1 << 16))
                filler.flush()
        except OSError:
            return


def disk_with_room(cache: Path) -> None:
    """The same directory with what it held, on a disk that has room."""
    (cache / "filler").unlink()
    _unmount(cache)


def fxgraph_full(cache: Path) -> None:
    """Only the folder of FX entries lies on a full disk: one page of it is free."""
    _mount(cache / "fxgraph", "4k")


def fxgraph_with_room(cache: Path) -> None:
    """The folder of FX entries with what it held, on a disk that has room."""
    _unmount(cache / "fxgraph")


def unmount_all(folder: Path) -> None:
    """Leave no disk of these behind, whatever ended the recording."""
    for line in Path("/proc/mounts").read_text().splitlines():
        place = Path(line.split()[1])
        if place.is_relative_to(folder):
            subprocess.run(["umount", place], check=True)


CONDITIONS = {
    condition.__name__: condition
    for condition in (
        not_writable,
        entries_not_writable,
        writable,
        disk_full,
        disk_with_room,
        fxgraph_full,
        fxgraph_with_room,
    )
}


def _mount(folder: Path, size: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=755", "tmpfs", folder], check=True)


def _unmount(folder: Path) -> None:
    aside = folder.with_name(f"{folder.name}_aside")
    shutil.copytree(folder, aside, symlinks=True)
    subprocess.run(["umount", folder], check=True)
    folder.rmdir()
    aside.rename(folder)
