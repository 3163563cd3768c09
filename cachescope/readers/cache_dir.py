"""Walk a cache directory: every file in it becomes one row of ``entries``, with its kind and its size.

Read only, and links are not followed. What vanishes meanwhile is passed over: torch may be running. What
lies where is in `places`.
"""

from __future__ import annotations

import gc
import os
import re
from contextlib import suppress
from operator import attrgetter, itemgetter
from stat import S_ISLNK, S_ISREG
from typing import Final

from cachescope.readers.checked_file import ReadFile
from cachescope.readers.mega_cache import HEAD_BYTES, looks_like_mega_cache, read_mega_cache
from cachescope.readers.place_of import place_of, place_of_file
from cachescope.readers.places import ROOT, UNKNOWN, Place
from cachescope.readers.reading import Entry, FileFacts, Reading
from cachescope.readers.steady_file import read_steady
from cachescope.terms import MEGA_CACHE, OTHER

Told = tuple[str, str, ReadFile | None, str | None]
"""Kind, status and reader of a file, and its key where that is in its name."""

# torch/_inductor/codecache.py, `write_atomic`: ".<pid>.<thread id>.tmp".
_TEMPORARY: Final = re.compile(r"\..*\.tmp|.*\.tmp\.pid_.*", re.DOTALL)

_NAME: Final = attrgetter("name")
_RANK: Final = itemgetter(0)
_SHORT: Final = 40  # a key alone is longer


_Folder = tuple[str, Place, str, str | None, bool]
"""Path, place, cache root, key, and whether all in it is temporary."""


def looks_like_cache_dir(path: str) -> bool:
    """Whether a path is a cache root, a Triton directory, a folder of one, or a file in one.

    Told by names (`place_of`): keys above all, wherever they are.
    """
    if os.path.isdir(path):
        return place_of(path) is not None
    return os.path.isfile(path) and place_of_file(path) is not None


def read_cache_dir(path: str, reading: Reading) -> None:
    """Read everything under a path that `looks_like_cache_dir` into ``reading.entries``."""
    walk = CacheWalk(path, reading)
    walk.scan()
    opened = {number: walk.read(number) for number, read in enumerate(walk.readers) if read is not None}
    reading.entries.add(walk.files, opened)


def read_mega_cache_file(path: str, reading: Reading) -> None:
    """Read a mega-cache file that lies anywhere."""
    found = os.stat(path)
    root = _shown(os.path.dirname(path) or ".")
    facts = (MEGA_CACHE, _shown(path), root, found.st_size, found.st_mtime_ns, None, "ok")
    reading.entries.add([facts], {0: _opened(facts, read_mega_cache, path, reading)})


