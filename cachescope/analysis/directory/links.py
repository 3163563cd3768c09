"""Which files of a cache directory belong together, from the AOTAutograd entry to the compiled kernel.

AOTAutograd entry -> FX entries (the keys stored in it), FX entry -> generated code (the code key stored in it), wrapper ->
kernels (their source in it), kernel -> best configuration -> Triton directory, lock -> the file it guards (its name). Links
stay within one cache directory; only Triton directories are looked for in the others that were read.
"""

from __future__ import annotations

import base64
import contextlib
import os
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Final

from cachescope.details import HashDetails
from cachescope.frames.context_rows import ContextRow
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.linked_rows import LinkRow
from cachescope.grouping import by_key
from cachescope.keys.hashing import best_config_name
from cachescope.terms import AUTOTUNE, BEST_CONFIG, CACHES, CODE, FXGRAPH, HASH, LOCK, TRITON, UNREADABLE

if TYPE_CHECKING:
    from cachescope.readers.assemble import Tables

_THERE: Final = ("ok", "damaged", UNREADABLE)


class Files:
    """Rows by key, by kernel, by folder and by Triton hash.

    Unreadable files are included; no link leads to temporaries or to files that are not torch's.
    """

    def __init__(self, rows: Iterable[EntryRow]) -> None:
        rows = self.rows = [row for row in rows if row.status in _THERE and row.cache != LOCK]
        code = [row for row in rows if row.cache == CODE]
        python = [row for row in code if is_python(row)]
        kernels = ((row, key) for row in code if is_cpp(row) for key in row.kernel_keys)
        self._of_key = by_key(
            ((row.root, row.cache, row.cache_key), row) for row in rows if row.cache_key is not None
        )
        self._of_kernel = by_key(((row.root, key), row) for row, key in kernels)
        self.triton = _nearest(row for row in rows if is_metadata(row))
        """The metadata of the kernels in a Triton directory: in the root itself, else in the first other that has them.

        ``TRITON_CACHE_DIR`` may point anywhere.
        """
        self.python = _nearest(python)
        """The Python files of a code key: those in a directory, else those in the first that has some."""
        self.kernels_in = by_key((os.path.dirname(row.path), row) for row in python)
        # The folders in which torch would write the kernels that wrappers hold, and those wrappers.
        self.defined_in = by_key(
            ((row.root, key[1:3]), (key, row)) for row in python for key in row.kernel_keys
        )
        self.best_configs_in = by_key(
            (os.path.dirname(row.path), row) for row in rows if row.cache == BEST_CONFIG
        )
        self.roots_with_triton = {row.root for row in rows if row.cache == TRITON}

    def of_key(self, root: str, kind: str, key: str) -> list[EntryRow]:
        """The files of a kind under a key in a directory."""
        return self._of_key.get((root, kind, key), [])

    def links(self, parent: EntryRow, kind: str, key: str, known_by: str) -> Iterator[LinkRow]:
        """The links from a file to the files under a key that it names."""
        return _links(parent, kind, key, known_by, self.of_key(parent.root, kind, key))

    def kernels(self, root: str, key: str) -> list[EntryRow]:
        """The files of a wrapper's kernel: the Python file with that key, the C++ files with that source."""
        python = [row for row in self.of_key(root, CODE, key) if is_python(row)]
        return python or self._of_kernel.get((root, key), [])


def _nearest(rows: Iterable[EntryRow]) -> Callable[[str, str], list[EntryRow]]:
    """Rows by directory and key: in the directory itself, else in the first that has the key. There may be a thousand copies."""
    found = by_key(((row.cache_key or "", row.root), row) for row in rows)
    first = dict(reversed(found))
    return lambda root, key: found.get((key, root)) or found.get((key, first.get(key, "")), [])


def is_python(row: EntryRow) -> bool:
    """Whether a file of generated code is a wrapper, or a kernel in Python."""
    return row.path.endswith(".py") and row.cache_key is not None


def is_cpp(row: EntryRow) -> bool:
    """Whether a file of generated code is C++."""
    return row.path.endswith(".cpp")


def is_metadata(row: EntryRow) -> bool:
    """Whether a file is the metadata of a kernel that Triton compiled."""
    name = os.path.basename(row.path)
    return row.cache == TRITON and name.endswith(".json") and not name.startswith("__grp__")


WINNER: Final = "triton_cache_hash in the best configuration"
BUNDLE: Final = "kernel_hash in the bundle of the entry"
LOCATION: Final = "the source location in its .ttir"
ELSEWHERE: Final = ", in another directory"
NAME: Final = "its name: the hash of the kernel's file name and the cache key tag"
NAME_OF_TORCH: Final = f"{NAME}, and of torch itself"
KERNELS_NAME: Final = "its name, which is that of the kernel's file"
ONE_IN_FOLDER: Final = (
    "the folder, in which there is one Triton kernel; torch's own key, part of the name, is not known"
)
IN_WRAPPER: Final = (
    "its folder: that of the file that torch makes of the kernel, whose source is in the wrapper"
)
COMPILED_FROM: Final = "the source location in the .ttir of its triton_cache_hash"

