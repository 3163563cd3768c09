"""The entries that mega-cache files hold, as rows of the frame entries: what is asked of a directory is asked of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd

from cachescope.columns import records
from cachescope.readers.assemble import entries_frame
from cachescope.readers.directory.mega_cache import entries_inside
from cachescope.readers.reading import Entries, Entry, FileFacts, Reading

if TYPE_CHECKING:
    from cachescope.details import HashDetails


class Opened:
    """Mega-cache files, opened.

    Parameters
    ----------
    files : DataFrame
        Of their rows of the frame entries, ``entry`` and ``path``.
    details : HashDetails
        Where their hash details are kept; a Scope that read the files has them already.

    Attributes
    ----------
    entries : DataFrame
        As the frame entries, numbered from 0.
    file_of : dict
        For each number the file, an id into the frame entries of the Scope.
    """

    def __init__(self, files: pd.DataFrame, details: HashDetails) -> None:
        self._inside: list[Entry] = []
        self.file_of: dict[int, int] = {}
        for row in records(files):
            for inner in entries_inside(row["path"], Reading(details=details)):
                self.file_of[len(self._inside)] = row["entry"]
                self._inside.append(inner)
        entries = Entries()
        entries.add([_facts(entry) for entry in self._inside], dict(enumerate(self._inside)))
        self.entries = entries_frame(entries)

    def source_of(self, row: Mapping[str, Any]) -> str | None:
        """The generated source of one of the entries; None where it holds none."""
        number: int = row["entry"]
        return self._inside[number].source_code


def _facts(entry: Entry) -> FileFacts:
    return (entry.cache, entry.path, entry.root, None, None, entry.cache_key, entry.status, None)
