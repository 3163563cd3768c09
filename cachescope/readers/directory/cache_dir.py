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
from typing import Final

from cachescope.frames.directory_rows import EntryRow
from cachescope.readers.cache_file import ReadFile, content_reader, mark_unreadable, read_steady
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
from cachescope.readers.directory.generated_files import fill_cpp_code, fill_python_code
from cachescope.readers.directory.graph_entries import read_aotautograd_entry, read_fxgraph_entry
from cachescope.readers.directory.place_of import FollowedLinks, place_of, place_of_file, shown_target
from cachescope.readers.directory.places import ROOT, UNKNOWN, FolderRule, Place, compiled
from cachescope.readers.directory.triton_files import (
    fill_best_config,
    fill_group,
    fill_intermediate,
    read_kernel_metadata,
)
from cachescope.readers.directory.vllm import fill_artifact, fill_factors, fill_handles, read_model
from cachescope.readers.kinds import HEAD_BYTES, shipped_kind
from cachescope.readers.reading import FileFacts, Reading, entry_of
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


_Folder = tuple[str, Place, str, str | None, bool, str | None]
"""Path, place, cache root, key, whether everything in it is temporary, and the target of the link to it, if any."""


def read_cache_dir(path: str, reading: Reading) -> None:
    """Read everything under a path for which `looks_like_cache_dir` is true into ``reading.entries``."""
    seen_ns = time.time_ns()
    walk = CacheWalk(path, reading)
    walk.scan()
    reading.cache_roots.append(readable(path))
    opened = {number: walk.read(number) for number, read in enumerate(walk.readers) if read is not None}
    reading.entries.add(walk.files, opened, seen_ns)


def read_shipped_file(path: str, reading: Reading) -> None:
    """Read a file that is shipped by itself, in any folder."""
    seen_ns = time.time_ns()
    found = os.stat(path)
    root = readable(os.path.dirname(path) or ".")
    facts = (OTHER, readable(path), root, found.st_size, found.st_mtime_ns, None, "ok", found.st_ctime_ns)
    entry = _opened(facts, _read_unknown, os.path.realpath(path), reading)
    if entry is not None and os.path.islink(path):
        entry.link = readable(os.path.realpath(path))
    reading.entries.add([facts], {0: entry}, seen_ns)


