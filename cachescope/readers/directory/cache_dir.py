"""Walks a cache directory: every file becomes one row of ``entries``, with its kind and size.

Read only. Links are followed only to what is torch's own (`place_of`). Files that vanish meanwhile
are skipped: torch may be running. A folder that may not be listed is a row as well: it is not known to be
empty. The layout is in `places`.
"""

from __future__ import annotations

import os
import re
import time
from functools import lru_cache
from operator import attrgetter, itemgetter
from stat import S_ISDIR, S_ISLNK, S_ISREG
from typing import Final, NamedTuple

from cachescope.frames.directory_rows import EntryRow
from cachescope.readers.cache_file import ReadFile, content_reader, read_marked, read_steady
from cachescope.readers.directory.aotinductor import read_aotinductor
from cachescope.readers.directory.autotune import fill_autotune, fill_cutlass_configs
from cachescope.readers.directory.bundles import fill_mega_cache, fill_standalone
from cachescope.readers.directory.caching_package import (
    fill_imc,
    fill_memoized,
    fill_memoizer_dump,
    fill_on_disk,
)
from cachescope.readers.directory.dynamo_packages import fill_code_state, fill_precompile, read_aot_compile
from cachescope.readers.directory.entry_file import reader_of_hidden
from cachescope.readers.directory.generated_files import fill_cpp_code, fill_python_code, read_library
from cachescope.readers.directory.graph_entries import read_aotautograd_entry, read_fxgraph_entry
from cachescope.readers.directory.place_of import FollowedLinks, place_of, place_of_file, shown_target
from cachescope.readers.directory.places import ROOT, UNKNOWN, FolderRule, Place
from cachescope.readers.directory.triton_files import (
    fill_best_config,
    fill_group,
    fill_intermediate,
    read_kernel_metadata,
)
from cachescope.readers.directory.vllm import fill_artifact, fill_factors, fill_handles, read_model
from cachescope.readers.kinds import HEAD_BYTES, shipped_kind
from cachescope.readers.pickles.inert_pickle import NotRead
from cachescope.readers.reading import Reading
from cachescope.terms import (
    AOT_COMPILE,
    AOTAUTOGRAD,
    AOTINDUCTOR,
    AUTOTUNE,
    BEST_CONFIG,
    CACHING_PACKAGE,
    CODE,
    CUTLASS_CONFIGS,
    FXGRAPH,
    IMC,
    MEGA_CACHE,
    MEMOIZER_DUMP,
    ON_DISK_CACHE,
    OTHER,
    PGO,
    PRECOMPILE,
    STANDALONE,
    UNREADABLE,
    VLLM_AOT,
    VLLM_ARTIFACT,
    VLLM_FACTORS,
    VLLM_HANDLES,
)
from cachescope.wording import readable

# By the names that the tables of places give them.
CONTENT_READERS: Final[dict[str, ReadFile]] = {
    FXGRAPH: read_fxgraph_entry,
    f"hidden {FXGRAPH}": reader_of_hidden(read_fxgraph_entry),
    AOTAUTOGRAD: read_aotautograd_entry,
    f"hidden {AOTAUTOGRAD}": reader_of_hidden(read_aotautograd_entry),
    "python code": content_reader(fill_python_code),
    "C++ code": content_reader(fill_cpp_code),
    "library": read_library,
    BEST_CONFIG: content_reader(fill_best_config),
    "group of Triton": content_reader(fill_group),
    "kernel of Triton": read_kernel_metadata,
    "intermediate of Triton": content_reader(fill_intermediate),
    AUTOTUNE: content_reader(fill_autotune),
    CACHING_PACKAGE: content_reader(fill_memoized),
    ON_DISK_CACHE: content_reader(fill_on_disk),
    IMC: content_reader(fill_imc),
    MEMOIZER_DUMP: content_reader(fill_memoizer_dump),
    CUTLASS_CONFIGS: content_reader(fill_cutlass_configs),
    PRECOMPILE: content_reader(fill_precompile),
    PGO: content_reader(fill_code_state),
    VLLM_FACTORS: content_reader(fill_factors),
    VLLM_HANDLES: content_reader(fill_handles),
    VLLM_ARTIFACT: content_reader(fill_artifact),
    VLLM_AOT: read_model,
}

# Of what is shipped by itself.
SHIPPED_READERS: Final[dict[str, ReadFile]] = {
    MEGA_CACHE: content_reader(fill_mega_cache),
    STANDALONE: content_reader(fill_standalone),
    AOT_COMPILE: read_aot_compile,
    AOTINDUCTOR: read_aotinductor,
}

NameFacts = tuple[str, str, ReadFile | None, str | None]
"""Kind, status and reader of a file, and its key if the name contains it."""

# torch/_inductor/codecache.py, `write_atomic`: ".<pid>.<thread id>.tmp".
_TEMPORARY: Final = re.compile(r"\..*\.tmp|.*\.tmp\.pid_.*", re.DOTALL)

