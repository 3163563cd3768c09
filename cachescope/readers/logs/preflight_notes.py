"""Puts the notes of a pre-flight (`cachescope/capture/preflight/notes.py`) to the lookups that they are about.

Of an FX graph both notes stand before torch's record, which is written once the graph is compiled; of AOTAutograd the
one about storing comes after it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from cachescope.json_types import JsonObject
from cachescope.readers.json_record import Record
from cachescope.readers.reading import Lookup


@dataclass(frozen=True, slots=True)
class LookupNote:
    """What is noted of one lookup.

    Attributes
    ----------
    sizes : tuple
        The sizes that guards speak of, in their order; None for one that is no number.
    cache_dir : str or None
        The directory that the program would use; None for torch's default one.
    is_local, is_remote : bool
        Whether it would look in that directory, and in a remote cache.
    skips_guards : bool
        Whether torch would take the first entry, whatever its guards.
    is_brought : bool
        Whether the program itself had put entries under the key, from a mega-cache for example.
    is_stored : bool
        Whether torch would store what it compiles after a miss.
    stored_guards : str or None
        The guards of what it would store.
    why_not_stored : str or None
        Why it would not, where it tries to.
    """

    sizes: tuple[float | None, ...] = ()
    cache_dir: str | None = None
    is_local: bool = True
    is_remote: bool = False
    skips_guards: bool = False
    is_brought: bool = False
    is_stored: bool = False
    stored_guards: str | None = None
    why_not_stored: str | None = None

    @classmethod
    def of_json(cls, text: str) -> Self:
        """From the JSON that a lookup has; what cannot be read in it is as if it were not noted."""
        values = json.loads(text)
        asked, stored = Record(values.get("lookup") or {}), Record(values.get("stored") or {})
        sizes = asked.values.get("sizes")
        listed = sizes if isinstance(sizes, list) else []
        why_not = stored.text("why_not")
        return cls(
            tuple(size if isinstance(size, (bool, int, float)) else None for size in listed),
            asked.text("cache_dir"),
            not asked.flag("not_local"),
            bool(asked.flag("remote")),
            bool(asked.flag("guards_skipped")),
            bool(asked.flag("brought")),
            bool(stored.values) and why_not is None,
            stored.text("guards"),
            why_not,
        )


class PreflightNotes:
    """The notes about lookups whose records are still to come."""

    def __init__(self, notes: Iterable[JsonObject] = ()) -> None:
        self.open = list(notes)

    def add(self, note: JsonObject, earlier: Iterable[Lookup]) -> None:
        """Take a note; `earlier` are the lookups so far, the latest first."""
        stored = note.get("stored")
        if isinstance(note.get("lookup"), dict):
            self.open.append({"lookup": note["lookup"]})
        elif isinstance(stored, dict):
            about = _about(stored)
            for one in reversed(self.open):
                if _about(one["lookup"]) == about:
                    one["stored"] = stored
                    return
            for lookup in earlier:
                if (lookup.cache, lookup.cache_key) == about and lookup.preflight_note is not None:
                    told = json.loads(lookup.preflight_note)
                    lookup.preflight_note = json.dumps({**told, "stored": stored})
                    return

    def tell_of(self, lookup: Lookup) -> None:
        """Give a lookup the note about it, if there is one."""
        for one in reversed(self.open):
            if _about(one["lookup"]) == (lookup.cache, lookup.cache_key):
                self.open.remove(one)
                lookup.preflight_note = json.dumps(one)
                return


def _about(note: object) -> tuple[object, object]:
    return (note.get("cache"), note.get("key")) if isinstance(note, dict) else (None, None)
