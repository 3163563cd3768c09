"""The files of a cache as a lock names them: relative to the directory, hashed, and no link followed out of it.

What is opened is what the walk found, never a path that a lock says.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from cachescope.errors import SourceError
from cachescope.whole_file import opened
from cachescope.wording import readable

FILE: Final = "file"
LINK: Final = "link"
OTHER: Final = "other"
_FILES_AT_ONCE: Final = 64
_MOST_THREADS: Final = 8


@dataclass(frozen=True, slots=True)
class Found:
    """One thing in a directory; `problem` says why it can neither be locked nor compared with a lock."""

    # Relative to the directory, with ``/``; bytes that are not UTF-8 are escaped.
    name: str
    path: str
    # ``file``, ``link``, or ``other``: a pipe, a device, a folder that may not be listed.
    kind: str
    # Of a link that stays in the directory, what it leads to, relative to the directory.
    target: str | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a file; the hash is None if the size alone shows that it differs from the expected one."""

    size: int
    sha256: str | None = None
    problem: str | None = None


def walk(directory: str) -> list[Found]:
    """Everything in a directory but folders, and what torch leaves there empty to lock: by name. Raises `SourceError`."""
    root = os.path.realpath(directory)
    if not os.path.isdir(root):
        kind = "unreadable" if os.path.lexists(directory) else "missing"
        raise SourceError(directory, "is no directory" if kind == "unreadable" else "is not there", kind)
    if not os.access(root, os.R_OK | os.X_OK):
        raise SourceError(directory, "cannot be read: no permission")
    return sorted(_below(root), key=lambda found: (found.name, found.path))


def _below(root: str) -> Iterator[Found]:
    waiting = [(root, "")]
    while waiting:
        folder, before = waiting.pop()
        try:
            items = list(os.scandir(folder))
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            problem = f"a folder that cannot be listed: {error.strerror or error}"
            yield Found(before.rstrip("/") or ".", folder, OTHER, problem=problem)
            continue
        for item in items:
            name = before + readable(item.name)
            try:
                if item.is_dir(follow_symlinks=False):
                    waiting.append((item.path, f"{name}/"))
                elif item.is_symlink():
                    yield _link(root, name, item.path)
                elif not item.is_file(follow_symlinks=False):
                    yield Found(name, item.path, OTHER, problem="no file: a pipe, a socket or a device")
                elif not (name.endswith(".lock") and item.stat(follow_symlinks=False).st_size == 0):
                    yield Found(name, item.path, FILE)
            except FileNotFoundError:
                continue
            except OSError as error:
                yield Found(name, item.path, OTHER, problem=error.strerror or str(error))


def _link(root: str, name: str, path: str) -> Found:
    leads = os.path.realpath(path)
    if leads != root and not leads.startswith(root + os.sep):
        return Found(name, path, LINK, problem=f"a link out of the directory, to {readable(leads)}")
    if not os.path.exists(leads):
        return Found(name, path, LINK, problem="a link that leads nowhere")
    return Found(name, path, LINK, target=readable(os.path.relpath(leads, root)).replace(os.sep, "/"))


def is_within(path: str, directory: str) -> bool:
    """Whether a path, which need not be there, is in a directory, links followed."""
    return os.path.realpath(path).startswith(os.path.realpath(directory).rstrip(os.sep) + os.sep)


def contents(files: Iterable[Found], sizes: Mapping[str, int] | None = None) -> dict[str, Content]:
    """What some files hold, by their names; one that has not the size it should have is not read."""
    held: dict[str, Content] = {}
    every = list(files)
    # Hashing and reading let other threads run; to hand over one file takes as long as to read it.
    with ThreadPoolExecutor(min(_MOST_THREADS, os.cpu_count() or 1)) as pool:
        batches = [every[at : at + _FILES_AT_ONCE] for at in range(0, len(every), _FILES_AT_ONCE)]
        for some in pool.map(lambda batch: {file.name: _content(file, sizes) for file in batch}, batches):
            held |= some
    return held


def _content(file: Found, sizes: Mapping[str, int] | None) -> Content:
    try:
        with opened(file.path) as (stream, found):
            if sizes is not None and sizes.get(file.name) != found.st_size:
                return Content(found.st_size)
            digest = hashlib.file_digest(stream, "sha256")
            if stream.tell() != found.st_size:
                return Content(stream.tell(), problem="changed while it was read")
            return Content(found.st_size, digest.hexdigest())
    except FileNotFoundError:
        return Content(0, problem="no file any more")
    except OSError as error:
        return Content(0, problem=f"cannot be read: {error.strerror or error}")
