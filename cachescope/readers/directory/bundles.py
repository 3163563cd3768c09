"""Files that hold entries of torch's caches, opened: mega-caches and standalone artifacts."""

from __future__ import annotations

from cachescope.readers.checked_file import DamagedContent
from cachescope.readers.directory.mega_cache import CHECKS, artifacts, looks_like_mega_cache
from cachescope.readers.directory.standalone import content_of, looks_like_standalone
from cachescope.readers.pickles.inert_pickle import Limits, NotRead
from cachescope.readers.reading import Entry, FileFacts, Reading
from cachescope.readers.steady_file import read_steady
from cachescope.terms import MEGA_CACHE, UNREADABLE

_HEAD_BYTES = 256


def is_bundle(path: str) -> bool:
    """Whether this is a file that begins as a mega-cache or a standalone artifact does."""
    try:
        with open(path, "rb", buffering=0) as file:
            head = file.read(_HEAD_BYTES) or b""
    except OSError:
        return False
    return looks_like_mega_cache(head) or looks_like_standalone(head)


def read_as_directory(path: str, reading: Reading) -> None:
    """Read the entries in a bundle as those of a directory that has the path of the file: what torch has once it loaded it."""
    inside = entries_inside(path, reading)
    facts: list[FileFacts] = [
        (one.cache, path, path, None, None, one.cache_key, one.status, None) for one in inside
    ]
    reading.entries.add(facts, dict(enumerate(inside)))
    reading.cache_roots.append(path)


def entries_inside(path: str, reading: Reading) -> list[Entry]:
    """Read the FX and AOTAutograd entries in a bundle, as if each were in the directory ``path``.

    Torch writes them to its cache directory when it loads the file. From a file that is cut, the entries before the
    cut are read.
    """
    try:
        data, _ = read_steady(path, Limits().size_bytes)
    except OSError:
        return []
    found: list[Entry] = []
    try:
        if looks_like_standalone(data[:_HEAD_BYTES]):
            holds, data = content_of(data)
            if holds != MEGA_CACHE:
                return []
        for kind, key, content, _ in artifacts(data):
            if kind in CHECKS:
                cache, check = CHECKS[kind]
                inner = Entry(cache=cache, path=path, root=path, cache_key=key)
                found.append(inner)
                try:
                    inner.damage, _ = check(inner, content, reading)
                except NotRead as error:
                    inner.status, inner.damage = UNREADABLE, error.what
                else:
                    inner.status = "ok" if inner.damage is None else "damaged"
    except DamagedContent:
        pass
    return found
