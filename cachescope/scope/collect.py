"""Collecting the logs of a fleet into one folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cachescope.errors import SourceError
from cachescope.readers.index.log_tables import LogTables, write_logs
from cachescope.readers.reading import Reading, note_source
from cachescope.readers.sources import logs_in


def collect(*sources: str | Path, folder: str | Path) -> int:
    """Read logs, and add them in columns to a folder that several processes share.

    Each node of a job collects its own logs into a shared folder. `cachescope.read` of that folder gives the same
    Scope as reading all the logs together, in a fraction of the time.

    Parameters
    ----------
    *sources : str or Path
        Logs, directories and patterns of them, or addresses. Anything but logs is ignored.
    folder : str or Path
        Created if it does not exist. One file is added to it, and nothing in it is changed.

    Returns
    -------
    int
        How many logs were added, without those that cannot be read, which become rows in ``problems``.

    Raises
    ------
    SourceError
        If a source does not exist, contains no log, or none of its logs can be read.
    OSError
        If the folder cannot be written.

    Examples
    --------
    >>> import cachescope, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     logs = cachescope.collect(cachescope.sample("config_flip") / "trace", folder=folder)
    ...     len(cachescope.read(folder).lookups)
    6
    """
    unread = Reading()
    logs = logs_in([str(source) for source in sources], unread)

    failed: list[SourceError] = []

    def read_each() -> Iterator[LogTables]:
        for problem in unread.problems:
            yield LogTables(problem.source, [], [problem], [], [])
        for kind, path in logs:
            reading = Reading()
            try:
                kind.read(path, reading)
            except SourceError as error:
                failed.append(error)
                if len(failed) == len(logs):
                    raise
                note_source(error, reading)
            yield LogTables.of(path, reading)

    return write_logs(Path(folder), read_each()) - len(failed) - len(unread.problems)