class CacheWalk:
    """One pass over a directory, then over the files in it whose content matters."""

    def __init__(self, path: str, reading: Reading) -> None:
        self.path = path
        self.reading = reading
        # Facts from names, sizes and times, in the order of `places` and of names; and what fills each file's entry from its content.
        self.files: list[FileFacts] = []
        self.readers: list[ReadFile | None] = []
        self._real_paths: dict[int, str] = {}
        self._targets: dict[int, str] = {}
        self._followed = FollowedLinks(path)

    def scan(self) -> None:
        """List the files without opening any."""
        if not os.path.isdir(self.path):
            self._single_file()
            return
        place = place_of(self.path) or ROOT
        key = _key_of(place, os.path.basename(os.path.abspath(self.path)))
        self._walk((self.path, place, readable(self.path), key, False, None))

    def read(self, number: int) -> EntryRow | None:
        """Read a file that has a reader; None if it no longer exists."""
        facts, read = self.files[number], self.readers[number]
        assert read is not None
        target = self._targets.get(number)
        entry = _opened(facts, read, self._real_paths.get(number, facts[1]), self.reading)
        if entry is not None and target is not None:
            entry.link = readable(target)
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
            folder = (parent, placed[0], readable(os.path.dirname(self.path) or "."), key, False, None)
            self._any_file(folder, self.path, os.path.basename(self.path), found)

    def _walk(self, outermost: _Folder) -> None:
        """Add the files of a folder and its subfolders."""
        waiting = [outermost]
        while waiting:
            folder = waiting.pop()
            folder_path, place, root, folder_key, _, _ = folder
            try:
                items = sorted(os.scandir(folder_path), key=_NAME)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                self._unread(folder_path, root, place.kind, folder_key, error.strerror or str(error))
                continue
            if not items and place.is_temporary:
                # Its process left it behind, or is about to fill it.
                shown = readable(folder_path)
                self.files.append((place.kind, shown, root, None, None, folder_key, "temporary", None))
                self.readers.append(None)
            inner: list[tuple[int, _Folder]] = []
            for item in items:
                name = item.name
                try:
                    if item.is_dir(follow_symlinks=False):
                        inner += self._inner(folder, item.path, name)
                    elif item.is_symlink():
                        inner += self._link(folder, item)
                    else:
                        self._any_file(folder, item.path, name, item.stat(follow_symlinks=False))
                except FileNotFoundError:
                    continue
                except OSError as error:
                    kind, _, _, key = _told(place, name)
                    self._unread(item.path, root, kind, key or folder_key, error.strerror or str(error))
            inner.sort(key=_RANK)  # by name they are already
            waiting += [each for _, each in reversed(inner)]

    def _any_file(
        self, folder: _Folder, path: str, name: str, found: os.stat_result, target: str | None = None
    ) -> None:
        """Add a file of any sort: also a link, a temporary file, one behind a link."""
        _, place, root, folder_key, is_temporary, link = folder
        kind, status, read, key = _told(place, name)
        key = key or folder_key
        if link is not None and key is None and kind in (CODE, OTHER):
            return  # other files behind a link are not torch's
        if not S_ISREG(found.st_mode):
            # Never opened: a pipe would block for ever.
            is_link = S_ISLNK(found.st_mode)
            if not is_link or read is not None:
                kind, status = OTHER, "foreign"
            key, read = None, _read_link if is_link else None
        elif not place.loads_all and (is_temporary or _TEMPORARY.fullmatch(name)):
            kind, key, status, read = place.kind, folder_key, "temporary", None
        shown = readable(path)
        number = len(self.files)
        if shown != path:
            self._real_paths[number] = path
            key = key and readable(key)
        if target is not None or link is not None:
            self._targets[number] = target or link or ""
            read = _through(target, read)
        times = found.st_mtime_ns, found.st_ctime_ns
        self.files.append((kind, shown, root, found.st_size, times[0], key, status, times[1]))
        self.readers.append(read)

    def _unread(self, path: str, root: str, kind: str, key: str | None, why: str) -> None:
        """Add what may not be accessed: a folder, or a file in a folder that may only be listed."""
        self.files.append((kind, readable(path), root, None, None, key and readable(key), UNREADABLE, None))
        self.readers.append(_unread_because(why))

    def _link(self, folder: _Folder, item: os.DirEntry[str]) -> list[tuple[int, _Folder]]:
        """Add a link to a file, or return the folder that it leads to; a link that is not followed is a row, too."""
        _, place, root, folder_key, is_temporary, _ = folder
        kind, _, read, key = _told(place, item.name)
        is_entry = read is not None and kind != OTHER
        rank, rule = _folder_rule(place, item.name)
        try:
            found = os.stat(item.path)
        except OSError as error:
            own = item.stat(follow_symlinks=False)
            if is_entry or (rule is not None and rule.is_named):
                # If a disk is not mounted, a whole cache may be behind the link.
                kind = kind if rule is None else rule.place.kind
                why = f"{shown_target(item.path)}: {error.strerror or error}"
                self._unread(item.path, root, kind, key or folder_key, why)
            else:
                self._any_file(folder, item.path, item.name, own)
            return []
        if S_ISREG(found.st_mode) and is_entry:
            self._any_file(folder, item.path, item.name, found, os.path.realpath(item.path))
            return []
        is_inside = place.is_deep or folder[5] is not None
        if S_ISDIR(found.st_mode) and self._followed.leads_to_place(item.path, found, rule, is_inside):
            target = os.path.realpath(item.path)
            if rule is None:
                return [(rank, (item.path, ROOT, readable(item.path), None, False, target))]
            key = _key_of(rule.place, item.name, folder_key)
            return [(rank, (item.path, rule.place, root, key, is_temporary, target))]
        if S_ISDIR(found.st_mode) and rule is not None and rule.is_named:
            why = f"{shown_target(item.path)}, as too many do: not followed"
            self._unread(item.path, root, rule.place.kind, key or folder_key, why)
            return []
        self._any_file(folder, item.path, item.name, item.stat(follow_symlinks=False))
        return []

    def _inner(self, folder: _Folder, path: str, name: str) -> list[tuple[int, _Folder]]:
        """A folder in a folder with its place, and its rank: the position of its rule in the table."""
        _, around, root, outer_key, is_temporary, link = folder
        rank, rule = _folder_rule(around, name)
        if rule is not None:
            if rule.place is ROOT:
                return [(rank, (path, ROOT, readable(path), None, is_temporary, link))]
            key = _key_of(rule.place, name, outer_key)
            return [(rank, (path, rule.place, root, key, is_temporary or rule.place.is_temporary, link))]
        if link is not None:
            return []
        if around.is_deep:
            return [(rank, (path, around, root, outer_key, is_temporary, None))]
        # A cache in a cache: `fresh_cache` and force-disabled runs leave whole caches behind.
        place = place_of(path) or UNKNOWN
        own_root = readable(path) if place is ROOT else root
        return [(rank, (path, place, own_root, _key_of(place, name), False, None))]


