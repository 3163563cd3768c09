"""Files left alone in a cache directory: their counterpart is gone, or nothing refers to them."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from operator import attrgetter
from typing import Final

import pandas as pd

from cachescope.analysis.directory.links.files import is_cpp
from cachescope.analysis.directory.links.unread import Unread
from cachescope.columns import frame_of, rows_of
from cachescope.frames.directory_rows import EntryRow, LinkRow, OrphanRow
from cachescope.keys.paths import is_in_remote_cache
from cachescope.readers.directory.triton_dir import MOVED
from cachescope.terms import (
    BEST_CONFIG,
    BUNDLES,
    CACHES,
    CODE,
    FXGRAPH,
    LOCK,
    TRITON,
    UNREADABLE,
    VLLM_AOT,
    VLLM_ARTIFACT,
)

UNUSED_CODE: Final = "no FX entry uses this code"
UNUSED_KERNEL: Final = "only code that no FX entry uses defines this kernel"
UNUSED_TRITON: Final = (
    "no best configuration and no bundle refers to it: a configuration that lost, or a kernel with only one"
)
NO_KERNEL: Final = "there is no kernel next to it"
OTHER_PATHS: Final = "its paths are those of another directory, so Triton compiles again"


# An artifact lies in <prefix> of a rank, a model in the folder of its rank.
_LEVELS: Final = 2


def orphans_frame(entries: pd.DataFrame, links: pd.DataFrame) -> pd.DataFrame:
    """The frame orphans, from the frames entries and links.

    A file is not called gone if it may lie where something was not read, and not called alone if something that could
    refer to it was not read. So code is judged only in a directory whose FX entries name the code they use, C++ kernels only
    if wrappers define them and all of those are alone, Triton directories only if best configurations or bundles
    name others. Code beside vLLM's artifacts and models is not judged: they hold graphs of their own. What lies in a
    remote cache is not judged: each cache is switched on by itself, and keeps no code.
    """
    rows = rows_of(entries, EntryRow)
    linked = rows_of(links, LinkRow)
    unread = Unread(rows)
    found = [
        *_lost(rows, linked, unread),
        *_alone_code(rows, linked, unread),
        *_alone_triton(rows, linked),
        *_moved(rows),
    ]
    return frame_of(sorted(found, key=attrgetter("entry")), OrphanRow)


def _orphan(row: EntryRow, reason: str) -> OrphanRow:
    return OrphanRow(row.entry, row.cache, reason)


def _lost(rows: list[EntryRow], links: list[LinkRow], unread: Unread) -> Iterator[OrphanRow]:
    """Files that name another file that is missing."""
    by_number = {row.entry: row for row in rows}
    in_mega_caches = {key for row in rows if row.cache in BUNDLES for key in row.fx_keys}
    for link in links:
        parent = by_number[link.parent]
        # torch writes the file of a kernel again from the wrapper, or loads the kernel from a bundle without one.
        is_judged = link.parent_kind != CODE and not is_in_remote_cache(parent.path)
        if link.child is not None or not is_judged or parent.status != "ok":
            continue
        if link.child_kind in (FXGRAPH, CODE):
            is_unseen = unread.may_hold(parent.root, link.child_kind)
        else:
            is_unseen = unread.has_unread(parent.root)
        if not is_unseen and link.child_key not in in_mega_caches:
            yield OrphanRow(link.parent, link.parent_kind, _gone(link))
    with_code = {os.path.dirname(row.path) for row in rows if row.cache == CODE}
    for row in rows:
        is_best = row.cache == BEST_CONFIG and row.status == "ok" and not is_in_remote_cache(row.path)
        if is_best and os.path.dirname(row.path) not in with_code:
            yield _orphan(row, NO_KERNEL)


def _gone(link: LinkRow) -> str:
    if link.parent_kind == LOCK:
        return "what it locks is not there"
    what = {CODE: "its generated code", TRITON: "its Triton directory"}.get(link.child_kind, "its FX entry")
    return f"{what} {link.child_key} is gone"


def _alone_code(rows: list[EntryRow], links: list[LinkRow], unread: Unread) -> Iterator[OrphanRow]:
    judged = {row.root for row in rows if row.cache == FXGRAPH and row.code_key is not None}
    of_vllm = _folders_of_models(rows)
    judged = {root for root in judged if unread.names_all_code(root) and os.path.dirname(root) not in of_vllm}
    children: dict[int, list[int]] = defaultdict(list)
    for link in links:
        if link.child is not None:
            children[link.parent].append(link.child)
    code = {row.entry for row in rows if row.cache == CODE}
    # Timings name the code that was measured; an entry names its wrapper, and the wrapper its kernels.
    starts = [row.entry for row in rows if row.cache not in (CODE, LOCK)]
    used = _reached([child for start in starts for child in children[start]], children)
    defined = _reached([child for entry in code for child in children[entry]], children)
    # A missing wrapper is written again from its entry, and takes the kernels that exist.
    roots = {row.entry: row.root for row in rows}
    lacking = {roots[link.parent] for link in links if link.child is None and link.parent_kind in CACHES}
    for row in rows:
        is_alone = row.cache == CODE and row.root in judged and row.entry not in used
        if not is_alone or row.status == "temporary":
            continue
        if row.path.endswith(".py"):
            yield _orphan(row, UNUSED_CODE)
        elif is_cpp(row) and row.entry in defined and row.root not in lacking:
            yield _orphan(row, UNUSED_KERNEL)


def _folders_of_models(rows: list[EntryRow]) -> set[str]:
    """The folders around vLLM's artifacts and models: graphs in these use code of the cache of torch beside them."""
    found = set()
    for row in rows:
        path = row.path if row.cache in (VLLM_ARTIFACT, VLLM_AOT) else ""
        for _ in range(_LEVELS if path else 0):
            path = os.path.dirname(path)
            found.add(path)
    return found


def _reached(starts: list[int], children: dict[int, list[int]]) -> set[int]:
    found: set[int] = set()
    waiting = list(starts)
    while waiting:
        entry = waiting.pop()
        if entry not in found:
            found.add(entry)
            waiting += children.get(entry, ())
    return found


def _alone_triton(rows: list[EntryRow], links: list[LinkRow]) -> Iterator[OrphanRow]:
    """Triton directories that nothing refers to, by the metadata of their kernel."""
    referring = [
        link
        for link in links
        if link.child_kind == TRITON and link.child is not None and link.parent_kind != CODE
    ]
    roots = {row.entry: row.root for row in rows}
    speaking = {roots[link.parent] for link in referring}
    speaking -= {row.root for row in rows if row.status in ("damaged", UNREADABLE)}
    referred = {link.child for link in referring}
    for row in rows:
        name = os.path.basename(row.path)
        if row.cache != TRITON or row.status != "ok" or row.root not in speaking:
            continue
        if name.endswith(".json") and not name.startswith("__grp__") and row.entry not in referred:
            yield _orphan(row, UNUSED_TRITON)


def _moved(rows: list[EntryRow]) -> Iterator[OrphanRow]:
    for row in rows:
        if row.cache == TRITON and row.status == "ok" and str(row.detail).endswith(MOVED):
            yield _orphan(row, OTHER_PATHS)
