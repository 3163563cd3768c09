"""Reads one entry file: its bytes, whether they are complete, and the inert object in them.

A damaged entry keeps its row, has the reason in `damage`, and is a row in ``problems``; so does an entry that was not
completely read. Nothing here decides that an entry is safe for torch to load.
"""

from __future__ import annotations

import reprlib
import sys
from collections.abc import Callable
from typing import Final

from cachescope.frames.directory_rows import EntryRow
from cachescope.keys.hashing import entry_name
from cachescope.readers.cache_file import DamagedContent, Fill, ReadFile, marked, read_bytes
from cachescope.readers.json_record import MOST_NS_OF_A_DURATION, well_formed
from cachescope.readers.pickles.inert_pickle import (
    Limits,
    NotRead,
    Stub,
    UnreadablePickle,
    global_name,
    loads_harmless,
)
from cachescope.readers.reading import Reading
from cachescope.terms import OTHER_NAME

FillFromObject = Callable[[EntryRow, Stub, Reading], str | None]
"""Fills the row from the top object; returns what is wrong with the object, if anything."""

_CONTENT_NAME_LENGTH = 51
WHOLE = "a whole entry, which torch before 2.13 loads"

_MOST: Final = 2_000
# Python prints ints of at most 4,300 digits.
_BITS_PRINTED: Final = 14_000


def entry_reader(check: Fill) -> ReadFile:
    """Make a reader of entry files, whose names are hashes of their content."""

    def read(entry: EntryRow, path: str, name: str, reading: Reading) -> None:
        data = read_bytes(entry, path)
        content = check, entry.cache_key, entry_name(data)
        is_misnamed = len(name) == _CONTENT_NAME_LENGTH and content[2] != name
        if (known := reading.contents.get(content)) is not None:
            entry.take_content(known)
        else:
            try:
                check(entry, name, data, reading)
            except NotRead:
                raise
            except (DamagedContent, UnreadablePickle) as error:
                damage = f"{error.what}; {OTHER_NAME}" if is_misnamed else error.what
                raise DamagedContent(damage, error.offset) from error
            reading.contents[content] = entry
        if is_misnamed:
            raise DamagedContent(OTHER_NAME)

    return read


def reader_of_hidden(read: ReadFile) -> ReadFile:
    """Make a reader of entry files whose name begins with a dot, like that of a temporary file.

    torch 2.13 and later skip them (``GuardedCache.iterate_over_candidates``, torch/_inductor/codecache.py); earlier
    versions load them if they are complete. So their references are read, and the row shows whether the file is
    complete. An incomplete file is no problem, unless it is hostile.
    """

    def read_hidden(entry: EntryRow, path: str, name: str, reading: Reading) -> None:
        status = entry.status
        aside = Reading(details=reading.details)
        with marked(entry, aside):
            read(entry, path, name, aside)
        if entry.status == "damaged" and not str(entry.damage).startswith("hostile"):
            entry.status = status
        elif entry.status == status:
            entry.detail = WHOLE
        for problem in aside.problems if entry.status != status else ():
            reading.problem(problem.source, problem.where, problem.kind, problem.message)

    return read_hidden


def check_entry(
    entry: EntryRow, data: bytes, reading: Reading, top: frozenset[str], fill: FillFromObject
) -> None:
    """Fill the row of one entry from its bytes."""
    if not data:
        raise DamagedContent("empty file")
    value = loads_harmless(data, Limits())
    made_of = global_name(value)
    if not isinstance(value, Stub) or made_of is None or not made_of.startswith("torch."):
        raise DamagedContent(f"not an entry of {entry.cache}: holds {made_of or type(value).__name__}")
    if made_of.rpartition(".")[2] not in top:
        raise NotRead(f"not known to be an entry of {entry.cache}: holds {made_of[:200]}")
    if (wrong := fill(entry, value, reading)) is not None:
        raise DamagedContent(wrong)


def text(value: object) -> str | None:
    """A value of an entry if it is a str, else None; equal texts are one object.

    This matters above all for generated code, which entries that differ only in their hash details share.
    """
    return sys.intern(well_formed(value)) if type(value) is str else None


def nanoseconds(value: object) -> int | None:
    """A value of an entry if it can be a duration, else None."""
    return value if type(value) is int and 0 <= value <= MOST_NS_OF_A_DURATION else None


def words(value: object) -> tuple[str, ...]:
    """The strings of a set: a real one, or torch's ``OrderedSet`` (torch/utils/_ordered_set.py).

    An ``OrderedSet`` is pickled as a call with the list of its items.
    """
    if isinstance(value, Stub):
        value = value.args[0] if value.args else None
    if not isinstance(value, (set, frozenset, list, tuple)):
        return ()
    return tuple(well_formed(word) for word in value if isinstance(word, str))


def add_hash_details(lines: object, reading: Reading) -> tuple[int | None, str | None]:
    """Store ``_fx_graph_cache_debug_lines``; return the set code and what is wrong with them.

    Mirrors ``FxGraphCachePickler.debug_lines`` (torch/_inductor/codecache.py), stored from 2.8.
    """
    if lines is None:
        return None, None
    if not isinstance(lines, list) or not {str}.issuperset(map(type, lines)):
        return None, "its hash details are no list of text"
    # One message for all of them: a hostile entry could have a million.
    texts = lines if all(map(str.isascii, lines)) else list(map(well_formed, lines))
    set_code, rejected = reading.details.add(texts)
    if rejected:
        return set_code, f"{len(rejected)} of {len(lines)} lines are no hash details: {rejected[0][:80]!r}"
    return set_code, None


class _Text(reprlib.Repr):
    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 8
        self.maxdict = self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = 50
        self.maxstring = self.maxlong = self.maxother = 200

    def repr_int(self, x: int, level: int) -> str:
        # Of more digits than Python prints, reprlib gives the address from Python 3.14 on.
        return super().repr_int(x, level) if x.bit_length() < _BITS_PRINTED else "(int)"

    def repr1(self, x: object, level: int) -> str:
        if not isinstance(x, Stub):
            return super().repr1(x, level)
        if level <= 0:
            return f"{global_name(x)}(...)"
        parts = [self.repr1(part, level - 1) for part in (*x.args, *x.items)[: self.maxlist]]
        named = {**x.state, **x.keywords} if isinstance(x.state, dict) else {}
        parts += [f"{key}={self.repr1(part, level - 1)}" for key, part in list(named.items())[: self.maxdict]]
        return f"{x.name}({', '.join(parts)})"


def value_text(value: object) -> str:
    """The value as Python would print it, shortened if it is long; objects as their class and contents."""
    try:
        text = well_formed(_Text().repr(value))
    except (RecursionError, ValueError):  # the user may have set a lower limit of digits
        return f"({type(value).__name__})"
    return text if len(text) <= _MOST else text[: _MOST - 1] + "…"