@lru_cache(maxsize=1 << 12)
def _told(place: Place, name: str) -> NameFacts:
    """The kind, status, reader and key of a name in a place; Triton repeats them in every folder."""
    rule = place.file_rule(name)
    if rule is None:
        return OTHER, "foreign", _read_unknown, None
    match = compiled(rule.pattern).fullmatch(name)
    key = match[1] if match is not None and match.re.groups else None
    return rule.kind, rule.status, None if rule.content is None else CONTENT_READERS[rule.content], key


def _folder_rule(place: Place, name: str) -> tuple[int, FolderRule | None]:
    """The rule of a folder with this name, and its rank in the table."""
    ranked = ((rank, rule) for rank, rule in enumerate(place.folders) if rule.fits(name))
    return next(ranked, (len(place.folders), None))


def _key_of(place: Place, name: str, outer_key: str | None = None) -> str | None:
    """The key of the files in a folder."""
    return outer_key if place.key_of is None else place.key_of(readable(name))


def _read_unknown(entry: EntryRow, path: str, name: str, reading: Reading) -> bool:
    """Read what is shipped by itself, under any name; ignore any other file, even one that may not be read."""
    try:
        head, _ = read_steady(path, HEAD_BYTES)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    kind = shipped_kind(path, head)
    if kind is None:
        return True
    entry.cache, entry.status = kind, "ok"
    return SHIPPED_READERS[kind](entry, path, name, reading)


def _read_link(entry: EntryRow, path: str, name: str, reading: Reading) -> bool:
    """Note the target of a link that is not followed."""
    entry.detail = readable(shown_target(path))
    return True


def _through(target: str | None, read: ReadFile | None) -> ReadFile:
    """A reader of a file behind a link; `target` is None if only a folder above it is the link."""

    def read_behind(entry: EntryRow, path: str, name: str, reading: Reading) -> bool:
        return read is None or read(entry, target or path, name, reading)

    return read_behind


def _unread_because(why: str) -> ReadFile:
    def read(entry: EntryRow, path: str, name: str, reading: Reading) -> bool:
        mark_unreadable(entry, why, None, reading)
        return True

    return read


def _opened(facts: FileFacts, read: ReadFile, path: str, reading: Reading) -> EntryRow | None:
    entry = entry_of(facts)
    return entry if read(entry, path, os.path.basename(path), reading) else None
