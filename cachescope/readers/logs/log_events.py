"""A log as a list of events: what its reader found, in the order of the log.

An event is a word and plain values; that of a lookup begins with its row. The reader of a kind of log only parses, and one fold of that
kind (`trace_process`, `text_lookups`) makes processes of the events. So the log may be read in one piece, in parts by several workers, or
from where it ended the last time: the events are the same, and so are the processes. `LogKind` is both of one kind.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from cachescope.frames.recorded_rows import LookupRow
from cachescope.readers.json_record import load_json
from cachescope.readers.logs.byte_source import Pieces, open_bytes
from cachescope.readers.reading import Process, Reading, as_error

if TYPE_CHECKING:
    from cachescope.readers.index.log_tables import LogTables

Handle = Callable[..., None]
"""Takes a word that a fold knows, and the values that belong to it."""
# These words come with a lookup, which has a row of its own.
_OF_A_LOOKUP: Final = ("lookup", "uncached")


class Fold:
    """Makes processes of the events of one log: each word has a method ``_on_<word>``, which takes its values."""

    def __init__(self, source: str, reading: Reading) -> None:
        self._source = source
        self._reading = reading
        self.has_failed = False
        """Whether the log could not be read to its end."""

    def handle(self, word: str, *values: Any) -> None:
        """Take one event."""
        getattr(self, f"_on_{word}")(*values)

    def finish(self) -> None:
        """Add the processes to the reading."""
        raise NotImplementedError


class GoesOnError(Exception):
    """What seemed complete at the end of a log continues, or is said again."""


class LogReader(Protocol):
    """Finds the events in the bytes of one log, and passes them on."""

    def resume(self, end_state: str, stream: IO[bytes]) -> None:
        """Go where an earlier reading ended, with what it knew there."""

    def read(self, pieces: Pieces) -> None:
        """Read to the end; raise `GoesOnError` if that cannot be told from where an earlier reading ended."""

    def end_state(self) -> str | None:
        """What `resume` takes; None if reading cannot continue."""


class LogKind(NamedTuple):
    """How logs of one kind are read: what finds the events, and what makes processes of them."""

    name: str
    reader: Callable[[Reading, Handle], LogReader]
    fold: Callable[[str, Reading], Fold]

    def read(self, path: str, reading: Reading) -> None:
        """Read the processes of one log (plain, packed or compressed), with their lookups, into `reading`."""
        fold = self.fold(path, reading)
        with open_bytes(path) as stream:
            self.reader(reading, fold.handle).read(Pieces(stream))
        fold.finish()

    def read_events(
        self, path: str, reading: Reading, end_state: str | None = None, size: int | None = None
    ) -> None:
        """Read the events of a log, or those since an earlier reading ended, in so many bytes, into one `Process` of `reading`."""
        events = EventList()
        reader = self.reader(reading, events.handle)
        with open_bytes(path) as stream:
            if end_state is not None:
                reader.resume(end_state, stream)
            reader.read(Pieces(stream, size))
        reading.processes.append(events.as_process(path, self.name, reader.end_state()))

    def read_on(self, path: str, reading: Reading) -> bool:
        """Add the events of what was written to a log since those in `reading` were read; False if it has to be read anew."""
        end_state = reading.processes[-1].end_state
        if end_state is None:
            return False
        try:
            self.read_events(path, reading, end_state)
        except GoesOnError:
            return False
        return True


class EventList:
    """Events that are kept, to be handled later."""

    def __init__(self) -> None:
        self._lookups: list[LookupRow] = []
        self._events: list[tuple[Any, ...]] = []

    def handle(self, word: str, *values: Any) -> None:
        """Keep one event."""
        if word in _OF_A_LOOKUP:
            self._lookups.append(values[0])
            values = values[1:]
        self._events.append((word, *values))

    def as_process(self, path: str, kind: str, end_state: str | None) -> Process:
        """A row that holds them."""
        events = json.dumps(self._events)
        return Process(source=path, kind=kind, lookups=self._lookups, events=events, end_state=end_state)


def fold_events(fold: Fold, reading: Reading, parts: Iterable[LogTables]) -> None:
    """Make the processes of a log in `reading` from its events, which one or several parts hold."""
    for part in parts:
        if not part.processes:
            (problem,) = part.problems
            raise as_error(problem)
        part.add_details_to(reading.details)
        for process in part.processes:
            lookups = iter(process.lookups)
            for word, *values in load_json((process.events or "[]").encode()):
                fold.handle(word, *([next(lookups)] if word in _OF_A_LOOKUP else []), *values)
            if fold.has_failed:
                break
    fold.finish()
