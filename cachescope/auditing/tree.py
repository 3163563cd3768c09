"""Lists the files of a cache on disk or in an archive. Nothing is opened for the list, and nothing behind a link is in it."""

from __future__ import annotations

import os
import stat
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import IO, Final

from cachescope.auditing.permissions import me
from cachescope.errors import SourceError
from cachescope.readers.archives import BROKEN, members
from cachescope.readers.cache_file import read_steady
from cachescope.readers.kinds import PROBE_BYTES, is_tar
from cachescope.readers.logs.byte_source import read_head

MOST_BYTES: Final = 256 << 20
_MOST_MEMBERS: Final = 1_000_000
_MOST_UNPACKED: Final = 512 << 20


@dataclass(frozen=True, slots=True)
class Item:
    """One file, folder, link or special file."""

    path: str
    name: str
    found: os.stat_result
    target: str | None = None

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        """Whether it is a folder; a link to one is a link, whatever is asked, for nothing is looked at behind it."""
        return stat.S_ISDIR(self.found.st_mode)

    def is_symlink(self) -> bool:
        """Whether it is a link."""
        return self.target is not None


class Disk:
    """The file system."""

    def items(self, path: str) -> list[Item]:
        """The items in a folder, by name; those that vanish meanwhile are left out, and a link has none. Raises OSError if it may not be listed."""
        if os.path.islink(path):
            return []
        with os.scandir(path) as listed:
            found = [one for item in listed if (one := self.item(item.path)) is not None]
        return sorted(found, key=attrgetter("name"))

    def item(self, path: str) -> Item | None:
        """The item at a path; None if it no longer exists."""
        try:
            found = os.lstat(path)
            target = os.readlink(path) if stat.S_ISLNK(found.st_mode) else None
        except (FileNotFoundError, NotADirectoryError):
            return None
        return Item(path, os.path.basename(path), found, target)

    def read(self, item: Item) -> bytes:
        """The bytes of a regular file, at most one more than the limit; never reads through a link or from a pipe.

        Raises OSError if they cannot be read.
        """
        return read_steady(item.path, MOST_BYTES + 1)[0]


class Archive:
    """A tar file, compressed or not, or a zip file, that is never unpacked."""

    def __init__(self, path: str) -> None:
        self.path = path
        # Names that lead out of the folder in which it is unpacked, and names of several files: who unpacks it chooses one.
        self.outside: list[str] = []
        self.twice: list[str] = []
        self._folders: dict[str, dict[str, Item]] = {path: {}}
        self._contents: dict[str, bytes] = {}
        unpacked = 0
        try:
            if zipfile.is_zipfile(path) and is_tar(read_head(path, PROBE_BYTES)):
                message = "a tar archive that programs may also read as a zip archive: unpack it and audit the folder"
                raise SourceError(path, message)
            for number, (member, opened) in enumerate(members(path)):
                unpacked += member.size
                if number >= _MOST_MEMBERS or unpacked > _MOST_UNPACKED:
                    message = "an archive of more than is looked at: unpack it and audit the folder"
                    raise SourceError(path, message)
                self._take(member, opened)
        except BROKEN as error:
            raise SourceError(path, f"an archive that cannot be read: {error}") from error

    def _take(self, member: tarfile.TarInfo, opened: Callable[[], IO[bytes] | None]) -> None:
        parts = [part for part in member.name.split("/") if part not in ("", ".")]
        if member.name.startswith("/") or ".." in parts:
            self.outside.append(member.name)
            parts = [part for part in parts if part != ".."]
        if not parts:
            return
        kind = _KINDS.get(member.type, stat.S_IFREG)
        folder = self.path
        for part in parts[:-1]:
            inside = self._folders.setdefault(folder, {})
            folder = f"{folder}/{part}"
            inside.setdefault(part, Item(folder, part, _made(stat.S_IFDIR | 0o755, 0, 0)))
        path = f"{folder}/{parts[-1]}"
        found = _made(kind | (member.mode & 0o7777), member.gid, member.size)
        target = member.linkname if kind == stat.S_IFLNK else None
        self._folders.setdefault(folder, {})[parts[-1]] = Item(path, parts[-1], found, target)
        if kind == stat.S_IFREG:
            if path in self._contents:
                self.twice.append(member.name)
            stream = opened()
            self._contents[path] = b"" if stream is None else stream.read(MOST_BYTES + 1)

    def items(self, path: str) -> list[Item]:
        """The items in a folder, by name."""
        return [item for _, item in sorted(self._folders.get(path, {}).items())]

    def read(self, item: Item) -> bytes:
        """The bytes of a regular file, at most one more than the limit."""
        return self._contents[item.path]


Tree = Disk | Archive
"""A source of items."""


# A hard link in an archive names another member, and becomes a link.
_KINDS: Final = {
    tarfile.DIRTYPE: stat.S_IFDIR, tarfile.SYMTYPE: stat.S_IFLNK, tarfile.LNKTYPE: stat.S_IFLNK,
    tarfile.FIFOTYPE: stat.S_IFIFO, tarfile.CHRTYPE: stat.S_IFCHR, tarfile.BLKTYPE: stat.S_IFCHR,
}  # fmt: skip


def _made(mode: int, group: int, size: int) -> os.stat_result:
    # Unpacked files belong to the user who unpacks them.
    return os.stat_result((mode, 0, 0, 1, me(), group, size, 0, 0, 0))
