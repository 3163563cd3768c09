"""Reading sources into a Scope."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from cachescope.answers.read import tables_of
from cachescope.readers.remote_cache.address import without_password
from cachescope.readers.sources import Progress
from cachescope.scope.scope import Scope

if TYPE_CHECKING:
    from concurrent.futures import Executor


def read(
    *sources: str | Path,
    strict: bool = False,
    baseline: str | int = "auto",
    progress: Progress | None = None,
    executor: Executor | None = None,
    index: bool = True,
) -> Scope:
    """Read traces, text logs, cache directories (also vLLM's), remote caches, snapshots, saved scopes and folders made by `collect`.

    Parameters
    ----------
    *sources : str or Path
        Any mix of files, directories (searched for every kind of file that cachescope knows) and glob patterns. A
        file's kind is recognized by its content. Logs may also be at any address that fsspec supports:
        ``s3://bucket/rank_*.log.zst``. torch's remote caches are read at ``redis://host:port/db``, or from a dump; a password in
        an address is never shown.
    strict : bool, default False
        Raise at the first damaged record (`RecordError`) or source that cannot be read (`SourceError`) instead of
        adding a row to ``problems``.
    baseline : {"auto", "nearest"}, run number or key
        What missed lookups are compared with; see `Scope.with_baseline`.
    progress : callable, optional
        Called with (path, done, total) before each source is read.
    executor : Executor, optional
        Reads logs in its workers: a ``ProcessPoolExecutor``, Dask's ``Client.get_executor()``, or any other of
        `concurrent.futures`. A large trace is split among several of them. The frames are the same. If a worker is
        lost, its log is read in this process.
    index : bool, default True
        Keep large logs in columns under the user's cache folder, so that they open faster next time. For a log that
        has grown, only the new part is read; one that is compressed, or changed in another way, is read from the start.
        ``CACHESCOPE_NO_INDEX=1`` switches this off, and ``cachescope cache`` lists the kept logs.

    Returns
    -------
    Scope

    Raises
    ------
    SourceError
        If no source could be read: each is missing, not readable, or of no known kind. If at least one other source
        could be read, it is only a row in ``problems``, unless `strict`.

    Notes
    -----
    Sources are only opened for reading. No pickle is ever executed, and torch is not imported.

    Examples
    --------
    >>> import cachescope
    >>> scope = cachescope.read(cachescope.sample("config_flip"))
    >>> scope.lookups["outcome"].value_counts().to_dict()
    {'full_miss': 4, 'hit': 2}
    """
    if not sources:
        raise TypeError("read() needs at least one source")
    try:
        paths = [without_password(os.fsdecode(source)) for source in sources]
    except TypeError as error:
        message = f"read() takes each path as its own argument: use read(*paths) for a list ({error})"
        raise TypeError(message) from None
    tables = tables_of(paths, strict=strict, progress=progress, executor=executor, index=index)
    return Scope(tables, baseline, tuple(paths), index)
