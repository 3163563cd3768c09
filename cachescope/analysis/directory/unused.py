"""Orphans in a cache directory, and what can be removed. Both are proven only by files that were read wholly. Nothing is removed here."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Final

from cachescope.analysis.directory.links import is_cpp, is_metadata
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.linked_rows import LinkRow, OrphanRow, RemovableRow
from cachescope.grouping import by_key
from cachescope.keys.paths import is_in_remote_cache
from cachescope.readers.directory.triton_files import MOVED
from cachescope.terms import (
    AOTAUTOGRAD,
    AUTOTUNE,
    BEST_CONFIG,
    BUNDLES,
    CACHES,
    CODE,
    FXGRAPH,
    LOCK,
    OTHER,
    OTHER_TEXT,
    PRECOMPILE,
    TRITON,
    UNREADABLE,
    VLLM_AOT,
    VLLM_ARTIFACT,
)  # fmt: skip

# Kinds that name code. All of them must be read before code is called unused.
_NAMING: Final = (*CACHES, CODE, AUTOTUNE, PRECOMPILE)

_HOUR_NS: Final = 3_600_000_000_000
# torch renames an entry when it is whole; a partial one may be a copy in progress, which takes seconds. A temporary
# is renamed within seconds too, unless its process is stopped. An entry is written after its code, when the graph is
# compiled, which takes hours with max-autotune.
_COPIED_NS: Final = 60_000_000_000
_WRITTEN_NS: Final = _HOUR_NS
_COMPILED_NS: Final = 24 * _HOUR_NS

AGAIN: Final = "; a graph that torch does not cache would have it compiled again"

UNUSED_CODE: Final = "no FX entry uses this code"
UNUSED_KERNEL: Final = "only code that no FX entry uses defines this kernel"
UNUSED_TRITON: Final = (
    "no best configuration and no bundle refers to it: a configuration that lost, or a kernel with only one"
)
NO_KERNEL: Final = "there is no kernel next to it"
FROM_BUNDLE: Final = (
    "torch 2.7 writes it here when it loads a mega-cache, and reads it beside its kernel alone"
)
OTHER_PATHS: Final = "its paths are those of another directory, so Triton compiles again"


class Unread:
    """The parts of cache directories that were not read."""

    def __init__(self, rows: Iterable[EntryRow]) -> None:
        self._kinds: dict[str, set[str]] = defaultdict(set)
        self._whole: set[str] = set()
        self._doubtful: set[str] = set()
        for row in rows:
            root = row.root
            if row.status == UNREADABLE:
                self._kinds[root].add(row.cache)
            if row.cache in CACHES and row.path.startswith(os.path.join(root, row.cache, "")):
                self._whole.add(root)
            if _is_doubtful(row):
                self._doubtful.add(root)

    def may_hold(self, root: str, kind: str) -> bool:
        """Whether a file of a kind may lie unseen in a directory.

        True if only a part was read, such as the folder of one cache, or if a folder, a file of that kind or the
        whole could not be read.
        """
        kinds = self._kinds.get(root, ())
        return root not in self._whole or kind in kinds or (OTHER in kinds and kind != LOCK)

    def has_unread(self, root: str) -> bool:
        """Whether anything in a directory could not be read."""
        return bool(self._kinds.get(root))

    def names_all_code(self, root: str) -> bool:
        """Whether everything that could name code in a directory was read wholly."""
        is_read = self._kinds.get(root, set()) <= {LOCK}
        return is_read and root in self._whole and root not in self._doubtful


def _is_doubtful(row: EntryRow) -> bool:
    """Whether a file may name code that its row does not contain."""
    if row.cache == PRECOMPILE:
        return True  # it contains its graphs, which are not read
    if row.cache == AOTAUTOGRAD and row.code_key is not None:
        return True  # it contains its graphs, and only the code of the forward one is recorded
    if row.status == "ok" or row.cache not in _NAMING or row.is_refused or row.damage == OTHER_TEXT:
        return False
    return not (row.cache == FXGRAPH and row.code_key is not None)


def removable_rows(rows: list[EntryRow], orphans: Iterable[OrphanRow]) -> list[RemovableRow]:
    """The rows of the frame removable, from those of entries and orphans.

    Without these files torch still finds every entry that it finds today, and everything that the entry loads:

    - entries that torch itself refuses at every lookup, because their bytes are no whole pickle. Not entries with damage
      that torch does not see (a different name or key), hostile ones (torch runs them), or ones not read wholly;
    - timings and best configurations that are no JSON object: the first end every compile that asks for them, the others are
      ignored or end it, too (#184096; tried with 2.13);
    - temporaries of dead processes. Not whole ones under a key: torch before 2.13 loads those;
    - code that no entry names, in a directory that was read wholly.

    What lies behind a link may belong to another directory too, so only refused entries can go there.
    An AOTAutograd entry whose FX entry is gone stays: a remote cache may hold that entry, or another compile may store it again.
    Locks stay: another process may be waiting on one. So do best configurations, which a mega-cache writes before
    their kernels, and Triton directories: nothing refers to the directory of a kernel with one configuration.

    What may still be in use by a writer stays: refused entries must be a minute old, temporaries an hour, code a day. A time
    that is missing, 0 or in the future proves no age. For temporaries and code, neither does the modification time alone,
    which any program can set.
    """
    alone = {row.entry: row for row in orphans}
    reasons = ((row, _reason(row, alone.get(row.entry))) for row in rows)
    found = [_removable(row, reason) for row, reason in reasons if reason is not None]
    return [*found, *_compiled_from(rows, found)]


def _reason(row: EntryRow, orphan: OrphanRow | None) -> str | None:
    if row.status == "damaged" and row.cache in (*CACHES, AUTOTUNE, BEST_CONFIG):
        # A file may be being copied here, under its own name.
        is_old = _was_past(row.modified_time, row, _COPIED_NS)
        return f"damaged: {row.damage}" if row.is_refused and is_old else None
    if row.link is not None:
        return None
    if row.status == "temporary":
        is_loaded = row.cache in CACHES and not row.is_refused
        is_old = _is_older(row, _WRITTEN_NS)
        return "left behind by a process that died" if is_old and not is_loaded else None
    # Code is written before its entry, so nothing names it until the compile ends.
    if orphan is None or row.cache != CODE or not _is_older(row, _COMPILED_NS):
        return None
    return orphan.reason + AGAIN


def _is_older(row: EntryRow, age_ns: int) -> bool:
    return _was_past(row.modified_time, row, age_ns) and _was_past(row.changed_time, row, age_ns)


def _was_past(moment: int | None, row: EntryRow, age_ns: int) -> bool:
    """Whether a moment was that long ago when the file was listed."""
    return moment is not None and row.seen_time is not None and 0 < moment < row.seen_time - age_ns


def _compiled_from(rows: list[EntryRow], found: list[RemovableRow]) -> Iterator[RemovableRow]:
    """Other removable files under the key of the code."""
    chosen = {row.entry for row in found}
    keys = {(row.root, row.cache_key) for row in rows if row.entry in chosen and row.cache == CODE} - {
        (row.root, None) for row in rows
    }
    for row in rows:
        is_other = row.cache == CODE and row.entry not in chosen and row.link is None
        if is_other and (row.root, row.cache_key) in keys and _is_older(row, _COMPILED_NS):
            yield _removable(row, "belongs to code that no FX entry uses" + AGAIN)


def _removable(row: EntryRow, reason: str) -> RemovableRow:
    return RemovableRow(row.entry, row.cache, row.path, row.size_bytes or 0, reason)


def orphan_rows(rows: list[EntryRow], links: list[LinkRow]) -> list[OrphanRow]:
    """The rows of the frame orphans, from those of entries and links.

    A file is not called gone if it may lie where something was not read, and not called alone if something that could
    refer to it was not read. So code is judged only in a directory whose FX entries name the code they use, C++ kernels only
    if wrappers define them and all of those are alone, Triton directories only if best configurations or bundles
    name others. Code beside vLLM's artifacts and models is not judged: they hold graphs of their own. What lies in a
    remote cache is not judged: each cache is switched on by itself, and keeps no code.
    """
    unread = Unread(rows)
    found = [*_lost(rows, links, unread), *_alone_code(rows, links, unread), *_alone_triton(rows, links)]
    return sorted(found, key=attrgetter("entry"))


def _orphan(row: EntryRow, reason: str) -> OrphanRow:
    return OrphanRow(row.entry, row.cache, reason)


def _lost(rows: list[EntryRow], links: list[LinkRow], unread: Unread) -> Iterator[OrphanRow]:
    """Files that name a missing file."""
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
    linked = {link.child for link in links if link.child_kind == BEST_CONFIG}
    for row in rows:
        is_best = row.cache == BEST_CONFIG and row.status == "ok" and not is_in_remote_cache(row.path)
        folder = os.path.dirname(row.path)
        if is_best and folder not in with_code and row.entry not in linked:
            yield _orphan(row, FROM_BUNDLE if folder == row.root else NO_KERNEL)


def _gone(link: LinkRow) -> str:
    if link.parent_kind == LOCK:
        return "what it locks is not there"
    what = {CODE: "its generated code", TRITON: "its Triton directory"}.get(link.child_kind, "its FX entry")
    return f"{what} {link.child_key} is gone"


def _alone_code(rows: list[EntryRow], links: list[LinkRow], unread: Unread) -> Iterator[OrphanRow]:
    judged = {row.root for row in rows if row.cache == FXGRAPH and row.code_key is not None}
    of_vllm = _folders_of_models(rows)
    judged = {root for root in judged if unread.names_all_code(root) and os.path.dirname(root) not in of_vllm}
    children = by_key((link.parent, link.child) for link in links if link.child is not None)
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
    """The folders around vLLM's artifacts and models. Their graphs use code from the torch cache beside them."""
    # An artifact lies in <prefix> of a rank, a model in the folder of its rank.
    inner = {os.path.dirname(row.path) for row in rows if row.cache in (VLLM_ARTIFACT, VLLM_AOT)}
    return inner | {*map(os.path.dirname, inner)}


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
    """Triton directories that nothing refers to, by the metadata of their kernel; and files that name other paths."""
    referring = [
        one for one in links if one.child_kind == TRITON and one.child is not None and one.parent_kind != CODE
    ]
    roots = {row.entry: row.root for row in rows}
    speaking = {roots[link.parent] for link in referring}
    # A damaged kernel refers to no other.
    speaking -= {
        row.root
        for row in rows
        if row.status == UNREADABLE or (row.status == "damaged" and row.cache != TRITON)
    }
    # Another directory may refer to this one: TRITON_CACHE_DIR may be shared.
    referred = {link.child_key for link in referring}
    for row in rows:
        is_sound = row.cache == TRITON and row.status == "ok"
        if is_sound and is_metadata(row) and row.root in speaking and row.cache_key not in referred:
            yield _orphan(row, UNUSED_TRITON)
        if is_sound and str(row.detail).endswith(MOVED):
            yield _orphan(row, OTHER_PATHS)