TRITON_SOURCE: Final = "the source of the kernel in the wrapper: its hash is the name of the file"
CPP_SOURCE: Final = (
    "the source of the kernel in the wrapper, with which the file begins; its compile command is not stored"
)
NOT_THERE: Final = "the source of a kernel in the wrapper, of which there is no file"
INCLUDE: Final = "#include in the file"
SAME_NAME: Final = "the name, which what is compiled from it shares"
CHOICE: Final = "the hash in the name of the choice"

# torch/_inductor/select_algorithm.py, `hash_key` of the callers of templates: "<name>-<hash>".
_CHOICE: Final = re.compile(rf"(?:.*-)?(c{HASH})", re.DOTALL)

_TORCH_KEY_BYTES: Final = 32


def _links(
    parent: EntryRow, kind: str, key: str, known_by: str, children: Sequence[EntryRow]
) -> Iterator[LinkRow]:
    """For a key of a kind that a file names, and the files of that key: a row for each, or one without a child if there is none."""
    for child in children:
        yield LinkRow(parent.entry, parent.cache, child.entry, child.cache, key, known_by)
    if not children:
        yield LinkRow(parent.entry, parent.cache, None, kind, key, known_by)


Kernels = dict[str, EntryRow]
"""By the key of a kernel's source, the file that holds the source: its own, else a wrapper."""


def triton_links(files: Files, tags: Sequence[str], torch_keys: Sequence[bytes]) -> Iterator[LinkRow]:
    """The links to best configurations and to Triton directories.

    `tags` and `torch_keys` are the parts of a best configuration's name besides the kernel, as far as any source has them.
    """
    # The ``.ttir`` of each Triton directory. It names the file that it was compiled from.
    compiled = (row for row in files.rows if row.cache == TRITON and row.code_key is not None)
    made_from = {row.cache_key: row for row in compiled if row.cache_key is not None}
    for folder, best_configs in files.best_configs_in.items():
        files_of = {
            row.cache_key or "": row for row in files.kernels_in.get(folder, []) if row.name is not None
        }
        defined = files.defined_in.get((best_configs[0].root, os.path.basename(folder)), ())
        kernels = {**dict(defined), **files_of}
        named = _names(kernels, tags, torch_keys)
        for best in best_configs:
            name = os.path.basename(best.path)
            matched = named.get(name) or _weaker(kernels, best, made_from)
            if matched is not None:
                kernel, known_by = matched
                yield from _links(kernel, BEST_CONFIG, name, known_by, [best])
    for row in files.rows:
        if row.status == "ok" and row.triton_hashes and row.cache in (*CACHES, BEST_CONFIG):
            yield from _to_directories(files, row)
    for triton_hash, row in made_from.items():
        for kernel in files.python(row.root, row.code_key or ""):
            yield from _links(kernel, TRITON, triton_hash, LOCATION, files.triton(row.root, triton_hash))


def _to_directories(files: Files, row: EntryRow) -> Iterator[LinkRow]:
    for triton_hash in row.triton_hashes:
        found = files.triton(row.root, triton_hash)
        known_by = WINNER if row.cache == BEST_CONFIG else BUNDLE
        if found:
            elsewhere = "" if found[0].root == row.root else ELSEWHERE
            yield from _links(row, TRITON, triton_hash, known_by + elsewhere, found)
        elif row.cache == BEST_CONFIG and row.root in files.roots_with_triton:
            # A bundle contains its own copy. If no Triton directory was read, the copy may be anywhere.
            yield from _links(row, TRITON, triton_hash, known_by, [])


def _names(
    kernels: Kernels, tags: Sequence[str], torch_keys: Sequence[bytes]
) -> dict[str, tuple[EntryRow, str]]:
    found: dict[str, tuple[EntryRow, str]] = {}
    for key, kernel in kernels.items():
        file = f"{key}.py"
        # torch 2.5 named it after the kernel.
        found[f"{key}.best_config"] = kernel, KERNELS_NAME
        for tag in tags:
            found[best_config_name(file, tag)] = kernel, NAME
            for torch_key in torch_keys:
                found[best_config_name(file, tag, torch_key)] = kernel, NAME_OF_TORCH
    return found


def _weaker(kernels: Kernels, best: EntryRow, made_from: dict[str, EntryRow]) -> tuple[EntryRow, str] | None:
    compiled = {made_from[key].code_key for key in best.triton_hashes if key in made_from}
    certain = [kernel for key, kernel in kernels.items() if key in compiled]
    if len(certain) == 1:
        return certain[0], COMPILED_FROM
    if len(kernels) != 1:
        return None
    ((key, kernel),) = kernels.items()
    return kernel, ONE_IN_FOLDER if key == kernel.cache_key else IN_WRAPPER


def code_links(files: Files) -> Iterator[LinkRow]:
    """The links whose parent is a file of generated code."""
    for row in files.rows:
        if row.cache != CODE or row.status == UNREADABLE or row.cache_key is None:
            continue
        if is_python(row):
            for key in row.kernel_keys:
                yield from _kernel(files, row, key)
        elif is_cpp(row):
            if row.code_key is not None:
                yield from files.links(row, CODE, row.code_key, INCLUDE)
            compiled = [other for other in files.of_key(row.root, CODE, row.cache_key) if other is not row]
            if compiled:
                yield from _links(row, CODE, row.cache_key, SAME_NAME, compiled)


