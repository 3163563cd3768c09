"""Links of Triton: a kernel's best configurations, the directories compiled from it, and what refers to a directory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from cachescope.analysis.directory.links.files import Files
from cachescope.analysis.directory.links.link import Link
from cachescope.frames.directory_rows import EntryRow
from cachescope.keys.hashing import best_config_name
from cachescope.terms import BEST_CONFIG, CACHES, TRITON

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
COMPILED_FROM: Final = "the source location in the .ttir of its triton_cache_hash"


@dataclass(frozen=True, slots=True)
class NameParts:
    """The parts of a best configuration's name besides the kernel, as far as any source contains them."""

    cache_key_tags: Sequence[str] = ("",)
    torch_keys: Sequence[bytes] = ()


def triton_links(files: Files, parts: NameParts) -> Iterator[Link]:
    """All links to best configurations and to Triton directories."""
    made_from = _made_from(files)
    for folder, best_configs in files.best_configs_in.items():
        yield from _of_folder(files.kernels_in.get(folder, []), best_configs, parts, made_from)
    for row in files.rows:
        if row.status == "ok" and row.triton_hashes and row.cache in (*CACHES, BEST_CONFIG):
            yield from _to_directories(files, row)
    for triton_hash, row in made_from.items():
        for kernel in files.python(row.root, row.code_key or ""):
            yield Link(kernel, TRITON, triton_hash, LOCATION, files.triton(row.root, triton_hash))


def _made_from(files: Files) -> dict[str, EntryRow]:
    """The ``.ttir`` of each Triton directory that names the file it was compiled from."""
    compiled = (row for row in files.rows if row.cache == TRITON and row.code_key is not None)
    return {row.cache_key: row for row in compiled if row.cache_key is not None}


def _to_directories(files: Files, row: EntryRow) -> Iterator[Link]:
    for triton_hash in row.triton_hashes:
        found = files.triton(row.root, triton_hash)
        known_by = WINNER if row.cache == BEST_CONFIG else BUNDLE
        if found:
            elsewhere = "" if found[0].root == row.root else ELSEWHERE
            yield Link(row, TRITON, triton_hash, known_by + elsewhere, found)
        elif row.cache == BEST_CONFIG and row.root in files.roots_with_triton:
            # A bundle contains its own copy. If no Triton directory was read, the copy may be anywhere.
            yield Link(row, TRITON, triton_hash, known_by, [])


def _of_folder(
    code: list[EntryRow], best_configs: list[EntryRow], parts: NameParts, made_from: dict[str, EntryRow]
) -> Iterator[Link]:
    kernels = [row for row in code if row.name is not None]
    named = _names(kernels, parts)
    for best in best_configs:
        matched = named.get(os.path.basename(best.path)) or _weaker(kernels, best, made_from)
        if matched is not None:
            kernel, known_by = matched
            yield Link(kernel, BEST_CONFIG, os.path.basename(best.path), known_by, [best])


def _names(kernels: list[EntryRow], parts: NameParts) -> dict[str, tuple[EntryRow, str]]:
    found: dict[str, tuple[EntryRow, str]] = {}
    for kernel in kernels:
        file = os.path.basename(kernel.path)
        # torch 2.5 named it after the kernel.
        found[f"{kernel.cache_key}.best_config"] = kernel, KERNELS_NAME
        for tag in parts.cache_key_tags:
            found[best_config_name(file, tag)] = kernel, NAME
            for torch_key in parts.torch_keys:
                found[best_config_name(file, tag, torch_key)] = kernel, NAME_OF_TORCH
    return found


def _weaker(
    kernels: list[EntryRow], best: EntryRow, made_from: dict[str, EntryRow]
) -> tuple[EntryRow, str] | None:
    compiled = {made_from[key].code_key for key in best.triton_hashes if key in made_from}
    certain = [kernel for kernel in kernels if kernel.cache_key in compiled]
    if len(certain) == 1:
        return certain[0], COMPILED_FROM
    return (kernels[0], ONE_IN_FOLDER) if len(kernels) == 1 else None
