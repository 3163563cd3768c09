"""Reading sources into a Scope."""

from __future__ import annotations

import os
from concurrent.futures import Executor
from pathlib import Path

from cachescope.answers.reading import tables_of
from cachescope.readers.remote_cache.address import without_password
from cachescope.readers.sources import Progress
from cachescope.samples import refuse_packed
from cachescope.scope.scope import Scope


def read(
    *sources: str | Path,
    strict: bool = False,
    baseline: str | int = "auto",
    progress: Progress | None = None,
    executor: Executor | None = None,
    index: bool = True,
) -> Scope:
    """Read traces, text logs, cache directories (vLLM's too), remote caches, snapshots, saved scopes and what `collect` collected.

    Parameters
    ----------
    *sources : str or Path
        Any mix of files, directories (searched for everything cachescope knows) and glob patterns. What a
        file is, is told by looking inside. Logs may be at any address that fsspec knows as well:
        ``s3://bucket/rank_*.log.zst``. torch's remote caches are read at ``redis://host:port/db``, or from a dump; a password in
        an address is never shown.
    strict : bool, default False
        Raise at the first damaged record (`RecordError`) or source that cannot be read (`SourceError`) instead of
        noting it in ``problems``.
    baseline : {"auto", "nearest"}, run number or key
        What missed lookups are compared with; see `Scope.with_baseline`.
    progress : callable, optional
        Called with (path, done, total) before each source is read.
    executor : Executor, optional
        Reads logs in its workers: a ``ProcessPoolExecutor``, Dask's ``Client.get_executor()``, or any other of
        `concurrent.futures`. A large trace goes to several of them. The frames are the same. A log whose worker is
        lost is read in this process.
    index : bool, default True
        Keep large logs, once read, under the user's cache folder, where opening them again takes no time. One
        that has grown since is read from where it ended; one that is packed, or changed otherwise, is read anew.
        ``CACHESCOPE_NO_INDEX=1`` switches it off, ``cachescope cache`` shows it.

    Returns
    -------
    Scope

    Raises
    ------
    SourceError
        If no source could be read: each is not there, may not be read, or is nothing cachescope knows. Where others
        could be read it is a row in ``problems``, and under `strict` it raises.

    Notes
    -----
    Sources are opened for reading only; no pickle is ever executed and torch is not imported.

    Examples
    --------
    >>> import cachescope
    >>> scope = cachescope.read(cachescope.sample("config_flip"))
    >>> scope.lookups["outcome"].value_counts().to_dict()
    {'full_miss': 4, 'hit': 2}
    """
    paths = [without_password(os.fspath(source)) for source in sources]
    if not paths:
        raise TypeError("read() needs at least one source")
    for path in paths:
        refuse_packed(path)
    tables = tables_of(paths, strict=strict, progress=progress, executor=executor, index=index)
    return Scope(tables, baseline, tuple(paths), index)
