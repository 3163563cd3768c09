"""Locking a cache directory."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from cachescope.answers.locked import lock_of
from cachescope.errors import CachescopeError
from cachescope.locking.lock import CacheLock, write_lock
from cachescope.locking.tree import is_within
from cachescope.scope.read import read


def lock(
    directory: str | Path, output: str | Path | None = None, *, expect: str | Path | Iterable[str | Path] = ()
) -> CacheLock:
    """Lock a cache directory: its files, the keys in it, and what made them.

    Parameters
    ----------
    directory : path
        A cache directory. Nothing is written to it.
    output : path, optional
        The file to write, outside of the directory; none by default.
    expect : path or paths, optional
        Traces or logs of runs that should find their entries in the directory.

    Returns
    -------
    CacheLock
        What `cachescope.verify` takes.

    Raises
    ------
    SourceError
        If a path does not exist, or is of no known kind.
    CachescopeError
        If something in the directory cannot be locked (a link out of it, a pipe, a file without read permission), or the output
        is in the directory or cannot be written.
    NotFoundError
        If the recordings of `expect` contain no lookup.

    Examples
    --------
    >>> import cachescope
    >>> cachescope.lock(cachescope.sample("entry_truncated") / "cache")
    <4 files, 3 entries, 1 context>
    """
    name = os.fspath(directory)
    if output is not None and is_within(os.fspath(output), name):
        raise CachescopeError(f"{os.fspath(output)} is in the directory that it locks: write it elsewhere")
    recordings = [expect] if isinstance(expect, str | os.PathLike) else list(expect)
    made = lock_of(read(name), name, read(*recordings) if recordings else None)
    if output is not None:
        write_lock(made, output)
    return made
