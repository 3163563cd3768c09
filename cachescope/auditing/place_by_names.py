"""Determines which place of a cache a folder is, only by the names in it: no link is followed."""

from __future__ import annotations

import re
from typing import Final

from cachescope.auditing.tree import Item, Tree, below
from cachescope.keys.vllm import RANK_FOLDER
from cachescope.readers.directory.place_of import KEY_FOLDERS
from cachescope.readers.directory.places import (
    AOT_GRAPHS,
    CODE_FOLDER,
    DYNAMO,
    FX_GRAPHS,
    MEMOIZED,
    PRECOMPILE_FOLDER,
    ROOT,
    SYSTEM_CACHE,
    TRITON_DEVICES,
    TRITON_FOLDER,
    TRITON_KEY,
    TRITON_KEYS,
    Place,
)
from cachescope.terms import AOT_KEY, FX_KEY, HASH

_TRITON_KEY: Final = re.compile(TRITON_KEY)
_CODE: Final = re.compile(rf"c{HASH}\..+", re.DOTALL)
_PAIR: Final = re.compile("[a-z2-7]{2}")
_OF_ROOT: Final = frozenset({"fxgraph", "aotautograd", "triton", "dynamo"})
_OF_SYSTEM: Final = frozenset({"inductor_on_disk_cache", "on_disk_cache", "dcache_dump", "should_pad"})
_BY_NAME: Final = {"fxgraph": FX_GRAPHS, "aotautograd": AOT_GRAPHS, "triton": TRITON_DEVICES}


def place_here(tree: Tree, folder: Item) -> Place | None:
    """The place that a folder is; None if neither its name nor the names in it identify one."""
    items = list(below(tree, folder))
    folders = [item for item in items if item.is_folder or item.target is not None]
    inner = {item.name for item in folders}
    if folder.name == "torch_aot_compile" or any(RANK_FOLDER.fullmatch(name) for name in inner):
        # vLLM's folders, whose names look like keys of Triton: torch's caches lie below.
        return None
    for pattern, place in KEY_FOLDERS:
        if pattern.fullmatch(folder.name):
            is_package = place is TRITON_FOLDER and [item.name for item in items] == ["entry"]
            return PRECOMPILE_FOLDER if is_package else place
    if inner & _OF_ROOT:
        return ROOT
    if folder.name == "dynamo":
        # Its packages have names that look like keys of Triton.
        return DYNAMO
    for pattern, place in ((FX_KEY, FX_GRAPHS), (AOT_KEY, AOT_GRAPHS), (_TRITON_KEY, TRITON_KEYS)):
        if any(pattern.fullmatch(name) for name in inner):
            return place
    if folder.name in _BY_NAME:
        return _BY_NAME[folder.name]
    if inner & _OF_SYSTEM:
        return SYSTEM_CACHE
    return _by_files([item for item in items if not item.is_folder]) or _by_folders(tree, folders)


def _by_files(items: list[Item]) -> Place | None:
    names = [item.name for item in items]
    for pattern, place in (
        (_CODE, CODE_FOLDER),
        (re.compile(r"[0-9a-f]{64}\.best_config"), CODE_FOLDER),
        (re.compile(r"code_state_.*\.pkl", re.DOTALL), DYNAMO),
        (re.compile(r"memoizer_cache\.json|configs_[0-9a-f]{8}\.json"), ROOT),
        (re.compile("[0-9a-f]{64}"), SYSTEM_CACHE),
        (re.compile(r"[0-9a-f]{32}|dir\.lock"), MEMOIZED),
    ):
        if any(pattern.fullmatch(name) for name in names):
            return place
    return None


def _by_folders(tree: Tree, folders: list[Item]) -> Place | None:
    for item in folders:
        if not item.is_folder:
            continue
        if _PAIR.fullmatch(item.name):
            inside = list(below(tree, item))
            if any(FX_KEY.fullmatch(one.name) for one in inside):
                return FX_GRAPHS
            if any(_CODE.fullmatch(one.name) for one in inside):
                return ROOT
        if item.name == "cache" and any(
            one.name in _OF_SYSTEM or re.fullmatch("[0-9a-f]{64}", one.name) for one in below(tree, item)
        ):
            return ROOT
    return None
