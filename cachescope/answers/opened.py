"""The entries that mega-cache files hold, as rows of the frame entries: what is asked of a directory is asked of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from cachescope.columns import frame_of, plain_columns
from cachescope.frames.directory_rows import EntryRow
from cachescope.readers.assemble import entry_rows
from cachescope.readers.directory.bundles import entries_inside
from cachescope.readers.directory.file_contents import NamedFile
from cachescope.readers.reading import Entries, FileFacts, Reading

if TYPE_CHECKING:
    from cachescope.details import HashDetails


class Opened:
    """Mega-cache files, opened.

    Attributes
    ----------
    entries : DataFrame
        As the frame entries, numbered from 0.
    file_of : dict
        For each number the file, an id into the frame entries of the Scope.
    """

    def __init__(self, files: pd.DataFrame, details: HashDetails) -> None:
        self._inside: list[EntryRow] = []
        self.file_of: dict[int, int] = {}
        for number, path in zip(*plain_columns(files, ["entry", "path"]).values(), strict=True):
            for inner in entries_inside(path, Reading(details=details)):
                self.file_of[len(self._inside)] = number
                self._inside.append(inner)
        entries = Entries()
        entries.add([_facts(entry) for entry in self._inside], dict(enumerate(self._inside)))
        self.entries = frame_of(entry_rows(entries), EntryRow)

    def source_of(self, file: NamedFile) -> str | None:
        """The generated source of one of the entries; None where it holds none."""
        return self._inside[file.entry].source_code


def _facts(entry: EntryRow) -> FileFacts:
    return (entry.cache, entry.path, entry.root, None, None, entry.cache_key, entry.status, None)