_NAME: Final = attrgetter("name")
_RANK: Final = itemgetter(0)


class _Folder(NamedTuple):
    """A folder that is walked."""

    path: str
    place: Place
    root: str  # of the cache
    key: str | None
    is_temporary: bool = False  # whether everything in it is
    link: str | None = None  # the target of the link to it, if any

    def below(self, path: str, name: str, place: Place) -> _Folder:
        """A folder in it, which is known to be such a place."""
        key = _key_of(place, name, self.key)
        return _Folder(path, place, self.root, key, self.is_temporary, self.link)


def read_cache_dir(path: str, reading: Reading) -> None:
    """Read everything under a path for which `looks_like_cache_dir` is true into ``reading.entries``."""
    walk = CacheWalk(path, reading)
    walk.scan()
    reading.cache_roots.append(readable(path))
    reading.entries += filter(None, map(walk.read, range(len(walk.files))))


def read_shipped_file(path: str, reading: Reading) -> None:
    """Read a file that is shipped by itself, in any folder."""
    seen_ns, real = time.time_ns(), os.path.realpath(path)
    root = readable(os.path.dirname(path) or ".")
    entry = EntryRow(cache=OTHER, path=readable(path), root=root, seen_time=seen_ns)
    entry.take_times(os.stat(path))
    entry.link = readable(real) if os.path.islink(path) else None
    if read_marked(_read_unknown, entry, real, os.path.basename(real), reading):
        reading.entries.append(entry)


class CacheWalk:
    """One pass over a directory, then over the files in it whose content matters."""

    def __init__(self, path: str, reading: Reading) -> None:
        self.path = path
        self.reading = reading
        self.files: list[EntryRow] = []
        """In the order of `places` and of names."""
        # What reads a file, where it is, and its name.
        self._unread: dict[int, tuple[ReadFile, str, str]] = {}
        self._followed = FollowedLinks(path)
        self._seen_ns = time.time_ns()

    def scan(self) -> None:
        """List the files without opening any."""
        if not os.path.isdir(self.path):
            self._single_file()
            return
        place = place_of(self.path) or ROOT
        key = _key_of(place, os.path.basename(os.path.abspath(self.path)))
        self._walk(_Folder(self.path, place, readable(self.path), key))

    def read(self, number: int) -> EntryRow | None:
        """A file, which is read if its content matters; None if it no longer exists."""
        entry = self.files[number]
        if number in self._unread:
            read, path, name = self._unread[number]
            return entry if read_marked(read, entry, path, name, self.reading) else None
        return entry

    def _single_file(self) -> None:
        placed = place_of_file(self.path)
        try:
            found = os.stat(self.path)
        except OSError:
            return
        if placed is not None:
            parent = os.path.dirname(os.path.abspath(self.path))
            key = _key_of(placed[0], os.path.basename(parent))
            folder = _Folder(parent, placed[0], readable(os.path.dirname(self.path) or "."), key)
            self._any_file(folder, self.path, os.path.basename(self.path), found)

    def _walk(self, outermost: _Folder) -> None:
        """Add the files of a folder and its subfolders."""
        waiting = [outermost]
        while waiting:
            folder = waiting.pop()
            try:
                items = sorted(os.scandir(folder.path), key=_NAME)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                self._cannot_read(folder, folder.path, folder.place.kind, None, error.strerror or str(error))
                continue
            if not items and folder.place.is_temporary:
                # Its process left it behind, or is about to fill it.
                self._add(folder, folder.path, folder.place.kind, folder.key, "temporary")
            inner: list[tuple[int, _Folder]] = []
            for item in items:
                try:
                    is_folder = item.is_dir(follow_symlinks=False)
                    if is_folder or item.is_symlink():
                        rank, rule = folder.place.folder_rule(item.name)
                        walked = self._inner if is_folder else self._link
                        inner += [(rank, one) for one in walked(folder, item, rule)]
                    else:
                        self._any_file(folder, item.path, item.name, item.stat(follow_symlinks=False))
                except FileNotFoundError:
                    continue
                except OSError as error:
                    kind, _, _, key = _told(folder.place, item.name)
                    self._cannot_read(folder, item.path, kind, key, error.strerror or str(error))
            inner.sort(key=_RANK)  # by name they are already
            waiting += [each for _, each in reversed(inner)]

    def _any_file(
        self, folder: _Folder, path: str, name: str, found: os.stat_result, target: str | None = None
    ) -> None:
        """Add a file of any sort: also a link, a temporary file, one behind a link."""
        place = folder.place
        kind, status, read, key = _told(place, name)
        key = key or folder.key
        if folder.link is not None and key is None and kind in (CODE, OTHER):
            return  # other files behind a link are not torch's
        if not S_ISREG(found.st_mode):
            # Never opened: a pipe would block for ever.
            is_link = S_ISLNK(found.st_mode)
            if not is_link or read is not None:
                kind, status = OTHER, "foreign"
            key, read = None, _read_link if is_link else None
        elif not place.loads_all and (folder.is_temporary or (".tmp" in name and _TEMPORARY.fullmatch(name))):
            kind, key, status, read = place.kind, folder.key, "temporary", None
        if read is not None:
            self._unread[len(self.files)] = read, target or path, name
        entry, link = self._add(folder, path, kind, key, status), target or folder.link
        entry.take_times(found)
        entry.link = None if link is None else readable(link)

    def _add(self, folder: _Folder, path: str, kind: str, key: str | None, status: str) -> EntryRow:
        entry = EntryRow(cache=kind, path=readable(path), root=folder.root, status=status)
        entry.cache_key, entry.seen_time = key and readable(key), self._seen_ns
        self.files.append(entry)
        return entry

    def _cannot_read(self, folder: _Folder, path: str, kind: str, key: str | None, why: str) -> None:
        """Add what may not be accessed: a folder, or a file in a folder that may only be listed."""
        self._unread[len(self.files)] = _unread_because(why), path, ""
        self._add(folder, path, kind, key or folder.key, UNREADABLE)

    def _link(self, folder: _Folder, item: os.DirEntry[str], rule: FolderRule | None) -> list[_Folder]:
        """Add a link to a file, or return the folder that it leads to; a link that is not followed is a row, too."""
        kind, _, read, key = _told(folder.place, item.name)
        is_entry = read is not None and kind != OTHER
        try:
            found = os.stat(item.path)
        except OSError as error:
            own = item.stat(follow_symlinks=False)
            if is_entry or (rule is not None and rule.is_named):
                # If a disk is not mounted, a whole cache may be behind the link.
                kind = kind if rule is None else rule.place.kind
                why = f"{shown_target(item.path)}: {error.strerror or error}"
                self._cannot_read(folder, item.path, kind, key, why)
            else:
                self._any_file(folder, item.path, item.name, own)
            return []
        if S_ISREG(found.st_mode) and is_entry:
            self._any_file(folder, item.path, item.name, found, os.path.realpath(item.path))
            return []
        is_inside = folder.place.is_deep or folder.link is not None
        if S_ISDIR(found.st_mode) and self._followed.leads_to_place(item.path, found, rule, is_inside):
            target = os.path.realpath(item.path)
            if rule is None:
                return [_Folder(item.path, ROOT, readable(item.path), None, link=target)]
            return [folder.below(item.path, item.name, rule.place)._replace(link=target)]
        if S_ISDIR(found.st_mode) and rule is not None and rule.is_named:
            why = f"{shown_target(item.path)}, as too many do: not followed"
            self._cannot_read(folder, item.path, rule.place.kind, key, why)
            return []
        self._any_file(folder, item.path, item.name, item.stat(follow_symlinks=False))
        return []

    def _inner(self, folder: _Folder, item: os.DirEntry[str], rule: FolderRule | None) -> list[_Folder]:
        """A folder in a folder, with its place; none if it is not walked."""
        path, name = item.path, item.name
        if rule is not None:
            below = folder.below(path, name, rule.place)
            if rule.place is ROOT:
                return [below._replace(root=readable(path), key=None)]
            return [below._replace(is_temporary=True) if rule.place.is_temporary else below]
        if folder.link is not None:
            return []
        if folder.place.is_deep:
            return [folder._replace(path=path)]
        # A cache in a cache: `fresh_cache` and force-disabled runs leave whole caches behind.
        place = place_of(path) or UNKNOWN
        own_root = readable(path) if place is ROOT else folder.root
        return [_Folder(path, place, own_root, _key_of(place, name))]


