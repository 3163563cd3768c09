"""The compile caches of a serving start: where it looks for each, what lies there, and whether that outlasts a container.

Layouts and variables are those of `other_caches.json`, read off the sources of the releases that it names. Of a file only its
name, size and time are looked at, but for Triton's small metadata, which names the target. Links are not followed.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Final, NamedTuple

from cachescope.catalogue.facts import document, plain
from cachescope.readers.cache_file import DamagedContent, load_object
from cachescope.readers.directory.default_root import file_name_of, user_name

_MOST_FILES: Final = 200_000
_MOST_METADATA_BYTES: Final = 65_536
_TRITON_METADATA: Final = re.compile(r"(?:.+/)?(?:[0-9a-f]{64}|[A-Z2-7]{52})/(?!__grp__)[^/]+\.json")
_ARCHITECTURE: Final = re.compile(r"[\w:.+-]{1,40}")
_OFF: Final = frozenset({"", "0", "false", "no", "off", "n", "f"})
_IN_MEMORY: Final = frozenset({"tmpfs", "ramfs"})
# Kubernetes mounts one from the disk of the node, and removes it with the pod.
_EMPTY_DIR: Final = "/volumes/kubernetes.io~empty-dir/"


class KnownCache(NamedTuple):
    """A cache that some release writes."""

    name: str
    places: tuple[str, ...]  # the first whose variable is set, else the last
    layout: tuple[str, ...]  # patterns of paths in it
    stale: str
    source: str
    also: str = ""  # a pattern of what lies beside those at the top
    off: tuple[str, ...] = ()  # variables that switch it off

    @property
    def variable(self) -> str:
        """The variable that moves it."""
        return self.places[0].split("/")[0].removeprefix("$")


class Mount(NamedTuple):
    """The file system that a folder is on."""

    point: str
    kind: str
    outlasts: bool | None  # a container; None for a root file system that is no overlay


@dataclass(slots=True)
class FoundCache:
    """What lies where a cache is looked for."""

    known: KnownCache
    path: str
    set_by: str | None
    switched_off_by: str | None
    status: str = "absent"  # absent, unreadable, empty, unknown (no known layout), cache
    files: int = 0
    size_bytes: int = 0
    other_files: int = 0  # beside its layout
    other_bytes: int = 0
    oldest_ns: int | None = None
    newest_ns: int | None = None
    architectures: set[str] = field(default_factory=set)
    unread_folders: int = 0
    is_cut: bool = False
    mount: Mount | None = None


@cache
def known_caches() -> tuple[KnownCache, ...]:
    """The table."""
    return tuple(KnownCache(**plain(one)) for one in document("other_caches.json")["caches"])


def found_caches(environment: Mapping[str, str], home: str, mounts: str) -> list[FoundCache]:
    """What a start with this environment finds of each known cache; `mounts` is the text of ``/proc/self/mountinfo``."""
    return [_found(known, environment, home, mounts) for known in known_caches()]


def _found(known: KnownCache, environment: Mapping[str, str], home: str, mounts: str) -> FoundCache:
    path, set_by = _place(known, environment, home)
    off = (name for name in known.off if environment.get(name, "").strip().lower() not in _OFF)
    found = FoundCache(known, path, set_by, next(off, None))
    real = os.path.realpath(path)
    found.mount = mount_of(real, mounts)
    try:
        is_folder = stat.S_ISDIR(os.stat(real).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return found
    except OSError:
        found.status = "unreadable"
        return found
    if is_folder:
        _look(found, real)
    else:
        found.status = "unknown"
    return found


def _place(known: KnownCache, environment: Mapping[str, str], home: str) -> tuple[str, str | None]:
    """Where it is looked for, and the variable that says so."""
    *moved, place = known.places
    for one in moved:
        variable, slash, below = one.partition("/")
        if value := environment.get(variable[1:], "").strip():
            value = home + value[1:] if value == "~" or value.startswith("~/") else value
            return os.path.abspath(value + slash + below), variable[1:]
    first = (environment.get(name) for name in ("TMPDIR", "TEMP", "TMP"))
    values = {
        "home": home,
        "cache": environment.get("XDG_CACHE_HOME") or f"{home}/.cache",
        "tmp": next(filter(None, first), "/tmp"),  # noqa: S108
        "login": file_name_of(_user(environment, "LOGNAME", "USER", "LNAME", "USERNAME")),
        "user": _user(environment, "USER", "USERNAME"),
    }
    return os.path.abspath(place.format(**values)), None


def _user(environment: Mapping[str, str], *names: str) -> str:
    return next(filter(None, map(environment.get, names)), None) or user_name()


def _look(found: FoundCache, root: str) -> None:
    """Count what is there; a folder at the top is the cache's if anything in it has its layout."""
    sizes: dict[str, list[tuple[int, int]]] = {}
    own: set[str] = set()
    for name, entry in _files(found, root):
        try:
            about = entry.stat(follow_symlinks=False)
        except OSError:
            continue
        top = name.split("/", 1)[0]
        sizes.setdefault(top, []).append((about.st_size, about.st_mtime_ns))
        if match := next(filter(None, (re.fullmatch(one, name) for one in found.known.layout)), None):
            own.add(top)
            found.architectures.update(filter(None, [match.groupdict().get("arch")]))
        if about.st_size <= _MOST_METADATA_BYTES and _TRITON_METADATA.fullmatch(name):
            found.architectures.update(_target(entry.path))
    own |= set(filter(re.compile(found.known.also).fullmatch, sizes)) if own else set()
    mine = [one for top in own for one in sizes[top]]
    every = [one for files in sizes.values() for one in files]
    found.files, found.size_bytes = len(mine), sum(size for size, _ in mine)
    found.other_files = len(every) - len(mine)
    found.other_bytes = sum(size for size, _ in every) - found.size_bytes
    found.oldest_ns = min((time for _, time in mine), default=None)
    found.newest_ns = max((time for _, time in mine), default=None)
    if not mine:
        found.architectures.clear()
    found.status = (
        "cache" if mine else "unknown" if every else "unreadable" if found.unread_folders else "empty"
    )


