"""Tar and zip archives: their members, and one read as the folder that it was made of.

It is unpacked into a temporary folder, which goes when the process ends.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import shutil
import stat
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from typing import IO, Final

from cachescope.errors import SourceError
from cachescope.readers.kinds import PROBE_BYTES, UNPACKED, in_an_archive, is_tar, shown
from cachescope.readers.logs.byte_source import COMPRESSED, FAILURES, read_head

MOST_TIMES: Final = 200
"""How many times its size may be unpacked from an archive, and from the archives in it; logs shrink to a thirtieth."""
_MOST_MEMBERS: Final = 100_000
BROKEN: Final = (tarfile.TarError, zipfile.BadZipFile, ValueError, RuntimeError, *FAILURES)
"""What reading an archive raises that is damaged, cut, or encrypted."""
# These archives torch reads as they are.
_OF_TORCH: Final = re.compile(r"(?:[^/]+/)?(?:data\.pkl|archive_format|data/aotinductor/.*)", re.DOTALL)
# Zip's own times have no zone. In this field stand its number, its size, which of three times it has, and the first.
_ZIP_TIME: Final = re.compile(rb"UT..[\1\3\5\7](....)", re.DOTALL)

_FOLDERS: Final[dict[tuple[str, int, int], str]] = {}
"""By the path, the size and the time of an archive, the folder of its files."""


def is_archive(path: str) -> bool:
    """Whether a file is a tar file, compressed or not, or a zip file that torch does not read itself."""
    try:
        if _is_zip(path):
            with zipfile.ZipFile(path) as archive:
                return not any(map(_OF_TORCH.fullmatch, archive.namelist()))
        with _tar(path) as archive_of_tar:
            return archive_of_tar.next() is not None
    except BROKEN:
        return False


def _is_zip(path: str) -> bool:
    # A zip is known by its end, which may be that of the last member of a tar.
    return zipfile.is_zipfile(path) and not is_tar(read_head(path, PROBE_BYTES))


def members(path: str) -> Iterator[tuple[tarfile.TarInfo, Callable[[], IO[bytes] | None]]]:
    """The members of an archive, in its order, and what opens each before the next is taken; raises one of `BROKEN`."""
    if _is_zip(path):
        with zipfile.ZipFile(path) as archive:
            for one in archive.infolist():
                yield _as_in_tar(one, archive), partial(archive.open, one)
        return
    with _tar(path) as archive_of_tar:
        yield from ((member, partial(archive_of_tar.extractfile, member)) for member in archive_of_tar)


@contextlib.contextmanager
def _tar(path: str) -> Iterator[tarfile.TarFile]:
    """A tar as a stream: every byte is unpacked once, and counted before it is stored."""
    with open(path, "rb") as raw:
        # tarfile itself opens what zstd packed only since Python 3.14.
        packed = [opened(raw) for magic, opened in COMPRESSED.items() if raw.peek(8).startswith(magic)]
        with tarfile.open(fileobj=packed[0] if packed else raw, mode="r|") as archive:
            yield archive


def _as_in_tar(one: zipfile.ZipInfo, archive: zipfile.ZipFile) -> tarfile.TarInfo:
    member = tarfile.TarInfo(one.filename)
    mode, written = one.external_attr >> 16, _ZIP_TIME.match(one.extra)
    member.size, member.mode = one.file_size, stat.S_IMODE(mode) or 0o644
    member.mtime = int.from_bytes(written[1], "little") if written else 0
    if one.is_dir():
        member.type = tarfile.DIRTYPE
    elif stat.S_ISLNK(mode):
        member.type, member.linkname = tarfile.SYMTYPE, archive.read(one).decode("utf-8", "replace")
    return member


def unpacked(path: str, left: list[int]) -> str:
    """The folder with the files of an archive; links and devices in it are left out, and what would lie outside of it.

    What is unpacked is taken from the bytes that are `left`.
    """
    found = os.stat(path)
    # Sources that are followed are read again and again: an archive that has not changed is unpacked once.
    name = (path, found.st_size, found.st_mtime_ns)
    if name not in _FOLDERS:
        _FOLDERS[name] = _unpacked(path, left)
    return _FOLDERS[name]


def _unpacked(path: str, left: list[int]) -> str:
    room = tempfile.mkdtemp(prefix="cachescope-")
    atexit.register(shutil.rmtree, room, ignore_errors=True)
    folder = os.path.join(room, os.path.basename(path))
    os.mkdir(folder)
    try:
        for number, (member, opened) in enumerate(members(path)):
            left[0] -= member.size
            if left[0] < 0 or number == _MOST_MEMBERS:
                message = f"this archive holds more than {MOST_TIMES} times its size, or {_MOST_MEMBERS:,} files: unpack it, and give its folder"
                raise SourceError(path, message)
            try:
                place = os.path.join(folder, tarfile.data_filter(member, folder).name)
            except tarfile.FilterError:
                continue
            stream = opened() if member.isfile() else None
            if stream is not None:
                _write(stream, place, member.mtime)
    except BROKEN as error:
        raise in_an_archive(path) from error
    # An archive may lie in another one.
    UNPACKED[folder] = shown(path)
    return folder


def _write(stream: IO[bytes], place: str, mtime: float) -> None:
    os.makedirs(os.path.dirname(place), exist_ok=True)
    with stream, open(place, "wb") as file:
        shutil.copyfileobj(stream, file)
    if mtime:
        os.utime(place, (mtime, mtime))
