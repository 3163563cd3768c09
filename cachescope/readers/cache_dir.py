"""Find and read the FX graph and AOTAutograd entries of a torch cache directory.

Read only, with `os.scandir`. What vanishes meanwhile is passed over: torch may be running.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator

from cachescope.readers.aotautograd import read_aotautograd_entry
from cachescope.readers.fxgraph import read_fxgraph_entry
from cachescope.readers.reading import Entry, Reading
from cachescope.terms import AOT_KEY, AOTAUTOGRAD, FX_KEY, FXGRAPH, HASH

# torch/_inductor/codecache.py, `write_atomic`: ".<pid>.<thread id>.tmp".
_TEMPORARY = re.compile(r"\..*\.tmp", re.DOTALL)
_CONTENT_NAME = re.compile(HASH)
_PREFIX = re.compile(r"[a-z2-7]{2}")
# Where precompile mode can make no AOTAutograd key: `str(random.random())` in 2.10, `uuid4().hex` in 2.15.
_AOT_NONCE = re.compile(r"0\.\d+|[0-9a-f]{32}")
_LOOK_AT = 1_000


def looks_like_cache_dir(path: str) -> bool:
    """Whether a path is a cache root, one of its two folders, a key folder, or a file in one.

    Told by key-shaped names inside (``f…`` two levels below ``fxgraph``, ``a…`` below ``aotautograd``).
    """
    if not os.path.isdir(path):
        return (
            os.path.isfile(path) and _cache_of_key(_name(os.path.dirname(os.path.abspath(path)))) is not None
        )
    if _cache_of_key(_name(path)) is not None:
        return True
    return any(_holds_keys(os.path.join(path, folder)) for folder in ("", FXGRAPH, AOTAUTOGRAD))


def read_cache_dir(path: str, reading: Reading) -> None:
    """Read the entries under a path that `looks_like_cache_dir` into ``reading.entries``.

    Other folders of a cache root are not looked at.
    """
    walk = _Walk(path, reading)
    path_of_key = os.path.abspath(path)
    if not os.path.isdir(path):
        cache = _cache_of_key(_name(os.path.dirname(path_of_key)))
        walk.file(cache or FXGRAPH, path, _name(path), _name(os.path.dirname(path_of_key)))
    elif (cache := _cache_of_key(_name(path))) is not None:
        walk.key_folder(cache, path, _name(path))
    elif _holds_keys(path):
        walk.folder(path)
    else:
        walk.folder(os.path.join(path, FXGRAPH), FXGRAPH)
        walk.folder(os.path.join(path, AOTAUTOGRAD), AOTAUTOGRAD)


def _name(path: str) -> str:
    return os.path.basename(os.path.abspath(path))


def _cache_of_key(name: str) -> str | None:
    if FX_KEY.fullmatch(name):
        return FXGRAPH
    return AOTAUTOGRAD if AOT_KEY.fullmatch(name) else None


def _holds_keys(path: str, levels: int = 2) -> bool:
    try:
        with os.scandir(path) as found:
            for _, item in zip(range(_LOOK_AT), found, strict=False):
                if _cache_of_key(item.name) is not None:
                    return True
                if levels > 1 and _PREFIX.fullmatch(item.name) and _holds_keys(item.path, 1):
                    return True
    except OSError:
        pass
    return False


def _shown(path: str) -> str:
    # A name that is not UTF-8 would break every later writer of text.
    return os.fsencode(path).decode("utf-8", "backslashreplace")


class _Walk:
    def __init__(self, root: str, reading: Reading) -> None:
        self.root = root
        self.reading = reading
        self.seen: set[tuple[int, int]] = set()

    def folder(self, path: str, cache: str | None = None) -> None:
        """``fxgraph``, one of its two-letter folders, or ``aotautograd``."""
        for item in self.list(path):
            key_of = _cache_of_key(item.name)
            if cache == AOTAUTOGRAD and _AOT_NONCE.fullmatch(item.name):
                key_of = AOTAUTOGRAD
            if not self.is_dir(item):
                self.row(cache or FXGRAPH, item.path, None, "foreign")
            elif key_of is not None and cache in (None, key_of):
                self.key_folder(key_of, item.path, item.name)
            elif cache != AOTAUTOGRAD and _PREFIX.fullmatch(item.name):
                self.prefix_folder(item.path)
            else:
                self.row(cache or FXGRAPH, item.path, None, "foreign")

    def prefix_folder(self, path: str) -> None:
        for item in self.list(path):
            if FX_KEY.fullmatch(item.name) and self.is_dir(item):
                self.key_folder(FXGRAPH, item.path, item.name)
            else:
                self.row(FXGRAPH, item.path, None, "foreign")

    def key_folder(self, cache: str, path: str, key: str) -> None:
        for item in self.list(path):
            self.file(cache, item.path, item.name, key)

    def file(self, cache: str, path: str, name: str, key: str) -> None:
        if _TEMPORARY.fullmatch(name):
            self.row(cache, path, key, "temporary")
        elif _CONTENT_NAME.fullmatch(name) or (cache == AOTAUTOGRAD and name == "entry"):
            read = read_fxgraph_entry if cache == FXGRAPH else read_aotautograd_entry
            self.row(cache, path, key, "ok", lambda entry: read(entry, path, name, self.reading))
        else:
            self.row(cache, path, key, "foreign")

    def row(
        self, cache: str, path: str, key: str | None, status: str, read: Callable[[Entry], bool] | None = None
    ) -> None:
        try:
            found = os.stat(path)
        except FileNotFoundError:
            return
        except OSError as error:  # a symbolic link to itself, a folder without rights
            self.reading.problem(_shown(path), "", "unreadable", str(error.strerror))
            return
        entry = Entry(
            cache=cache,
            path=_shown(path),
            root=self.root,
            size_bytes=found.st_size if stat.S_ISREG(found.st_mode) else None,
            modified_time_ns=found.st_mtime_ns,
            cache_key=key,
            status=status,
        )
        if read is not None and not stat.S_ISREG(found.st_mode):
            entry.status = "foreign"  # never opened: a pipe would wait for ever
        elif read is not None and not read(entry):
            return
        self.reading.entries.append(entry)

    def is_dir(self, item: os.DirEntry[str]) -> bool:
        try:
            return item.is_dir()
        except OSError:
            return False

    def list(self, path: str) -> Iterator[os.DirEntry[str]]:
        """The items of a folder by name; none where it is gone, or was listed under another name."""
        try:
            found = os.stat(path)
            if (found.st_dev, found.st_ino) in self.seen or not stat.S_ISDIR(found.st_mode):
                return
            self.seen.add((found.st_dev, found.st_ino))
            with os.scandir(path) as items:
                names = sorted(items, key=lambda item: item.name)
        except FileNotFoundError:
            return
        except OSError as error:
            self.reading.problem(_shown(path), "", "unreadable", str(error.strerror))
            return
        yield from names