def _kernel(files: Files, row: EntryRow, key: str) -> Iterator[LinkRow]:
    found = [other for other in files.kernels(row.root, key) if other is not row]
    if not found:
        yield from _links(row, CODE, key, NOT_THERE, [])
    elif is_python(found[0]):
        yield from _links(row, CODE, key, TRITON_SOURCE, found)
    else:
        # Several commands may have compiled one source: which kernel a process takes is not stored.
        many = "" if len(found) == 1 else f"; one of {len(found)} compiled by different commands"
        yield from _links(row, CODE, key, CPP_SOURCE + many, found)


def choice_links(files: Files, timings: Iterable[tuple[int, str]]) -> Iterator[LinkRow]:
    """Links from a file of timings to the code of its choices, where that code still exists.

    `timings` are the entry and the choice of each. The hash covers the source alone; a choice from a library has the hash of its name, and no file.
    """
    of_entry = {row.entry: row for row in files.rows if row.cache == AUTOTUNE}
    seen: set[tuple[int, str]] = set()
    for entry, choice in timings:
        parent = of_entry.get(entry)
        named = _CHOICE.fullmatch(choice)
        if parent is None or named is None or (entry, named[1]) in seen:
            continue
        seen.add((entry, named[1]))
        if found := files.kernels(parent.root, named[1]):
            yield from _links(parent, CODE, named[1], CHOICE, found)


def link_rows(tables: Tables) -> list[LinkRow]:
    """The rows of the frame links; a reference to a missing file has one without a child."""
    entries = tables.entries.rows
    files, tags = Files(entries), _cache_key_tags(entries, tables.hash_details)
    return [
        *_entry_links(entries, files),
        *code_links(files),
        *triton_links(files, tags, _torch_keys(tables.contexts.rows)),
        *choice_links(files, ((row.entry, row.choice) for row in tables.autotune.rows)),
        *_lock_links(entries, files),
    ]


def _lock_links(rows: list[EntryRow], files: Files) -> Iterator[LinkRow]:
    """Links from locks to the files in their cache directory that match the keys of their names.

    torch/_inductor/codecache.py locks ``<key>``, PGO ``code_state_….pkl``, the on-disk cache the first four
    characters of a name; the caching package locks a folder with ``dir.lock``.
    """
    of_entry = {row.entry: row for row in files.rows}
    folders = by_key((os.path.dirname(row.path), row) for row in files.rows)
    named = ((row, name) for row in files.rows for name in (os.path.basename(row.path), row.cache_key))
    names_in = by_key((row.root, (name, row.entry)) for row, name in named if name is not None)
    for names in names_in.values():
        names.sort()
    for row in rows:
        if row.cache != LOCK or row.status != "ok" or row.cache_key is None:
            continue
        names, key = names_in.get(row.root, []), row.cache_key
        begin = bisect_left(names, (key, -1))
        numbers = takewhile(lambda one: one[0].startswith(key), islice(names, begin, None))  # noqa: B023
        found = [of_entry[number] for number in dict.fromkeys(number for _, number in numbers)]
        if key == "dir":
            found = folders.get(os.path.dirname(row.path), [])
        yield from _links(row, LOCK, key, "the name of the lock", found)


def _entry_links(rows: list[EntryRow], files: Files) -> Iterator[LinkRow]:
    for row in rows:
        # torch may still load files called damaged or temporary. A file that was not read at all names nothing.
        match row.cache:
            case "aotautograd" if row.code_key is not None:
                # The entry itself contains its graphs: torch._functorch.config.bundled_autograd_cache.
                yield from files.links(row, CODE, row.code_key, "cache_key of the graph bundled in the entry")
            case "aotautograd":
                for key in row.fx_keys:
                    yield from files.links(row, FXGRAPH, key, "fx_graph_cache_info in the entry")
            case "fxgraph" if row.code_key is not None:
                yield from files.links(row, CODE, row.code_key, "cache_key in the entry")


def _cache_key_tags(entries: list[EntryRow], details: HashDetails) -> list[str]:
    # ``torch.compiler.config.cache_key_tag`` is a field of every FX key from 2.6; entries hold it from 2.8.
    sets = {row.detail_set for row in entries}
    return sorted({"", *(details.text(one, "cache_key_tag") or "" for one in sets)})


def _torch_keys(contexts: Iterable[ContextRow]) -> list[bytes]:
    # torch/_inductor/runtime/caching/context.py, `_CompileContext.torch_version_hash`: base64 of `torch_key()`.
    keys = set()
    for text in {row.torch_version_hash for row in contexts if row.torch_version_hash is not None}:
        with contextlib.suppress(ValueError):
            keys.add(base64.b64decode(text, validate=True))
    return sorted(key for key in keys if len(key) == _TORCH_KEY_BYTES)
