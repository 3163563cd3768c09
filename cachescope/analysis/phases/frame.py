"""The rows of the frame ``phases``: the traces of all runs read for their events, swept for self times, and named; and what hits could still save.

So self times add up to the time during which any event was open, and nothing counts twice. Events almost always nest.
Events of torch's pools may overlap: an end closes the latest open event of its name, wherever it is on the stack.

Threads of one process may compile at once. A trace names none, but torch lets only one of them work at a time
(torch/_dynamo/convert_frame.py, `compile_lock`): time counts for the thread that works, not for one that waits.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from cachescope.analysis.phases.names import (
    BACKENDS,
    CODE_GENERATION,
    COMPILER,
    ENTIRE_FRAME,
    GUARDS,
    HEADERS,
    LOADING,
    LOADING_CODE,
    VECTOR_TEST,
    WAITING_FOR_BUILD,
    WAITING_FOR_CODE,
    WAITING_FOR_TEST,
    inferred_phase,
    phase_of,
)
from cachescope.analysis.rates import known_sum
from cachescope.catalogue.facts import is_version, release
from cachescope.frames.compile_rows import PhaseRow
from cachescope.frames.recorded_rows import LookupRow, ProblemRow, RunRow
from cachescope.grouping import by_key
from cachescope.readers.file_fingerprints import Stamps
from cachescope.readers.json_record import MOST_NS_OF_A_DURATION
from cachescope.readers.logs.second_pass import TraceEvent, TraceEvents, read_traces
from cachescope.readers.logs.trace_compiles import first_attempt
from cachescope.terms import AOTAUTOGRAD, FXGRAPH

FRAME_COMPILE: Final = "dynamo"
"""torch/_dynamo/convert_frame.py: the event that each compile of a frame begins with."""
# torch/_functorch/_aot_autograd/runtime_wrappers.py and torch/_inductor/compile_fx.py, `compile_fx_backward`: these begin before
# the lock is taken. All other events of a frame's compile are written while it has the lock.
_BEFORE_THE_LOCK: Final = frozenset({"entire_backward_compile", "compile_fx.<locals>.bw_compiler"})
# A process has a few that compile.
_MOST_THREADS: Final = 256
# Threads take the time a little before they write an event. If the time goes back further, the clock was set.
_SET_BACK_NS: Final = 10**9
_FIRST_WITH_BACKENDS: Final = (2, 11)

NOT_NAMED: Final = "not named: "


class Place(NamedTuple):
    """An event by its name, and the compile it is of."""

    compile_id: str | None
    segment: int
    event: str
    inferred: str = ""  # the phase, where it follows from the events around it and not from its name


@dataclass(slots=True)
class Spent:
    """The events of one name in one compile."""

    count: int = 0  # how many began
    unended: int = 0  # how many of them have no end in the trace
    time_ns: int = 0  # the time in which at least one of them was open
    self_time_ns: int = 0  # the part of it in which no later event was open

    def add(self, own_ns: int, count: int) -> None:
        """Add some events, or the part of one, in which no later event was open."""
        self.count += count
        self.time_ns += own_ns
        self.self_time_ns += own_ns


@dataclass(slots=True, eq=False)
class _Open:
    place: Place
    is_ended: bool = False
    # For loaded code: its own time and the compiler's before the compiler first ran in it, and from then until kernels are waited for.
    before: tuple[int, int, int] | None = None
    meanwhile: tuple[int, int, int] | None = None
    # For a frame: its own time after its guards had been built.
    until_guards_ns: int | None = None


class _Thread:
    """What is open in one thread."""

    def __init__(self) -> None:
        self.open: list[_Open] = []
        """Events in the order in which they began. One that ended stays until it is the last. The first has not ended."""
        self.of_name: dict[str, list[_Open]] = {}
        self.of_compile: Counter[str | None] = Counter()
        self.under_the_lock = 0

    def begin(self, one: _Open) -> None:
        """Note an event that begins."""
        self.open.append(one)
        self.of_name.setdefault(one.place.event, []).append(one)
        self._count(one, 1)

    def end(self, one: _Open) -> None:
        """Note that an event ended."""
        one.is_ended = True
        self._count(one, -1)

    def _count(self, one: _Open, by: int) -> None:
        self.of_compile[one.place.compile_id] += by
        self.under_the_lock += by * (one.place.event not in _BEFORE_THE_LOCK)


class Sweep:
    """Goes through the events of one process, and adds up what was spent by place."""

    def __init__(self) -> None:
        self.spent: dict[Place, Spent] = {}
        self.stretches: dict[Place, list[tuple[int, int]]] = {}
        """Intervals in which code was generated or loaded and no later event was open, and those in which the compiler ran for the vector test."""
        self.built: list[tuple[int, int]] = []
        """When the compiler ran for loaded code, until the code was loaded."""
        self.after_guards: tuple[Place, int] | None = None
        """The first frame that was compiled, and its own time after its guards had been built."""
        self._segments: Counter[str] = Counter()
        self._forget()

    def _forget(self) -> None:
        self._threads: list[_Thread] = []
        """The threads with open events. The last one works, and the others wait."""
        self._times_open: Counter[Place] = Counter()
        self._since: dict[Place, int] = {}
        self._now: int | None = None
        self._passed = 0

    def run(self, events: Iterable[TraceEvent]) -> None:
        """Take the events of one trace in order. Events that are open at its end have no end."""
        for event in events:
            self._advance(event.time_ns)
            if event.is_begin:
                self._begin(event)
            else:
                self._end(event)
        for thread in list(self._threads):
            self._end_all(thread)
        self._forget()

    def _advance(self, now: int) -> None:
        before = now if self._now is None else self._now
        passed = now - before
        self._now = now if passed >= 0 or passed < -_SET_BACK_NS else before
        if 0 < passed <= MOST_NS_OF_A_DURATION and self._threads:
            self._passed += passed
            place = self._threads[-1].open[-1].place
            self.spent[place].self_time_ns += passed
            if place.event in (CODE_GENERATION, LOADING_CODE) or place.inferred == VECTOR_TEST:
                self.stretches.setdefault(place, []).append((before, now))
            elif self.built and self.built[-1][1] == before and place.event in (COMPILER, WAITING_FOR_CODE):
                self.built[-1] = self.built[-1][0], now
            elif place.event == COMPILER:
                self.built.append((before, now))

    def _begin(self, event: TraceEvent) -> None:
        if event.name == FRAME_COMPILE and event.compile_id is not None:
            self._segments[event.compile_id] += 1
        thread = self._thread_of(event)
        under = thread.open[-1].place if thread.open else Place(None, 0, "")
        inferred = inferred_phase(event.name, under.event)
        if thread.open and event.name in (COMPILER, WAITING_FOR_CODE):
            self._find_headers(thread.open, event.name)
        place = under._replace(event=event.name, inferred=inferred)
        if event.compile_id is not None:  # events of a pool's thread name none
            place = place._replace(compile_id=event.compile_id, segment=self._segments[event.compile_id])
        self.spent.setdefault(place, Spent()).count += 1
        if inferred and place in self.stretches:
            self._find_loading(under, self.stretches[place][-1][1])
        if not self._times_open[place]:
            self._since[place] = self._passed
        self._times_open[place] += 1
        thread.begin(_Open(place))

    def book(self, place: Place, phase: str, ns: int, count: int = 0) -> None:
        """Book a part of what was spent on events as of another phase."""
        self.spent[place].add(-ns, -count)
        self.spent.setdefault(place._replace(inferred=phase), Spent()).add(ns, count)

    def _find_loading(self, generating: Place, tested: int) -> None:
        """Book what passed since the last test, unless an event came between: a child process loaded what was compiled."""
        stretches = self.stretches.get(generating)
        if stretches and stretches[-1] == (tested, self._now):
            self.book(generating, LOADING, stretches.pop()[1] - tested)

    def _find_headers(self, opened: list[_Open], event: str) -> None:
        """Book the time of precompiled headers, if a kernel is compiled after them: torch waits for that kernel alone.

        An event covers what is compiled before the headers, and none the headers themselves.
        """
        loading = next((one for one in reversed(opened[-2:]) if one.place.event == LOADING_CODE), None)
        if loading is None:
            return
        compiler = self.spent.get(loading.place._replace(event=COMPILER), Spent())
        now = self.spent[loading.place].self_time_ns, compiler.self_time_ns, compiler.count
        if loading is opened[-1]:
            if event == COMPILER:
                loading.before = loading.before or now
            elif loading.before is not None:
                own, by_compiler, runs = (one - was for one, was in zip(now, loading.before, strict=True))
                loading.meanwhile = own, by_compiler, runs
        elif event == COMPILER and opened[-1].place.event == WAITING_FOR_CODE and loading.meanwhile:
            own, by_compiler, runs = loading.meanwhile
            loading.meanwhile = None
            self.stretches.pop(loading.place, None)
            for name, ns, count in ((LOADING_CODE, own, 0), (COMPILER, by_compiler, runs)):
                place = loading.place._replace(event=name)
                if place in self.spent:
                    self.book(place, HEADERS, ns, count)

    def _thread_of(self, event: TraceEvent) -> _Thread:
        """The thread in which an event begins: that of its compile, which now works, unless it waits for the lock."""
        threads = self._threads
        if threads and event.compile_id is None:
            return threads[-1]
        waits = event.name in _BEFORE_THE_LOCK
        for thread in threads:
            if thread.of_compile[event.compile_id]:
                if not waits:
                    threads.remove(thread)
                    threads.append(thread)
                return thread
        works = bool(threads) and threads[-1].under_the_lock > 0
        if (works and not waits) or len(threads) == _MOST_THREADS:
            # A compile within another one.
            return threads[-1]
        thread = _Thread()
        threads.insert(0 if works else len(threads), thread)
        return thread

    def _end(self, event: TraceEvent) -> None:
        having = [one for one in reversed(self._threads) if one.of_name.get(event.name)]
        if not having:
            return
        thread = next((one for one in having if one.of_compile[event.compile_id]), having[0])
        one = thread.of_name[event.name].pop()
        self._find_after_guards(thread, one)
        self._close(thread, one)
        if one is thread.open[0]:
            # When the outermost event ends, all that began in it has ended, whatever the trace lost.
            self._end_all(thread)
            return
        while thread.open[-1].is_ended:
            thread.open.pop()

    def _find_after_guards(self, thread: _Thread, ended: _Open) -> None:
        if self.after_guards is not None:
            return
        if ended.place.event == GUARDS and thread.of_name.get(ENTIRE_FRAME):
            frame = thread.of_name[ENTIRE_FRAME][-1]
            frame.until_guards_ns = self.spent[frame.place].self_time_ns
        elif ended.until_guards_ns is not None:
            self.after_guards = ended.place, self.spent[ended.place].self_time_ns - ended.until_guards_ns

    def _close(self, thread: _Thread, one: _Open) -> None:
        thread.end(one)
        self._times_open[one.place] -= 1
        if not self._times_open[one.place]:
            self.spent[one.place].time_ns += self._passed - self._since[one.place]

    def _end_all(self, thread: _Thread) -> None:
        for one in thread.open:
            if not one.is_ended:
                self.spent[one.place].unended += 1
                self._close(thread, one)
        self._threads.remove(thread)


def read_phases(runs: Iterable[RunRow], stamped: Stamps) -> tuple[list[PhaseRow], list[ProblemRow]]:
    """Read the traces of runs once more, for their events. Also returns problems with events and traces that cannot be read."""
    of_run = {row.run: row for row in runs}
    read, problems = read_traces(of_run.values(), stamped, "its phases", _swept)
    swept = list(read)
    for run, sweep in swept:
        _find_imports(of_run[run].torch_version, sweep)
    _find_waits([(of_run[run].cache_dir, sweep) for run, sweep in swept])
    return [row for run, sweep in swept for row in _rows(run, sweep.spent)], problems


def _swept(path: str, size: int | None) -> tuple[Sweep, list[ProblemRow]]:
    events, sweep = TraceEvents(path, size), Sweep()
    sweep.run(events)
    return sweep, events.problems


def _find_imports(torch_version: str | None, sweep: Sweep) -> None:
    """Book the time in which torch imported its backends. It has no event: it is what the first frame takes after its guards."""
    version = torch_version or ""
    if sweep.after_guards is None or not is_version(version) or release(version) < _FIRST_WITH_BACKENDS:
        return
    place, ns = sweep.after_guards
    sweep.book(place, BACKENDS, ns)


def _find_waits(swept: Sequence[tuple[str | None, Sweep]]) -> None:
    """Book the time in which a process waited for a lock while another one tested the CPU, or compiled the same code.

    No event shows the wait. It is inferred from a stretch without any event that lasts to the end of the test or of the compiler, in
    the same folder. Who waits for a test generates its first code, since torch asks once a process (torch/_inductor/cpu_vec_isa.py,
    `valid_vec_isa_list`), and makes no test itself. Who waits for a compiler loads code that it generated.
    """
    tests: dict[str | None, list[tuple[int, int]]] = defaultdict(list)
    builds: dict[str | None, list[tuple[int, int]]] = defaultdict(list)
    for folder, sweep in swept:
        builds[folder] += ((ended, began) for began, ended in sweep.built)
        for place, stretches in sweep.stretches.items():
            if place.inferred:
                tests[folder].append((stretches[-1][1], stretches[0][0]))
    for folder, sweep in swept:
        if folder is None:
            continue
        generates = [place for place in sweep.stretches if place.event == CODE_GENERATION]
        if not any(place.inferred for place in sweep.stretches):
            _book_wait(sweep, generates[:1], sorted(tests[folder]), WAITING_FOR_TEST)
        loads = [place._replace(event=LOADING_CODE) for place in generates]
        _book_wait(sweep, loads, sorted(builds[folder]), WAITING_FOR_BUILD)


def _book_wait(
    sweep: Sweep, places: Iterable[Place], meanwhile: Sequence[tuple[int, int]], phase: str
) -> None:
    for place in places:
        stretches = sweep.stretches.get(place, ())
        if waited_ns := sum(_waited(stretch, meanwhile) for stretch in stretches):
            sweep.book(place, phase, waited_ns)


def _waited(stretch: tuple[int, int], meanwhile: Sequence[tuple[int, int]]) -> int:
    """How much of a stretch was covered by the tests or compiler runs that ended in it, each given as its end and its beginning."""
    began, ended = stretch
    within = meanwhile[bisect_right(meanwhile, (began + 1,)) : bisect_right(meanwhile, (ended + 1,))]
    waited = 0
    for end, start in reversed(within):
        start = max(began, start)
        waited += max(0, min(end, ended) - start)
        ended = min(ended, start)
    return waited


def _rows(run: int, spent: Mapping[Place, Spent]) -> Iterator[PhaseRow]:
    for place, one in spent.items():
        phase = phase_of(place.event, place.inferred)
        yield PhaseRow(
            run=run,
            compile_id=place.compile_id,
            segment=place.segment,
            phase=f"{NOT_NAMED}{place.event}" if phase is None else phase.name,
            event=place.event,
            count=one.count,
            unended=one.unended,
            # Far longer than any compile: a hostile trace. A saved scope would not be read again.
            time_ns=min(one.time_ns, MOST_NS_OF_A_DURATION),
            self_time_ns=min(one.self_time_ns, MOST_NS_OF_A_DURATION),
            is_skipped_by_hit=None if phase is None else phase.is_skipped_by_hit,
        )


class Readings(NamedTuple):
    """The time of one process, in three parts."""

    total_ns: int  # the time that its outermost events cover
    # The self times of phases that an AOTAutograd hit skips, in compiles that had none and ask a cache. No bound: a hit still
    # asks the compiler what the CPU has, and loads code, which takes other times than where it was just
    # compiled.
    could_save_ns: int
    stays_ns: int  # the rest, which would remain even if everything hit, as far as the phases show
    # The compile time that its hits saved, as measured when their entries were made; None if it had hits, and
    # none of their times is recorded.
    saved_ns: int | None
    # The hits whose times add up to it: of the FX cache, and of AOTAutograd if no FX lookup is recorded.
    hits: int
    hits_without_time: int  # how many of them have no recorded time, so that `saved_ns` lacks what they saved
    unended: int  # events that have no end in the trace


def readings_of_runs(phases: Iterable[PhaseRow], lookups: Iterable[LookupRow]) -> dict[int, Readings]:
    """The readings of each run that has events."""
    rows = by_key((phase.run, phase) for phase in phases)
    made = by_key((lookup.run, lookup) for lookup in lookups)
    return {run: _readings(mine, made[run]) for run, mine in rows.items()}


def _readings(rows: list[PhaseRow], lookups: list[LookupRow]) -> Readings:
    # AOTInductor uses no cache: no hit would spare its compiles.
    not_to_save = {
        compile_of(row)
        for row in lookups
        if row.aot_mode or (row.cache == AOTAUTOGRAD and row.outcome == "hit")
    }
    has_fx = {compile_of(row) for row in lookups if row.cache == FXGRAPH}
    # An AOTAutograd hit contains the FX hits of its graphs, whose times would count twice.
    hits = [
        row.time_saved_ns
        for row in lookups
        if row.outcome == "hit" and (row.cache == FXGRAPH or compile_of(row) not in has_fx)
    ]
    total = sum(row.self_time_ns for row in rows)
    could_save = sum(
        row.self_time_ns
        for row in rows
        if row.is_skipped_by_hit and (row.compile_id, row.segment) not in not_to_save
    )
    return Readings(
        total_ns=total,
        could_save_ns=could_save,
        stays_ns=total - could_save,
        saved_ns=known_sum(hits) if hits else 0,
        hits=len(hits),
        hits_without_time=hits.count(None),
        unended=sum(row.unended for row in rows),
    )


def compile_of(row: LookupRow) -> tuple[str | None, int]:
    """The compile of a lookup, as events name it: without the attempt, and in the segment of the first attempt."""
    compile_id = row.compile_id
    if compile_id is None or "_" not in compile_id:
        return compile_id, row.segment
    return first_attempt(compile_id), row.segment or 1


def self_times(rows: Iterable[PhaseRow]) -> dict[str, int]:
    """The self time of each phase, the longest first."""
    found = Counter[str]()
    for row in rows:
        found[row.phase] += row.self_time_ns
    return dict(found.most_common())