def _files(found: FoundCache, root: str) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """The regular files below a folder, by their paths from there."""
    folders, seen = [""], 0
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(os.path.join(root, folder)) as entries:
                for entry in entries:
                    seen += 1
                    if seen > _MOST_FILES:
                        found.is_cut = True
                        return
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(f"{folder}{entry.name}/")
                    elif entry.is_file(follow_symlinks=False):
                        yield folder + entry.name, entry
        except OSError:
            found.unread_folders += 1


def _target(path: str) -> Iterator[str]:
    """The backend and architecture that the metadata of a Triton kernel names (``GPUTarget``, from 3.0 on)."""
    with contextlib.suppress(OSError, DamagedContent):
        with open(path, "rb") as file:
            target = load_object(file.read(_MOST_METADATA_BYTES)).get("target")
        if isinstance(target, dict):
            parts = (str(target.get("backend")), str(target.get("arch")))
            if all(map(_ARCHITECTURE.fullmatch, parts)):
                yield " ".join(parts)


def mount_of(path: str, mounts: str) -> Mount | None:
    """The file system of a path: that of the longest mount point above it, the last where one lies on another."""
    best, chosen = "", None
    for line in mounts.splitlines():
        before, dash, after = line.partition(" - ")
        words, kinds = before.split(), after.split()
        if not dash or len(words) < 5 or not kinds:
            continue
        root, point = (
            re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), word) for word in words[3:5]
        )
        if len(point) >= len(best) and (path == point or path.startswith(point.rstrip("/") + "/")):
            is_lost = "overlay" in kinds[0] or kinds[0] in _IN_MEMORY or _EMPTY_DIR in root
            best, chosen = point, Mount(point, kinds[0], False if is_lost else None if point == "/" else True)
    return chosen
