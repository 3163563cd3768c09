"""What every reader gives: plain rows of one shape, whatever the source was.

A log gives `Process` objects that hold their lookups; a cache directory gives entries. Rows that could not
be read go to `problems`, or are raised at once under ``strict=True``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from cachescope.details import HashDetails
from cachescope.errors import RecordError, SourceError


@dataclass(slots=True)
class Lookup:
    """One attempt to find one key in one cache, as one source tells it.

    Times are nanoseconds since the epoch, UTC. `details` is a set code of the shared `HashDetails`.
    """

    cache: str
    time_ns: int | None
    cache_key: str | None = None
    outcome: str = "full_miss"
    cache_state: str | None = None
    status_detailed: str | None = None
    compile_id: str | None = None
    is_backward: bool | None = None
    bypass_reason: str | None = None
    guards_expr: str | None = None
    load_error: str | None = None
    time_taken_ns: int | None = None
    time_saved_ns: int | None = None
    end_time_ns: int | None = None
    logged_ns: int | None = None
    """When the outcome was written down: two logs of one process agree on it."""
    details: int | None = None
    entry_path: str | None = None
    """Where torch says it wrote the entry; only the AOTAutograd text log tells."""
    segment: int = 0
    """Counts the compiles that began under one compile id, so that one reused after a reset is told apart."""
    save_bypass: str | None = None
    """Why torch did not store what it compiled after this miss; only text logs tell."""
    save_error: str | None = None
    """Why torch could not store it, although it wanted to; only text logs tell."""
    compile_error: str | None = None
    """Why the compile of what this lookup missed failed, as ``fail_type: fail_reason``; only traces tell."""
    compile_ended: bool | None = None
    """Whether the log shows the end of that compile, whatever its end; None where the log cannot show it."""
    function: str | None = None
    """The user's function that was compiled, with its file and line."""
    file: str | None = None
    line: int | None = None
    is_details_cut: bool = False
    """Whether lines of its hash details are missing, so that none are kept."""


@dataclass(slots=True)
class Process:
    """One process as one source tells it; a trace and a text log of one process are joined later."""

    source: str
    kind: str
    pid: int | None
    rank: int | None = None
    torch_version: str | None = None
    python_version: str | None = None
    clock_first_us: int | None = None
    """First and last log prefix as microseconds of the local year: both logs of a process share that clock."""
    clock_last_us: int | None = None
    start_time_ns: int | None = None
    cache_dir: str | None = None
    lookups: list[Lookup] = field(default_factory=list)
    command: str | None = None
    """The program that was run, as `cachescope record` notes it."""
    exit_status: int | None = None
    """Of the command, as `cachescope record` notes it: 128 + n where signal n ended it."""
    is_cut: bool = False
    """Whether the log ends within a record: the process was killed, or the log was cut."""
    compiles: str | None = None
    """The compiles that a trace tells of, as `trace_compiles` writes them down."""
    looked_up: bool = True
    """False where the log shows that torch compiled with its caches switched off."""
    end_state: str | None = None
    """From what a later reading goes on where the log has grown: see `trace_end`, and `text_end`, which the first
    process of a log holds for all. None where it cannot."""


FileFacts = tuple[str, str, str, int | None, int | None, str | None, str, int | None]
"""What the name, the size and the times of a file say: what an `Entry` is made of, in that order."""
FILE_FACTS: Final = (
    "cache",
    "path",
    "root",
    "size_bytes",
    "modified_time_ns",
    "cache_key",
    "status",
    "changed_time_ns",
)


class Entry:
    """One file of a cache directory whose content is read.

    What the content says are defaults of the class: a reader sets only what it finds.
    """

    damage: str | None = None
    guards_expr: str | None = None
    time_taken_ns: int | None = None
    code_key: str | None = None
    device_types: tuple[str, ...] = ()
    details: int | None = None
    fx_keys: tuple[str, ...] = ()
    """The FX keys that an AOTAutograd entry points to."""
    kernel_keys: tuple[str, ...] = ()
    """Of a wrapper, the kernels it holds the source of; of a C++ file, the one kernel that it is."""
    triton_hashes: tuple[str, ...] = ()
    """Triton directories that it refers to, as 64 hexadecimal digits."""
    source_code: str | None = None
    cudagraphs_skipped: str | None = None
    name: str | None = None
    """What the thing is called, where that is not its key: a kernel, a function, a device."""
    detail: str | None = None
    """What the file says, in a few words."""
    link: str | None = None
    """Where the link leads through which it was reached."""

    def __init__(
        self,
        cache: str,
        path: str,
        root: str,
        size_bytes: int | None = None,
        modified_time_ns: int | None = None,
        cache_key: str | None = None,
        status: str = "ok",
        changed_time_ns: int | None = None,
    ) -> None:
        self.cache = cache
        self.path = path
        self.root = root
        self.size_bytes = size_bytes
        self.modified_time_ns = modified_time_ns
        self.cache_key = cache_key
        self.status = status
        self.changed_time_ns = changed_time_ns


