"""From sources to the tables that all frames are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cachescope.readers.assemble import Tables, assemble
from cachescope.readers.kinds import is_saved_scope
from cachescope.readers.reading import Reading
from cachescope.readers.sources import Progress, read_sources

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from cachescope.readers.index.kept_logs import Index


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
        from cachescope.readers.parquet_folder import read_saved_scope

        return read_saved_scope(sources[0])
    reading = Reading(strict=strict)
    read_sources(list(sources), reading, progress, executor=executor, index=_index if index else None)
    return assemble(reading)


def _index() -> Index | None:
    from cachescope.readers.index.kept_logs import index_of_user

    return index_of_user()
