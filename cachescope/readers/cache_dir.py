"""Walk a cache directory: every file in it becomes one row of ``entries``, with its kind and its size.

Read only, and links are not followed. What vanishes meanwhile is passed over: torch may be running. What
lies where is in `places`.
"""

from __future__ import annotations

import gc
import os
import re
import stat
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from operator import attrgetter, itemgetter

from cachescope.readers.mega_cache import HEAD_BYTES, looks_like_mega_cache, read_mega_cache
from cachescope.readers.place_of import place_of, place_of_file
from cachescope.readers.places import ROOT, UNKNOWN, FileRule, Place
from cachescope.readers.reading import Entry, Reading
from cachescope.readers.steady_file import read_steady
from cachescope.terms import MEGA_CACHE, OTHER

Matcher = Callable[[str], re.Match[str] | None]

# torch/_inductor/codecache.py, `write_atomic`: ".<pid>.<thread id>.tmp".
_TEMPORARY = re.compile(r"\..*\.tmp|.*\.tmp\.pid_.*", re.DOTALL)


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
    reading.entries += [entry for entry in walk.entries if walk.read(entry)]


def read_mega_cache_file(path: str, reading: Reading) -> None:
    """Read a mega-cache file that lies anywhere."""
    found = os.stat(path)
    entry = Entry(
        MEGA_CACHE, _shown(path), _shown(os.path.dirname(path) or "."), found.st_size, found.st_mtime_ns
    )
    if read_mega_cache(entry, path, os.path.basename(path), reading):
        reading.entries.append(entry)


@dataclass(slots=True)
class _Folder:
    path: str
    place: Place
    root: str
    key: str | None
    is_temporary: bool = False