class Entries:
    """Every file of the cache directories, in order: an `Entry` of those that were opened, plain facts of all.

    Of a hundred thousand files most are never opened, and an object for each would cost more than finding them.
    """

    def __init__(self) -> None:
        self.files: list[FileFacts] = []
        self.seen_ns: list[int | None] = []
        self.opened: dict[int, Entry] = {}

    def add(
        self,
        files: Iterable[FileFacts],
        opened: Mapping[int, Entry | None],
        seen_ns: int | None = None,
    ) -> None:
        """Add files, and what was read of some of them, by number among these; None where one is gone.

        `seen_ns` is the time before the first of them was looked for.
        """
        for number, facts in enumerate(files):
            if number in opened:
                entry = opened[number]
                if entry is None:
                    continue
                self.opened[len(self.files)] = entry
            self.files.append(facts)
        self.seen_ns += [seen_ns] * (len(self.files) - len(self.seen_ns))

    def __len__(self) -> int:
        return len(self.files)

    def __iter__(self) -> Iterator[Entry]:
        for number, facts in enumerate(self.files):
            yield self.opened.get(number) or Entry(*facts)


@dataclass(slots=True)
class Timing:
    """One choice that max-autotune measured."""

    entry: Entry
    op: str
    inputs: str
    precision: str
    choice: str
    time_ms: float | None
    """None where it failed."""
    device_name: str | None
    triton_version: str | None
    runtime: str | None
    runtime_version: str | None
    is_chosen: bool = False
    margin: float | None = None
    """The second best time divided by this, the best one."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that could not be read."""

    source: str
    where: str
    kind: str
    message: str


WHOLE_SOURCE: Final = "the whole source"
"""Where a problem is that is a `SourceError`, of whichever kind."""


@dataclass(slots=True)
class Reading:
    """Everything read so far. Readers append to it; nothing is removed."""

    strict: bool = False
    details: HashDetails = field(default_factory=HashDetails)
    processes: list[Process] = field(default_factory=list)
    entries: Entries = field(default_factory=Entries)
    timings: list[Timing] = field(default_factory=list)
    contexts: list[dict[str, object]] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    details_of_key: dict[str, int] = field(default_factory=dict)
    """Set codes that an AOTAutograd entry holds for the FX keys it points to."""
    known_json: dict[bytes, int] = field(default_factory=dict)
    """Component codes by how traces spell them: most logs of a job say what those before them said."""
    known_lines: dict[bytes, int] = field(default_factory=dict)
    """Component codes by how text logs spell them."""

    def beside(self) -> Reading:
        """An empty reading with the same hash details."""
        return Reading(self.strict, self.details, known_json=self.known_json, known_lines=self.known_lines)

    def problem(self, source: str, where: str, kind: str, message: str) -> None:
        """Note one thing that could not be read, or raise it under ``strict=True``."""
        if self.strict:
            raise RecordError(source, where, kind, message)
        self.problems.append(Problem(source, where, kind, message))

    def add_details(self, components: list[str], source: str, where: str) -> int | None:
        """Keep the components of one key; what is no hash detail becomes a problem."""
        set_code, rejected = self.details.add_or_join(components)
        for text in rejected:
            self.problem(source, where, "hash_detail", not_a_hash_detail(text))
        return set_code


def not_a_hash_detail(text: str) -> str:
    """The message of a problem about a component that is none."""
    return f"not a hash detail: {text[:80]!r}"


def note_source(error: SourceError, reading: Reading) -> None:
    """Make a source that cannot be read a problem, or raise it under ``strict=True``."""
    if reading.strict:
        raise error
    reading.problems.append(Problem(error.source, WHOLE_SOURCE, error.kind, error.message))


def read_or_note(read: Callable[[str, Reading], None], path: str, reading: Reading) -> None:
    """Read a source, which becomes a problem where it cannot be read."""
    try:
        read(path, reading)
    except SourceError as error:
        note_source(error, reading)
