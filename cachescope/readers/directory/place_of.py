"""Determines which place of a cache a path is: by the names in and around it, through links.

torch opens whatever a path leads to, so folders and entries may be links to a bigger disk. A stray link may
lead to ``/``. So a link is followed only if its name or the target's contents identify a place, and behind a link
only folders in the table are walked. No place contains itself, so the walk ends.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from cachescope.readers.directory.places import (
    AOT_GRAPHS,
    AOT_KEY_FOLDER,
    BEST_CONFIG_FILE,
    CODE_FILES,
    CODE_FOLDER,
    DYNAMO,
    FX_GRAPHS,
    FX_KEY_FOLDER,
    LOCKS,
    MEMOIZED,
    PRECOMPILE_FOLDER,
    ROOT,
    SYSTEM_CACHE,
    TRITON_DEVICES,
    TRITON_FOLDER,
    TRITON_KEY,
    TRITON_KEYS,
    FileRule,
    FolderRule,
    List,
    Listed,
    Place,
    Rule,
    first_items,
)
from cachescope.readers.directory.vllm_places import vllm_place_of, vllm_place_of_file
from cachescope.terms import AOT_KEY, AOTAUTOGRAD, FX_KEY, FXGRAPH, HASH

_PACKAGE: Final = "entry"
_LEVELS: Final = 4

_OF_TRITON: Final = re.compile(TRITON_KEY)
_KEY_FOLDERS: Final = ((FX_KEY, FX_KEY_FOLDER), (AOT_KEY, AOT_KEY_FOLDER), (_OF_TRITON, TRITON_FOLDER))

# A single such name identifies the folder around it.
_DISTINCTIVE_FOLDERS: Final = (
    (FX_KEY, FX_GRAPHS),
    (AOT_KEY, AOT_GRAPHS),
    (_OF_TRITON, TRITON_KEYS),
    (re.compile("(?:inductor_)?on_disk_cache|dcache_dump|should_pad"), SYSTEM_CACHE),
    (re.compile("code_state_.*", re.DOTALL), DYNAMO),  # of a job whose id has a "/", up to 2.6
)
_DISTINCTIVE_FILES: Final = (
    (re.compile(rf"c{HASH}\.[^.].*(?<!\.lock)", re.DOTALL), CODE_FOLDER),
    (re.compile(rf"c{HASH}\.lock"), LOCKS),
    (re.compile("[0-9a-f]{64}"), SYSTEM_CACHE),
    (re.compile(r"code_state_.*\.pkl", re.DOTALL), DYNAMO),
    (re.compile(r"memoizer_cache\.json|configs_[0-9a-f]{8}\.json"), ROOT),
    (re.compile(r"[0-9a-f]{32}|dir\.lock"), MEMOIZED),
)
# A folder with such a name that is such a place identifies the folder around it.
_DISTINCTIVE_PLACES: Final = (
    (re.compile(FXGRAPH), (FX_GRAPHS,), ROOT),
    (re.compile(AOTAUTOGRAD), (AOT_GRAPHS,), ROOT),
    (re.compile("[a-z2-7]{2}"), (CODE_FOLDER,), ROOT),
    (re.compile("[a-z2-7]{2}"), (FX_GRAPHS,), FX_GRAPHS),
    (re.compile("triton"), (TRITON_KEYS, TRITON_DEVICES), ROOT),
    (re.compile(r"\d+"), (TRITON_KEYS,), TRITON_DEVICES),
    (re.compile("cache"), (SYSTEM_CACHE,), ROOT),
    (re.compile("dynamo"), (DYNAMO,), ROOT),
    (re.compile("locks"), (LOCKS,), ROOT),
    (re.compile("precompiled_headers"), (CODE_FOLDER, LOCKS), ROOT),
    (re.compile(".+", re.DOTALL), (MEMOIZED,), SYSTEM_CACHE),  # must be last: no link is followed for it
)
# A folder that may not be listed: it is not known to be empty, and only the names around it can identify it.
_SHUT: Final = Place("")

# A folder with a thousand links to it would be read a thousand times.
_MOST_TIMES: Final = 16


def looks_like_cache_dir(path: str) -> bool:
    """Whether a path is a cache root, a Triton directory, a folder of one, or a file in one.

    Names decide (`place_of`), above all keys, wherever they are.
    """
    if os.path.isdir(path):
        return place_of(path) is not None
    return os.path.isfile(path) and place_of_file(path) is not None


def place_of(path: str, items: List = first_items) -> Place | None:
    """The place that a folder is; None if nothing in it identifies one."""
    # vLLM's first: a single check is enough, even for a thousand folders, and some have names that could be Triton's.
    if (of_vllm := vllm_place_of(path, items)) is not None:
        return of_vllm
    name = os.path.basename(os.path.abspath(path))
    for pattern, place in _KEY_FOLDERS:
        if pattern.fullmatch(name):
            return PRECOMPILE_FOLDER if place is TRITON_FOLDER and _is_package(path, items) else place
    return next((place for place in _places_of(path, _LEVELS, items) if place is not _SHUT), None)


def place_of_file(path: str) -> tuple[Place, FileRule] | None:
    """The place and rule of a single file, by its own name and the names of the two folders above it."""
    absolute = os.path.abspath(path)
    name, folder = os.path.basename(absolute), os.path.dirname(absolute)
    parent, above = os.path.basename(folder), os.path.basename(os.path.dirname(folder))
    for pattern, place in _KEY_FOLDERS:
        if pattern.fullmatch(parent):
            is_package = place is TRITON_FOLDER and name == _PACKAGE
            return _ruled(PRECOMPILE_FOLDER if is_package else place, name)
    if parent == "cache":
        return _ruled(SYSTEM_CACHE, name)
    if above == "cache":
        # `cache` may also be the name of a root that contains its own folders.
        for rule in SYSTEM_CACHE.folders:
            if rule.match(parent) and (found := _ruled(rule.place, name)) is not None:
                return found
    if parent == "dynamo":
        return _ruled(DYNAMO, name)
    if any(rule.match(name) for rule in CODE_FILES):
        return _ruled(CODE_FOLDER, name)
    found = _ruled(ROOT, name)
    return found if found is not None and found[1].content is not None else vllm_place_of_file(path)


def _ruled(place: Place, name: str) -> tuple[Place, FileRule] | None:
    rule = place.file_rule(name)
    return None if rule is None else (place, rule)


def _is_package(path: str, items: List) -> bool:
    """Whether a folder that Triton could have named so is one of Dynamo's: ``DiskDynamoStore`` of torch/_dynamo/package.py."""
    with contextlib.suppress(OSError):
        return any(item.name == _PACKAGE and not item.is_dir() for item in items(path))
    return False


