"""Puts the notes of a pre-flight (`cachescope/capture/preflight/notes.py`) to the lookups that they are about.

For an FX graph, both notes come before torch's record, which is written once the graph is compiled; for AOTAutograd the
one about storing comes after it.
"""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Final, NamedTuple, Self

from cachescope.frames.recorded_rows import LookupRow
from cachescope.json_types import JsonObject
from cachescope.readers.json_record import Record, load_json

WHY_OPEN: Final = {
    "without_values": "the graph holds a constant whose values are part of the key, and the program ran without weights: "
    "a real run makes another key",
    "precompiled": "with caching_precompile each process makes other keys, and may load what was precompiled instead",
    "brought": "the program itself puts an entry under this key, from a mega-cache for example",
    "counts_read": "the program has read torch's counts of hits and misses, which a real run counts otherwise",
}
"""What a process notes of a lookup that cannot be predicted, and what that means."""

_About = tuple[str | None, str | None]


class LookupNote(NamedTuple):
    """What is noted of one lookup."""

    # The sizes in guards, in their order; None for one that is not a number.
    sizes: tuple[float | None, ...] = ()
    cache_dir: str | None = None  # the directory that the program would use; None for torch's default one
    is_local: bool = True  # whether it would look in that directory, and in a remote cache
    is_remote: bool = False
    skips_guards: bool = False  # whether torch would take the first entry, whatever its guards
    open: str | None = None  # why it cannot be predicted, if the process knew that: one of `WHY_OPEN`
    cpu: str | None = (
        None  # the vector instructions that the process generates code for, and its architecture
    )
    is_stored: bool = False  # whether torch would store what it compiles after a miss
    stored_guards: str | None = None  # the guards of what it would store
    # The processes of the command that had ended when this one began.
    ended_before: frozenset[int] = frozenset()

    @classmethod
    def of_json(cls, text: str) -> Self:
        """From the JSON that a lookup has; what cannot be read in it is as if it were not noted."""
        try:
            values = Record(load_json(text.encode("utf-8", "surrogatepass"))).values
        except ValueError:
            values = {}
        asked, stored = Record(values.get("lookup") or {}), Record(values.get("stored") or {})
        sizes, after = asked.values.get("sizes"), asked.values.get("after")
        listed = sizes if isinstance(sizes, list) else []
        return cls(
            tuple(size if isinstance(size, (bool, int, float)) else None for size in listed),
            asked.text("cache_dir"),
            not asked.flag("not_local"),
            bool(asked.flag("remote")),
            bool(asked.flag("guards_skipped")),
            next((name for name in WHY_OPEN if asked.flag(name)), None),
            asked.text("cpu"),
            bool(stored.values) and stored.text("why_not") is None,
            stored.text("guards"),
            frozenset(pid for pid in after if type(pid) is int) if isinstance(after, list) else frozenset(),
        )


class PreflightNotes:
    """The notes about lookups whose records are still to come."""

    def __init__(self) -> None:
        self._open: dict[_About, list[JsonObject]] = defaultdict(list)
        # The latest of each key that has a note: what it would store may be noted after it.
        self._noted: dict[_About, LookupRow] = {}

    def add(self, note: JsonObject) -> None:
        """Take a note."""
        stored = note.get("stored")
        if isinstance(note.get("lookup"), dict):
            self._open[_about(note["lookup"])].append({"lookup": note["lookup"]})
        elif isinstance(stored, dict):
            about = _about(stored)
            if waiting := self._open.get(about):
                waiting[-1]["stored"] = stored
            elif (lookup := self._noted.get(about)) is not None:
                note = json.loads(lookup.preflight_note or "{}")
                lookup.preflight_note = json.dumps({**note, "stored": stored})

    def tell_of(self, lookup: LookupRow) -> None:
        """Give a lookup the note about it, if there is one."""
        about = (lookup.cache, lookup.cache_key)
        if waiting := self._open.get(about):
            lookup.preflight_note = json.dumps(waiting.pop())
            self._noted[about] = lookup


def _about(note: object) -> _About:
    of = Record(note)
    return of.text("cache"), of.text("key")
