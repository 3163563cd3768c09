"""Files that hold entries of torch's caches, opened: mega-caches and standalone artifacts."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from dataclasses import dataclass
from typing import Final

from cachescope.errors import SourceError
from cachescope.frames.directory_rows import EntryRow
from cachescope.readers.cache_file import DamagedContent, read_steady
from cachescope.readers.directory.mega_cache import CHECKS, loaded_artifacts, why_not_loaded
from cachescope.readers.directory.standalone import content_of
from cachescope.readers.kinds import HEAD_BYTES, looks_like_standalone, mega_cache_start
from cachescope.readers.pickles.inert_pickle import Limits, NotRead
from cachescope.readers.reading import FileFacts, Reading
from cachescope.terms import BEST_CONFIG, MEGA_CACHE, PGO, PRECOMPILE, UNREADABLE

# What torch makes of the other artifacts that it loads (`CacheArtifact.populate_cache` of each).
_FILES: Final = {"autotune": BEST_CONFIG, "pgo": PGO, "precompile": PRECOMPILE}
# torch/_dynamo/pgo.py, `code_state_path`.
_NOT_IN_NAMES: Final = re.compile(r'[<>:"/\\|?*]')


@dataclass(frozen=True, slots=True)
class Held:
    """What a mega-cache holds."""

    entries: list[EntryRow]  # the FX and AOTAutograd entries that torch loads from it
    # sha256 of the other artifacts that torch loads by kind and key, as in the frame entries; of a
    # ``best_config`` the key is its folder and name.
    files: dict[tuple[str, str], str]
    lost: frozenset[tuple[str, str]]  # kind and key of what was saved earlier, and torch does not load
    refused: str | None  # why torch loads nothing of it


def is_bundle(path: str) -> bool:
    """Whether this is a file that begins as a mega-cache or a standalone artifact does."""
    try:
        with open(path, "rb", buffering=0) as file:
            head = file.read(HEAD_BYTES) or b""
    except OSError:
        return False
    return mega_cache_start(head) is not None or looks_like_standalone(head)


def read_as_directory(path: str, reading: Reading) -> None:
    """Read the entries in a bundle as those of a directory that has the path of the file: what torch has once it loaded it."""
    inside = entries_inside(path, reading)
    facts: list[FileFacts] = [
        (one.cache, path, path, None, None, one.cache_key, one.status, None) for one in inside
    ]
    reading.entries.add(facts, dict(enumerate(inside)))
    reading.cache_roots.append(path)


def held_in(path: str, reading: Reading) -> Held:
    """Read all that is in a mega-cache; a link to one is followed."""
    try:
        data, _ = read_steady(os.path.realpath(path), Limits().size_bytes)
    except OSError as error:
        raise SourceError(path, f"cannot be read: {error.strerror}") from error
    files: dict[tuple[str, str], str] = {}
    lost = set()
    with contextlib.suppress(DamagedContent):
        for kind, key, content, is_loaded in loaded_artifacts(data):
            cache = CHECKS[kind][0] if kind in CHECKS else _FILES.get(kind)
            if cache is not None:
                name = _NOT_IN_NAMES.sub("_", key) if cache == PGO else key
                if not is_loaded:
                    lost.add((cache, name))
                elif kind in _FILES:
                    # Of several under one key, torch writes the last one last.
                    files[cache, name] = hashlib.sha256(content).hexdigest()
    return Held(_entries_in(data, path, reading), files, frozenset(lost), why_not_loaded(data))


def entries_inside(path: str, reading: Reading) -> list[EntryRow]:
    """Read the FX and AOTAutograd entries in a bundle, as if each were in the directory ``path``.

    Torch writes them to its cache directory when it loads the file; what it does not load, as it was saved earlier, is left
    out. From a file that is cut, the entries before the cut are read.
    """
    try:
        data, _ = read_steady(os.path.realpath(path), Limits().size_bytes)
    except OSError:
        return []
    return _entries_in(data, path, reading)


def _entries_in(data: bytes, path: str, reading: Reading) -> list[EntryRow]:
    found: list[EntryRow] = []
    try:
        if looks_like_standalone(data[:HEAD_BYTES]):
            holds, data = content_of(data)
            if holds != MEGA_CACHE:
                return []
        for kind, key, content, is_loaded in loaded_artifacts(data):
            if kind in CHECKS and is_loaded:
                cache, check = CHECKS[kind]
                inner = EntryRow(cache=cache, path=path, root=path, cache_key=key)
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