@lru_cache(maxsize=1 << 12)
def _told(place: Place, name: str) -> NameFacts:
    """The kind, status, reader and key of a name in a place; Triton repeats them in every folder."""
    rule = place.file_rule(name)
    if rule is None:
        return OTHER, "foreign", _read_unknown, None
    match = rule.match(name)
    key = match[1] if match is not None and match.re.groups else None
    return rule.kind, rule.status, None if rule.content is None else CONTENT_READERS[rule.content], key


def _key_of(place: Place, name: str, outer_key: str | None = None) -> str | None:
    """The key of the files in a folder."""
    return outer_key if place.key_of is None else place.key_of(readable(name))


def _read_unknown(entry: EntryRow, path: str, name: str, reading: Reading) -> None:
    """Read what is shipped by itself, under any name; ignore any other file, even one that may not be read."""
    try:
        head, _ = read_steady(path, HEAD_BYTES)
    except FileNotFoundError:
        raise
    except OSError:
        return
    if (kind := shipped_kind(path, head)) is not None:
        entry.cache, entry.status = kind, "ok"
        SHIPPED_READERS[kind](entry, path, name, reading)


def _read_link(entry: EntryRow, path: str, name: str, reading: Reading) -> None:
    """Note the target of a link that is not followed."""
    entry.detail = readable(shown_target(path))


def _unread_because(why: str) -> ReadFile:
    def read(entry: EntryRow, path: str, name: str, reading: Reading) -> None:
        raise NotRead(why)

    return read
