"""Whether entries hold the same generated code, apart from what identifies the process that made it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import pandas as pd

from cachescope.columns import rows_of
from cachescope.readers.directory.source_code import NamedFile
from cachescope.terms import CACHES

SourceOf = Callable[[NamedFile], str | None]
"""The generated source in a file of the frame entries; None if there is none."""

# Parts of generated code that depend on the process and change nothing: comments with the number of the graph in it
# (torch/_inductor/codegen/wrapper.py, `write_header`), the names of its nodes (one key may stand for
# several), and the path of its cache directory (2.6 `#include`s its header by path, which is no comment).
_OF_THE_PROCESS: Final = re.compile(
    r"^[ \t]*+(?:#|//)[ \t].*$|(?<=[\"'\s])/[^\"'\s]*/(?=c[a-z2-7]{51}\.)", re.MULTILINE
)

_CUT: Final = 60


def same_code_form(source: str) -> str:
    """Generated source without comments, and without what only identifies the process that made it.

    Examples
    --------
    >>> same_code_form("# AOT ID: ['3_inference']") == same_code_form("# AOT ID: ['0_inference']")
    True
    """
    return _OF_THE_PROCESS.sub("", source)


def first_difference(before: str, after: str) -> str:
    """The first line in which two sources differ, in words."""
    old, new = before.split("\n"), after.split("\n")
    for number, (a, b) in enumerate(zip(old, new, strict=False), 1):
        if a != b:
            return f"line {number} is {_cut(a.strip())!r} and {_cut(b.strip())!r}"
    return f"{len(old)} and {len(new)} lines"


def _cut(line: str) -> str:
    return line if len(line) <= _CUT else f"{line[:_CUT]}…"


@dataclass(frozen=True, slots=True)
class _WithCode:
    """An entry that names its generated code."""

    entry: int
    cache: str
    cache_key: str | None
    path: str
    code_key: str


class GeneratedCode:
    """Compares the generated code of entries.

    The code key of an entry is the hash of its source (torch/_inductor/codecache.py, `code_hash`): equal keys mean
    equal code. Sources are read only for entries whose keys differ, once for each key.

    Parameters
    ----------
    entries : DataFrame
        The frame entries.
    source_of : callable
    """

    def __init__(self, entries: pd.DataFrame, source_of: SourceOf) -> None:
        named = entries[entries["cache"].isin(CACHES) & entries["code_key"].notna()]
        self._rows = {row.entry: row for row in rows_of(named, _WithCode)}
        self._source_of = source_of
        self._forms: dict[str, str | None] = {}

    def are_same(self, entry: int, other: int) -> bool | None:
        """Whether two entries hold the same code; None if that is unknown."""
        if entry not in self._rows or other not in self._rows:
            return None
        if self.has_equal_keys(entry, other):
            return True
        forms = self._form(entry), self._form(other)
        return None if None in forms else forms[0] == forms[1]

    def identity(self, entry: int) -> str | None:
        """A value that is equal for entries of the same code: from the source if it can be read, else the code key."""
        row = self._rows.get(entry)
        return None if row is None else self._form(entry) or row.code_key

    def first_difference(self, entry: int, other: int) -> str:
        """Where the code of two entries differs, whose sources can be read and differ."""
        sources = (self._source_of(self._rows[number]) for number in (entry, other))
        return first_difference(*(same_code_form(source or "") for source in sources))

    def has_equal_keys(self, entry: int, other: int) -> bool:
        """Whether the code keys of two entries are equal."""
        return self._rows[entry].code_key == self._rows[other].code_key

    def _form(self, entry: int) -> str | None:
        row = self._rows[entry]
        if row.code_key not in self._forms:
            source = self._source_of(row)
            self._forms[row.code_key] = (
                None
                if source is None
                else hashlib.sha256(same_code_form(source).encode("utf-8", "backslashreplace")).hexdigest()
            )
        return self._forms[row.code_key]