class CacheWalk:
    """One pass over a directory, and then over the files in it whose content says something.

    Attributes
    ----------
    files : list of FileFacts
        What names, sizes and times say, in the order of `places` and of names.
    readers : list of ReadFile or None
        What fills the entry of each from its content; None where the file is never opened.
    """

    def __init__(self, path: str, reading: Reading) -> None:
        self.path = path
        self.reading = reading
        self.files: list[FileFacts] = []
        self.readers: list[ReadFile | None] = []
        self._real_paths: dict[int, str] = {}
        self._names = _NamesByPlace()

    def scan(self) -> None:
        """Find the files; open none."""
        if not os.path.isdir(self.path):
            self._single_file()
            return
        place = place_of(self.path) or ROOT
        key = _key_of(place, os.path.basename(os.path.abspath(self.path)))
        # Nothing that is made here is garbage, and the collector would look through all of it again and again.
        is_collecting = gc.isenabled()
        gc.disable()
        try:
            self._walk((self.path, place, _shown(self.path), key, False))
        finally:
            if is_collecting:
                gc.enable()

    def read(self, number: int) -> Entry | None:
        """Read a file that has a reader; None where it is gone."""
        facts, read = self.files[number], self.readers[number]
        assert read is not None
        return _opened(facts, read, self._real_paths.get(number, facts[1]), self.reading)

    def _single_file(self) -> None:
        told = place_of_file(self.path)
        try:
            found = os.stat(self.path)
        except OSError:
            return
        if told is not None:
            parent = os.path.dirname(os.path.abspath(self.path))
            key = _key_of(told[0], os.path.basename(parent))
            folder = (parent, told[0], _shown(os.path.dirname(self.path) or "."), key, False)
            self._any_file(folder, self.path, os.path.basename(self.path), found)

    def _walk(self, outermost: _Folder) -> None:
        """Take the files of a folder and of those in it, without a call for each: there is one to three files."""
        waiting = [outermost]
        add_file, add_reader = self.files.append, self.readers.append
        while waiting:
            folder = waiting.pop()
            folder_path, place, root, folder_key, is_temporary = folder
            try:
                items = list(os.scandir(folder_path))
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                self.reading.problem(_shown(folder_path), "", "unreadable", str(error.strerror))
                continue
            if len(items) > 1:
                items.sort(key=_NAME)
            names = self._names[place]
            is_plain = folder_path.isascii() and not is_temporary
            inner: list[tuple[int, _Folder]] = []
            for item in items:
                name = item.name
                try:
                    is_file = item.is_file(follow_symlinks=False)
                    if not is_file and item.is_dir(follow_symlinks=False):
                        inner.append(self._inner(folder, item.path, name))
                        continue
                    found = item.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                except OSError as error:
                    self.reading.problem(_shown(item.path), "", "unreadable", str(error.strerror))
                    continue
                if is_plain and is_file and name.isascii() and ".tmp" not in name:
                    # What `_any_file` does, without a call for each of a hundred thousand files.
                    kind, status, read, key = names.get(name) or names.tell(name)
                    size, time_ns = found.st_size, found.st_mtime_ns
                    add_file((kind, item.path, root, size, time_ns, key or folder_key, status))
                    add_reader(read)
                else:
                    self._any_file(folder, item.path, name, found)
            if inner:
                inner.sort(key=_RANK)  # by name they are already
                waiting += [each for _, each in reversed(inner)]

    def _any_file(self, folder: _Folder, path: str, name: str, found: os.stat_result) -> None:
        """Take any file: a link, a temporary one, one whose name is not ASCII."""
        _, place, root, folder_key, is_temporary = folder
        kind, status, read, key = self._names[place].tell(name)
        key = key or folder_key
        if not S_ISREG(found.st_mode):
            # Never opened, for a pipe would wait for ever, and a link may lead anywhere.
            is_link = S_ISLNK(found.st_mode)
            if not is_link or read is not None:
                kind, status = OTHER, "foreign"
            key, read = None, _read_link if is_link else None
        elif is_temporary or _TEMPORARY.fullmatch(name):
            kind, key, status, read = place.kind, folder_key, "temporary", None
        shown = _shown(path)
        if shown != path:
            self._real_paths[len(self.files)] = path
            key = key and _shown(key)
        self.files.append((kind, shown, root, found.st_size, found.st_mtime_ns, key, status))
        self.readers.append(read)

    def _inner(self, folder: _Folder, path: str, name: str) -> tuple[int, _Folder]:
        """What a folder in a folder is, and its rank: that of its rule in the table."""
        _, around, root, outer_key, is_temporary = folder
        rank = 0
        for fits, place, key_of in self._names[around].folders:
            if fits(name):
                key = outer_key if key_of is None else key_of(_shown(name))
                return rank, (path, place, root, key, is_temporary or place.is_temporary)
            rank += 1
        if around.is_deep:
            return rank, (path, around, root, outer_key, is_temporary)
        # A cache in a cache: `fresh_cache` and force-disabled runs leave whole ones behind.
        place = place_of(path) or UNKNOWN
        return rank, (path, place, _shown(path) if place is ROOT else root, _key_of(place, name), False)


class _Names(dict[str, Told]):
    """What the rules of a place tell of a name; kept for short ones, for Triton's are the same in every folder."""

    def __init__(self, place: Place) -> None:
        super().__init__()
        self._rules: dict[int | None, tuple[str, str, ReadFile | None, int]] = {
            None: (OTHER, "foreign", _read_unknown, 0)
        }
        self.folders = [(rule.pattern.fullmatch, rule.place, rule.place.key_of) for rule in place.folders]
        groups = 1
        for rule in place.files:
            self._rules[groups] = rule.kind, "ok", rule.read, groups + 1 if rule.pattern.groups else 0
            groups += 1 + rule.pattern.groups
        pattern = "|".join(f"({rule.pattern.pattern})" for rule in place.files) or "(?!)"
        self._fullmatch = re.compile(pattern, re.DOTALL).fullmatch

    def tell(self, name: str) -> Told:
        """What the rules tell."""
        match = self._fullmatch(name)
        kind, status, read, group = self._rules[match and match.lastindex]
        told = kind, status, read, match[group] if match and group else None
        if len(name) < _SHORT:
            self[name] = told
        return told


class _NamesByPlace(dict[Place, _Names]):
    def __missing__(self, place: Place) -> _Names:
        self[place] = names = _Names(place)
        return names


def _key_of(place: Place, name: str) -> str | None:
    """The key that the files of a folder stand for."""
    return None if place.key_of is None else place.key_of(_shown(name))


def _read_unknown(entry: Entry, path: str, name: str, reading: Reading) -> bool:
    """A mega-cache may have any name. What else it is, or that it may not be read, is no concern of ours."""
    try:
        head, _ = read_steady(path, HEAD_BYTES)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    if looks_like_mega_cache(head):
        entry.cache, entry.status = MEGA_CACHE, "ok"
        return read_mega_cache(entry, path, name, reading)
    return True


def _read_link(entry: Entry, path: str, name: str, reading: Reading) -> bool:
    """Say where a link leads; it is not followed."""
    entry.detail = "a link"
    with suppress(OSError):
        entry.detail = f"a link to {_shown(os.readlink(path))}"
    return True


def _opened(facts: FileFacts, read: ReadFile, path: str, reading: Reading) -> Entry | None:
    entry = Entry(*facts)
    return entry if read(entry, path, os.path.basename(path), reading) else None


def _shown(path: str) -> str:
    # A name that is not UTF-8 would break every later writer of text.
    return path if path.isascii() else os.fsencode(path).decode("utf-8", "backslashreplace")