class CacheWalk:
    """One pass over a directory, and then over the files in it whose content says something.

    Attributes
    ----------
    entries : list of Entry
        The rows, in the order of `places` and of names.
    """

    def __init__(self, path: str, reading: Reading) -> None:
        self.path = path
        self.reading = reading
        self.entries: list[Entry] = []

    def scan(self) -> None:
        """Make the rows from names, sizes and times; open no file."""
        if not os.path.isdir(self.path):
            self._single_file()
            return
        place = place_of(self.path) or ROOT
        key = _key_of(place, os.path.basename(os.path.abspath(self.path)), None)
        waiting = [_Folder(self.path, place, _shown(self.path), key)]
        # Nothing that is made here is garbage, and the collector would look through all of it again and again.
        is_collecting = gc.isenabled()
        gc.disable()
        try:
            while waiting:
                waiting += reversed(self._folder(waiting.pop()))
        finally:
            if is_collecting:
                gc.enable()

    def read(self, entry: Entry) -> bool:
        """Read the file of one row where its kind has a reader; False where it is gone."""
        if entry.read_file is None:
            return True
        path = entry.real_path or entry.path
        return entry.read_file(entry, path, os.path.basename(path), self.reading)

    def _single_file(self) -> None:
        told = place_of_file(self.path)
        name = os.path.basename(self.path)
        try:
            found = os.stat(self.path)
        except OSError:
            return
        if told is not None:
            place, rule = told
            parent = os.path.dirname(os.path.abspath(self.path))
            key = _key_of(place, os.path.basename(parent), None)
            folder = _Folder(parent, place, _shown(os.path.dirname(self.path) or "."), key)
            match = rule.pattern.fullmatch(name)
            self._row(folder, self.path, name, found, rule, match[1] if match and match.lastindex else None)

    def _folder(self, folder: _Folder) -> list[_Folder]:
        """Make the rows of the files of one folder; give the folders in it."""
        inner: list[tuple[int, str, _Folder]] = []
        fullmatch, rules = _file_rules(folder.place)
        for item in self._list(folder.path):
            name = item.name
            try:
                if item.is_dir(follow_symlinks=False):
                    rank, found = self._inner(folder, item.path, name)
                    inner.append((rank, name, found))
                    continue
                status = item.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            except OSError as error:
                self.reading.problem(_shown(item.path), "", "unreadable", str(error.strerror))
                continue
            if (match := fullmatch(name)) is not None:
                rule, group = rules[match.lastindex or 0]
                self._row(folder, item.path, name, status, rule, match[group] if group else None)
            else:
                self._row(folder, item.path, name, status)
        if len(inner) > 1:
            inner.sort(key=itemgetter(0, 1))
        return [found for _, _, found in inner]

    def _inner(self, folder: _Folder, path: str, name: str) -> tuple[int, _Folder]:
        """What a folder in a folder is, and its rank: that of its rule in the table."""
        for rank, rule in enumerate(folder.place.folders):
            if rule.pattern.fullmatch(name):
                place = rule.place
                key = _key_of(place, name, folder.key)
                return rank, _Folder(path, place, folder.root, key, folder.is_temporary or place.is_temporary)
        rank = len(folder.place.folders)
        if folder.place.is_deep:
            return rank, _Folder(path, folder.place, folder.root, folder.key, folder.is_temporary)
        # A cache in a cache: `fresh_cache` and force-disabled runs leave whole ones behind.
        place = place_of(path) or UNKNOWN
        root = _shown(path) if place is ROOT else folder.root
        return rank, _Folder(path, place, root, _key_of(place, name, None))

    def _row(
        self,
        folder: _Folder,
        path: str,
        name: str,
        found: os.stat_result,
        rule: FileRule | None = None,
        key: str | None = None,
    ) -> None:
        shown = path if path.isascii() else _shown(path)
        key = folder.key if key is None else _shown(key)
        kind = OTHER if rule is None else rule.kind
        entry = Entry(kind, shown, folder.root, found.st_size, found.st_mtime_ns, key)
        self.entries.append(entry)
        if shown is not path:
            entry.real_path = path
        if not stat.S_ISREG(found.st_mode):
            _not_a_file(entry, path, stat.S_ISLNK(found.st_mode), rule)
        elif folder.is_temporary or (".tmp" in name and _TEMPORARY.fullmatch(name)):
            entry.cache, entry.cache_key = folder.place.kind, folder.key
            entry.status = "temporary"
        elif rule is None:
            entry.status = "foreign"
            entry.read_file = _read_unknown
        elif rule.read is not None:
            entry.read_file = rule.read

    def _list(self, path: str) -> list[os.DirEntry[str]]:
        """The items of a folder by name; none where it is gone or may not be read."""
        try:
            found = list(os.scandir(path))
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            self.reading.problem(_shown(path), "", "unreadable", str(error.strerror))
            return []
        if len(found) > 1:
            found.sort(key=attrgetter("name"))
        return found


@cache
def _file_rules(place: Place) -> tuple[Matcher, dict[int, tuple[FileRule, int]]]:
    """The rules for the files of a place as one pattern; the rule of each of its groups, and its key's group."""
    rules: dict[int, tuple[FileRule, int]] = {}
    groups = 1
    for rule in place.files:
        rules[groups] = rule, groups + 1 if rule.pattern.groups else 0
        groups += 1 + rule.pattern.groups
    pattern = "|".join(f"({rule.pattern.pattern})" for rule in place.files) or "(?!)"
    return re.compile(pattern, re.DOTALL).fullmatch, rules


def _key_of(place: Place, name: str, outer: str | None) -> str | None:
    """The key that the files of a folder stand for."""
    return outer if place.key_of is None else place.key_of(_shown(name))


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


def _not_a_file(entry: Entry, path: str, is_link: bool, rule: FileRule | None) -> None:
    """A link, a pipe, a socket: never opened, for a pipe would wait for ever, and a link may lead anywhere."""
    entry.cache_key = None
    if is_link:
        entry.detail = _link_text(path)
    if not is_link or rule is None or rule.read is not None:
        entry.cache, entry.status = OTHER, "foreign"


def _link_text(path: str) -> str:
    try:
        return f"a link to {_shown(os.readlink(path))}"
    except OSError:
        return "a link"


def _shown(path: str) -> str:
    # A name that is not UTF-8 would break every later writer of text.
    return path if path.isascii() else os.fsencode(path).decode("utf-8", "backslashreplace")
