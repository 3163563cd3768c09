"""Index of the files of the frame entries: the one index that all links are made from.

Once it is built, every question is a dictionary look-up, however big the directory is.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Final

from cachescope.frames.directory_rows import EntryRow
from cachescope.grouping import by_key
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
        rows = self.rows = [row for row in rows if row.status in _THERE and row.cache != LOCK]
        code = [row for row in rows if row.cache == CODE]
        python = [row for row in code if is_python(row)]
        kernels = ((row, key) for row in code if is_cpp(row) for key in row.kernel_keys)
        self._of_key = by_key(
            ((row.root, row.cache, row.cache_key), row) for row in rows if row.cache_key is not None
        )
        self._of_kernel = by_key(((row.root, key), row) for row, key in kernels)
        self._compiled = _Nearest(row for row in rows if is_metadata(row))
        self._python = _Nearest(python)
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
        """The files of a kind under a key of a directory."""
        return self._of_key.get((root, kind, key), [])

    def kernels(self, root: str, key: str) -> list[EntryRow]:
        """The files of a wrapper's kernel: the Python file of that key, the C++ files of that text."""
        python = [row for row in self.of_key(root, CODE, key) if is_python(row)]
        return python or self._of_kernel.get((root, key), [])

    def python(self, root: str, key: str) -> list[EntryRow]:
        """The Python files of a code key: those in a directory, else those in the first that has some."""
        return self._python.of(root, key)

    def triton(self, root: str, triton_hash: str) -> list[EntryRow]:
        """The metadata of the kernels in a Triton directory: in the root itself, else in the first other that has them.

        ``TRITON_CACHE_DIR`` may point anywhere.
        """
        return self._compiled.of(root, triton_hash)


class _Nearest:
    """Rows by key: those of a directory, else of the first that has the key. Copies may lie in a thousand."""

    def __init__(self, rows: Iterable[EntryRow]) -> None:
        self._of = by_key(((row.cache_key or "", row.root), row) for row in rows)
        self._first = dict(reversed(self._of))

    def of(self, root: str, key: str) -> list[EntryRow]:
        return self._of.get((key, root)) or self._of.get((key, self._first.get(key, "")), [])


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
