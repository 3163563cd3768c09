"""Index of the files of the frame entries: the one index that all links are made from.

It is built in one pass. Every question after that is a dictionary look-up, however big the directory is.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from cachescope.frames.directory_rows import EntryRow
from cachescope.terms import BEST_CONFIG, CODE, LOCK, TRITON, UNREADABLE

_THERE: Final = ("ok", "damaged", UNREADABLE)


class Files:
    """Rows by key, by kernel, by folder and by Triton hash.

    Unreadable files are included; no link leads to temporaries or to files that are not torch's.

    Parameters
    ----------
    rows : iterable of EntryRow
        The rows of the frame entries.
    """

    def __init__(self, rows: Iterable[EntryRow]) -> None:
        self.rows = [row for row in rows if row.status in _THERE and row.cache != LOCK]
        self._of_key: dict[tuple[str, str, str], list[EntryRow]] = defaultdict(list)
        self._of_kernel: dict[tuple[str, str], list[EntryRow]] = defaultdict(list)
        self._of_hash: dict[str, list[EntryRow]] = defaultdict(list)
        self._anywhere: dict[str, list[EntryRow]] = defaultdict(list)
        self.kernels_in: dict[str, list[EntryRow]] = defaultdict(list)
        self.best_configs_in: dict[str, list[EntryRow]] = defaultdict(list)
        self.roots_with_triton: set[str] = set()
        for row in self.rows:
            if row.cache_key is not None:
                self._of_key[row.root, row.cache, row.cache_key].append(row)
            if row.cache == CODE:
                self._add_code(row)
            elif row.cache == TRITON:
                self._add_triton(row)
            elif row.cache == BEST_CONFIG:
                self.best_configs_in[os.path.dirname(row.path)].append(row)

    def _add_code(self, row: EntryRow) -> None:
        if is_cpp(row):
            for key in row.kernel_keys:
                self._of_kernel[row.root, key].append(row)
        elif is_python(row):
            self._anywhere[row.cache_key or ""].append(row)
            self.kernels_in[os.path.dirname(row.path)].append(row)

    def _add_triton(self, row: EntryRow) -> None:
        self.roots_with_triton.add(row.root)
        if row.path.endswith(".json") and not os.path.basename(row.path).startswith("__grp__"):
            self._of_hash[row.cache_key or ""].append(row)

    def of_key(self, root: str, kind: str, key: str) -> list[EntryRow]:
        """The files of a kind under a key of a directory."""
        return self._of_key.get((root, kind, key), [])

    def kernels(self, root: str, key: str) -> list[EntryRow]:
        """The files of a wrapper's kernel: the Python file of that key, the C++ files of that text."""
        python = [row for row in self.of_key(root, CODE, key) if is_python(row)]
        return python or self._of_kernel.get((root, key), [])

    def python(self, root: str, key: str) -> list[EntryRow]:
        """The Python files of a code key: those in a directory, else those in any other."""
        found = self._anywhere.get(key, [])
        return [row for row in found if row.root == root] or found

    def triton(self, root: str, triton_hash: str) -> list[EntryRow]:
        """The metadata of the kernels in a Triton directory: in the root itself, else in another that was read.

        ``TRITON_CACHE_DIR`` may point anywhere.
        """
        found = self._of_hash.get(triton_hash, [])
        return [row for row in found if row.root == root] or found


def is_python(row: EntryRow) -> bool:
    """Whether a file of generated code is a wrapper, or a kernel in Python."""
    return row.path.endswith(".py") and row.cache_key is not None


def is_cpp(row: EntryRow) -> bool:
    """Whether a file of generated code is C++."""
    return row.path.endswith(".cpp")