def is_linked_root(path: str) -> bool:
    """Whether a link leads to a cache root; only the folders of graphs are checked, since it may lead anywhere."""
    return any(
        next(_places_of(os.path.join(path, name), 2, first_items, is_linked=True), None) is place
        for name, place in ((FXGRAPH, FX_GRAPHS), (AOTAUTOGRAD, AOT_GRAPHS))
    )


def holds_file_of(path: str, place: Place) -> bool:
    """Whether a folder contains a file that the rules of a place read."""
    read = [rule for rule in place.files if rule.content is not None]
    with contextlib.suppress(OSError):
        return any(rule.match(item.name) for item in first_items(path) for rule in read)
    return False


def _places_of(path: str, levels: int, items_in: List, is_linked: bool = False) -> Iterator[Place]:
    try:
        items = items_in(path)
    except PermissionError:
        yield _SHUT
        return
    except OSError:
        return
    folders = []
    for item in items:
        is_folder = _is_folder(item)
        for pattern, place in _DISTINCTIVE_FOLDERS if is_folder else _DISTINCTIVE_FILES:
            if pattern.fullmatch(item.name):
                yield DYNAMO if place is TRITON_KEYS and _is_package(item.path, items_in) else place
        if is_folder:
            folders.append(item)
    is_shut = False
    for item in folders if levels > 1 else ():
        beyond = is_linked or item.is_symlink()
        distinctive = _DISTINCTIVE_PLACES[:-1] if beyond else _DISTINCTIVE_PLACES
        matching = [rule for rule in distinctive if rule[0].fullmatch(item.name)]
        if beyond and not matching:
            continue
        inner = next(_places_of(item.path, levels - 1, items_in, beyond), None)
        if inner is _SHUT:
            is_shut = True
            if item.name in (FXGRAPH, AOTAUTOGRAD):
                yield ROOT
        for _, places, around in matching:
            if inner in places and (item.name != "cache" or _is_root_but_for_cache(items)):
                yield around
    # A root may have them, too.
    if any(BEST_CONFIG_FILE.match(item.name) for item in items):
        yield CODE_FOLDER
    if is_shut:
        yield _SHUT


def _is_folder(item: Listed) -> bool:
    """Whether an item is a folder, or a link to a folder with the name of one of torch's places."""
    try:
        if item.is_symlink():
            rules = (*_DISTINCTIVE_FOLDERS, *_DISTINCTIVE_PLACES[:-1])
            return any(rule[0].fullmatch(item.name) for rule in rules) and item.is_dir()
        return item.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _is_root_but_for_cache(items: Sequence[Listed]) -> bool:
    """Whether all names fit a cache root: `OnDiskCache` also writes a ``cache`` into ``/tmp`` itself."""
    known: list[Rule] = [*ROOT.files, *ROOT.folders]
    return all(any(rule.match(item.name) for rule in known) for item in items)


class FollowedLinks:
    """The links followed in one walk."""

    def __init__(self, path: str) -> None:
        self._top = path
        self._times: Counter[tuple[int, int]] = Counter()

    def leads_to_place(
        self, path: str, found: os.stat_result, rule: FolderRule | None, is_inside: bool
    ) -> bool:
        """Whether a link to a folder is followed."""
        if rule is None:
            is_followed = not is_inside and not self._is_read_anyway(path) and is_linked_root(path)
        else:
            is_followed = rule.is_named or holds_file_of(path, rule.place)
        real = found.st_dev, found.st_ino
        if is_followed:
            self._times[real] += 1
        return is_followed and self._times[real] <= _MOST_TIMES

    def _is_read_anyway(self, path: str) -> bool:
        """Whether the link leads into the directory that is walked, or to a folder above it."""
        top, real = os.path.realpath(self._top), os.path.realpath(path)
        return os.path.commonpath([top, real]) in (top, real)


def shown_target(path: str) -> str:
    """The target of a link for a message."""
    try:
        return f"a link to {os.readlink(path)}"
    except OSError:
        return "a link"
