"""Which files of a cache directory belong together, from the AOTAutograd entry to the compiled kernel.

AOTAutograd entry -> FX entries (the keys stored in it), FX entry -> generated code (the code key stored in it), wrapper ->
kernels (their source in it), kernel -> best configuration -> Triton directory, lock -> the file it guards (its name). Links
stay within one cache directory; only Triton directories are looked for in the others that were read.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator
from typing import Final

import pandas as pd

from cachescope.analysis.directory.links.code import choice_links, code_links
from cachescope.analysis.directory.links.files import Files
from cachescope.analysis.directory.links.link import Link
from cachescope.analysis.directory.links.lock_owners import LockOwners
from cachescope.analysis.directory.links.triton import NameParts, triton_links
from cachescope.columns import frame_of, plain_columns, rows_of
from cachescope.details import HashDetails
from cachescope.frames.directory_rows import EntryRow, LinkRow
from cachescope.terms import CODE, FXGRAPH, LOCK

_TORCH_KEY_BYTES: Final = 32


def links_frame(
    entries: pd.DataFrame,
    autotune: pd.DataFrame | None = None,
    contexts: pd.DataFrame | None = None,
    details: HashDetails | None = None,
) -> pd.DataFrame:
    """The frame links; a reference to a missing file has a row without a child.

    Parameters
    ----------
    entries : DataFrame
    autotune : DataFrame, optional
        Its choices are looked for among the generated code.
    contexts : DataFrame, optional
        Snapshots of isolation contexts, which hold torch's own key: part of the name of a best configuration
        from 2.8 (`best_config_name`).
    details : HashDetails, optional
        Source of cache key tags, another part of that name.
    """
    torch_keys = [] if contexts is None else _torch_keys(contexts)
    parts = NameParts(_cache_key_tags(entries, details), torch_keys)
    timings: list[tuple[int, str]] = []
    if autotune is not None:
        timings = list(zip(*plain_columns(autotune, ["entry", "choice"]).values(), strict=True))
    made = all_links(rows_of(entries, EntryRow), timings, parts)
    return frame_of((row for link in made for row in link.rows()), LinkRow)


def all_links(rows: list[EntryRow], timings: Iterable[tuple[int, str]], parts: NameParts) -> Iterator[Link]:
    """The links between files; `timings` are the entry and the choice of each."""
    files = Files(rows)
    yield from _entry_links(rows, files)
    yield from code_links(files)
    yield from triton_links(files, parts)
    yield from choice_links(files, timings)
    owners = LockOwners(files.rows)
    for row in rows:
        if row.cache == LOCK and row.status == "ok" and row.cache_key is not None:
            key = row.cache_key
            yield Link(row, LOCK, key, "the name of the lock", owners.of(row, key))


def _entry_links(rows: list[EntryRow], files: Files) -> Iterator[Link]:
    for row in rows:
        # torch may still load files called damaged or temporary; a file that was not read at all names nothing.
        root, code_key = row.root, row.code_key
        match row.cache:
            case "aotautograd" if code_key is not None:
                # Its graphs are in the entry itself: torch._functorch.config.bundled_autograd_cache.
                known_by = "cache_key of the graph bundled in the entry"
                yield Link(row, CODE, code_key, known_by, files.of_key(root, CODE, code_key))
            case "aotautograd":
                for key in row.fx_keys:
                    found = files.of_key(root, FXGRAPH, key)
                    yield Link(row, FXGRAPH, key, "fx_graph_cache_info in the entry", found)
            case "fxgraph" if code_key is not None:
                yield Link(row, CODE, code_key, "cache_key in the entry", files.of_key(root, CODE, code_key))


def _cache_key_tags(entries: pd.DataFrame, details: HashDetails | None) -> list[str]:
    # ``torch.compiler.config.cache_key_tag`` is a field of every FX key from 2.6; entries hold it from 2.8.
    tags = {""}
    for detail_set in entries["detail_set"].dropna().unique() if details is not None else ():
        assert details is not None
        tag = details.detail(int(detail_set), "cache_key_tag")
        if tag is not None:
            tags.add(tag.value_text)
    return sorted(tags)


def _torch_keys(contexts: pd.DataFrame) -> list[bytes]:
    # torch/_inductor/runtime/caching/context.py, `_CompileContext.torch_version_hash`: base64 of `torch_key()`.
    keys = set()
    for text in contexts["torch_version_hash"].dropna():
        try:
            key = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            continue
        if len(key) == _TORCH_KEY_BYTES:
            keys.add(key)
    return sorted(keys)
