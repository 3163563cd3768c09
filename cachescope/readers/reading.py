"""What every reader returns: plain rows of one shape, whatever the source.

A log yields `Process` objects with their lookups; a cache directory yields entries. Rows that cannot
be read go to `problems`, or raise at once under ``strict=True``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cachescope.details import HashDetails
from cachescope.errors import RecordError, SourceError
from cachescope.frames.context_rows import ContextRow
from cachescope.frames.directory_rows import EntryRow, TimingRow
from cachescope.frames.recorded_rows import LookupRow, ProblemRow, RunRow
from cachescope.frames.vllm import FactorsRow, StartRow

if TYPE_CHECKING:
    from cachescope.frames.compile_rows import CompileRow


@dataclass(slots=True)
class Compile:
    """One compile that a trace records, from its start to its end; a backward graph that is compiled later belongs to it."""

    compile_id: str
    began_us: int | None
    function: str | None = None
    file: str | None = None
    line: int | None = None
    ended_us: int | None = None
    error: str | None = None
    recompile_reasons: str | None = None
    traced_graph: str | None = None
    traced_code: str | None = None

    def tell(self, lookup: LookupRow) -> None:
        """Set the code that a lookup was made for, and why that was compiled again."""
        lookup.function, lookup.file, lookup.line = self.function, self.file, self.line
        lookup.traced_graph, lookup.traced_code = self.traced_graph, self.traced_code
        lookup.recompile_reasons = self.recompile_reasons


@dataclass(slots=True, eq=False)
class Process(RunRow):
    """One process as one source records it. `join_processes` adds to it what other logs of the process record."""

    kind: str = ""
    """What the source is; with others, the kinds of the logs in `sources`, which are known once logs are joined."""
    kinds: set[str] = field(default_factory=set)
    clock_first_us: int | None = None
    """First and last log prefix as microseconds of the local year: both logs of a process share that clock."""
    clock_last_us: int | None = None
    lookups: list[LookupRow] = field(default_factory=list)
    compiles: list[Compile] = field(default_factory=list)
    """The compiles that a trace records."""
    compiled: list[CompileRow] = field(default_factory=list)
    """The compiles that a text log tells of."""
    events: str | None = None
    """The events of a log, or of a part of one, of which no processes were made yet: see `log_events`."""
    end_state: str | None = None
    """Where a later reading of the events continues once the log has grown; None if it cannot."""

    def clock_us(self, time_ns: int | None) -> int | None:
        """A moment on the clock of its log prefixes; None if that is not known."""
        if time_ns is None or self.start_time is None or self.clock_first_us is None:
            return None
        return self.clock_first_us + (time_ns - self.start_time) // 1000


Snapshot = dict[str, Any]
"""The JSON object of a snapshot, as `snapshot_schema.json` declares it; what it lacks is null, or empty."""

WHOLE_SOURCE: Final = "the whole source"
"""The `where` of a problem that is a `SourceError`, of any kind."""


class ListedEntry(NamedTuple):
    """An entry that a lock lists, which is not there to be read: of its guards nothing is known."""

    cache: str
    cache_key: str
    source: str  # the path of the lock
    fx_keys: tuple[str, ...] = ()  # the FX keys that an AOTAutograd entry points to


_MOST_MESSAGES: Final = 100


class Problems(list[ProblemRow]):
    """Rows of problems. Like ones are one row: a megabyte may be half a million lines that are no records."""

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[tuple[str, str, str | None], ProblemRow] = {}
        self._messages: Counter[tuple[str, str]] = Counter()

    def note(self, source: str, where: str, kind: str, message: str, count: int = 1) -> bool:
        """Count a problem, or several alike; whether they got a row of their own."""
        of_kind = source, kind
        key: tuple[str, str, str | None] = source, kind, message
        known = self._known.get(key)
        if known is None and self._messages[of_kind] >= _MOST_MESSAGES:
            key = source, kind, None
            known = self._known.get(key)
        if known is not None:
            known.count += count
            return False
        self._messages[of_kind] += 1
        self._known[key] = one = ProblemRow(source, where, kind, message, count)
        self.append(one)
        return True


@dataclass(slots=True)
class Reading:
    """Everything read so far. Readers append to it; nothing is removed."""

    strict: bool = False
    details: HashDetails = field(default_factory=HashDetails)
    processes: list[Process] = field(default_factory=list)
    entries: list[EntryRow] = field(default_factory=list)
    """Every file of the cache directories, in order."""
    listed: list[ListedEntry] = field(default_factory=list)
    """Entries of locks."""
    timings: list[TimingRow] = field(default_factory=list)
    vllm_factors: list[FactorsRow] = field(default_factory=list)
    vllm_starts: list[StartRow] = field(default_factory=list)
    vllm_secrets: dict[str, int] = field(default_factory=dict)
    """Numbers that stand for values of secrets, by the value."""
    contexts: list[ContextRow] = field(default_factory=list)
    """Snapshots, in the order in which they were read."""
    problems: Problems = field(default_factory=Problems)
    cache_roots: list[str] = field(default_factory=list)
    """The cache directories that were read, even if there is no file in them."""
    details_of_key: dict[str, int] = field(default_factory=dict)
    """Set codes of details that AOTAutograd entries contain, by the FX key that they belong to."""
    silent: list[tuple[str, frozenset[int | None]]] = field(default_factory=list)
    """The text logs in which torch says nothing of a lookup or a compile, with the pids of their lines."""
    contents: dict[tuple[object, ...], EntryRow] = field(default_factory=dict)
    """The first entry of each content that is known by a hash: vLLM copies those of one layer into all that are alike."""

    def details_in_entries(self) -> Iterator[tuple[str, int]]:
        """The keys whose hash details entries contain, with the codes of the sets."""
        yield from self.details_of_key.items()
        for entry in self.entries:
            if entry.detail_set is not None and entry.cache_key is not None:
                yield entry.cache_key, entry.detail_set

    def problem(self, source: str, where: str, kind: str, message: str, count: int = 1) -> None:
        """Note what could not be read, or raise it under ``strict=True``."""
        if self.strict:
            raise RecordError(source, where, kind, message)
        self.problems.note(source, where, kind, message, count)


def not_a_hash_detail(text: str) -> str:
    """The message of a problem about a text that is no hash detail."""
    return f"not a hash detail: {text[:80]!r}"


def note_source(error: SourceError, reading: Reading) -> None:
    """Note an unreadable source as a problem, or raise it under ``strict=True``."""
    if reading.strict:
        raise error
    reading.problems.append(ProblemRow(error.source, WHOLE_SOURCE, error.kind, error.message))


def as_error(problem: ProblemRow) -> SourceError:
    """What `note_source` noted, as the error that it was."""
    return SourceError(problem.source, problem.message, problem.kind)


def read_or_note(read: Callable[[str, Reading], None], path: str, reading: Reading) -> None:
    """Read a source; it becomes a problem if it cannot be read."""
    try:
        read(path, reading)
    except SourceError as error:
        note_source(error, reading)
