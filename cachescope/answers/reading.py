"""From sources to the tables that all frames are made of."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor

from cachescope.readers.assemble import Tables, assemble
from cachescope.readers.index.kept_logs import index_of_user
from cachescope.readers.index.log_folder import is_log_folder, read_log_folder
from cachescope.readers.parquet_folder import is_saved_scope, read_saved_scope
from cachescope.readers.reading import Reading
from cachescope.readers.sources import Progress, read_sources


def tables_of(
    sources: Sequence[str],
    *,
    strict: bool = False,
    progress: Progress | None = None,
    executor: Executor | None = None,
    index: bool = True,
) -> Tables:
    """Read sources; see `cachescope.read`."""
    if len(sources) == 1 and is_saved_scope(sources[0]):
        return read_saved_scope(sources[0])
    if len(sources) == 1 and is_log_folder(sources[0]):
        return assemble(read_log_folder(sources[0], strict=strict))
    reading = Reading(strict=strict)
    read_sources(
        list(sources), reading, progress, executor=executor, index=index_of_user() if index else None
    )
    return assemble(reading)
