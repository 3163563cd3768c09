"""Folders in which the kernel shows its state as files: they hold no caches, and reading some of them never ends."""

from __future__ import annotations

import contextlib
import os
from functools import cache
from typing import Final

# Linux, proc(5): `ID PARENT MAJOR:MINOR ROOT MOUNT-POINT OPTIONS [TAGS…] - TYPE SOURCE OPTIONS`.
_MOUNTS: Final = "/proc/self/mountinfo"
_TYPES: Final = frozenset((
    "bpf", "cgroup", "cgroup2", "configfs", "debugfs", "devpts", "mqueue", "proc", "pstore", "securityfs",
    "sysfs", "tracefs",
))  # fmt: skip


def is_of_kernel(folder: str) -> bool:
    """Whether a folder is in one of the kernel's own file systems; links such as `/proc/1/root` lead out of them."""
    with contextlib.suppress(OSError, ValueError):
        return os.stat(folder).st_dev in _devices()
    return False


@cache
def _devices() -> frozenset[int]:
    """The device numbers of the kernel's own file systems; none where there is no list of mounts."""
    devices = set()
    with contextlib.suppress(OSError), open(_MOUNTS, encoding="utf-8", errors="replace") as mounts:
        for mount in mounts:
            where, _, what = mount.partition(" - ")
            if what.split(" ", 1)[0] in _TYPES:
                major, _, minor = where.split(" ")[2].partition(":")
                devices.add(os.makedev(int(major), int(minor)))
    return frozenset(devices)
