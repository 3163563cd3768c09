"""Where the time of compiling went: phases, processes side by side, who waited for whom, and what caches could do about it; and all of it for a viewer of traces."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from cachescope.analysis.phases.names import (
    ONCE_A_FOLDER,
    REST,
    WAITING_FOR_BUILD,
    WAITING_FOR_TEST,
    inferred_phase,
    phase_of,
)
from cachescope.answers.names import cache_name, place_name, run_name
from cachescope.answers.recording import Recording
from cachescope.answers.time_spent import (
    Besides,
    CollectivesApart,
    Contrast,
    RanksWaited,
    RunTime,
    TimeSpent,
    phase_differences,
)
from cachescope.frames.recorded_rows import LookupRow, ProblemRow
from cachescope.grouping import by_key
from cachescope.json_types import JsonObject
from cachescope.readers.logs.second_pass import TraceEvent, TraceEvents, read_traces
from cachescope.report.blocks import Block, Cell, Head, Sorted, Table, shared, shortened, timed
from cachescope.report.layout import Line, parted, problem_lines, rest
from cachescope.report.vllm import start_lines
from cachescope.wording import and_more, duration, listed, numbered, plural

_GUARDS: Final = "guards"
_PHASES: Final = 3
_RANKS: Final = 4
_LEAST_SHARE: Final = 0.05
_APART: Final = 3

# Waits, which no event shows: the phase, what another process did meanwhile, and why it is taken for a wait.
_INFERRED_WAITS: Final = (
    (WAITING_FOR_TEST, "tested the CPU's vector instructions, once a folder", "they generated code without any event until that test"),
    (WAITING_FOR_BUILD, "compiled C++ code into the same folder", "they loaded code that they had generated, without any event, until that compiler"),
)  # fmt: skip
_SIDE_BY_SIDE: Final = 4
_RUNS: Final = 12
_LEAST_BESIDES: Final = 0.05


def slowest_text(runs: Sequence[RunTime]) -> str:
    """``run 0, the slowest of 3 processes, spent 14.2 s in torch.compile: vector instruction test 7.2 s, …; hits could still save about 2.3 s``."""
    slowest = max(runs, key=lambda one: one.readings.total_ns)
    among = f", the slowest of {len(runs):,} processes," if len(runs) > 1 else ""
    least = _LEAST_SHARE * slowest.readings.total_ns
    phases = [f"{name} {duration(ns)}" for name, ns in slowest.phases.items() if ns > least][:_PHASES]
    where = f": {', '.join(phases)}" if phases else ""
    text = f"{slowest.name}{among} spent {duration(slowest.readings.total_ns)} in torch.compile{where}"
    if (could := slowest.could_save_ns) is None:
        return text
    return (
        f"{text}; {f'hits could still save about {duration(could)}' if could else 'no hit could save more'}"
    )


def contrast_text(contrast: Contrast) -> str:
    """``run 0 took 9.3 s longer than run 1: C++ compiler +8.7 s, code generation +1.4 s; loading -1.3 s``."""
    slower, other = (one.path or one.name for one in (contrast.slower, contrast.other))
    if contrast.of > 2 or contrast.is_of_start:
        which = " ranks of its start" if contrast.is_of_start else ""
        slower, other = f"the slowest of {contrast.of:,}{which}, {slower},", f"the quickest, {other}"
    if duration(contrast.longer_ns) == duration(0):
        return f"{slower} took as long as {other}, to the millisecond"
    return f"{slower} took {duration(contrast.longer_ns)} longer than {other}{_where(contrast.phases)}"


def path_texts(members: Sequence[RunTime]) -> Iterator[str]:
    """The process of each path, or the one that represents it."""
    for member in members:
        if member.path is not None:
            among = f" represented by its slowest process of {member.of_path}," if member.of_path > 1 else ""
            yield f"{member.path} is{among} {member.name}"


def rank_texts(ranks: RanksWaited, runs: Sequence[RunTime]) -> Iterator[str]:
    """How long ranks waited for each other, or that no event shows it."""
    inferred = False
    for phase, what, how in _INFERRED_WAITS:
        if waited_ns := {one.run: one.phases[phase] for one in runs if phase in one.phases}:
            inferred = True
            yield f"waited while another process {what}: {_waits(waited_ns, runs)}; inferred: {how} had ended"
    if ranks.waited_ns:
        yield f"waited for other ranks: {_waits(ranks.waited_ns, runs)}"
    elif not inferred:
        yield "no event shows whether a rank waited for another: torch has one only where ranks agree on sizes or guards"
    if ranks.last is not None:
        yield f"{ranks.last.name} waited least: the others waited for it"


def _waits(waited_ns: Mapping[int, int], runs: Sequence[RunTime]) -> str:
    waited = sorted((one for one in runs if one.run in waited_ns), key=lambda one: -waited_ns[one.run])
    return listed((f"{one.name} {duration(waited_ns[one.run])}" for one in waited), _RANKS)


def apart_texts(apart: Sequence[CollectivesApart]) -> Iterator[str]:
    """Which functions ranks compiled with different collectives."""
    for one in apart[:_APART]:
        sides = [f"{_collectives(names)} in {numbered('rank', ranks)}" for names, ranks in one.of_ranks]
        what = f"{one.place}, {'backward of ' if one.is_backward else ''}compile {one.compile_id}"
        yield f"{what}, was compiled with different collectives: {listed(sides, _RANKS, '; ')}"
    if len(apart) > _APART:
        yield and_more(len(apart) - _APART, "such compile", "--json lists all")
    if apart:
        yield "ranks may differ there for a reason, as the stages of a pipeline do"


def _collectives(names: Sequence[str]) -> str:
    """``all_reduce ×2, all_gather_into_tensor``, in their order."""
    if not names:
        return "none"
    runs = [(name, len(list(same))) for name, same in groupby(map(_short, names))]
    return listed([name if count == 1 else f"{name} ×{count}" for name, count in runs], 6)


def _short(name: str) -> str:
    """``all_reduce`` of ``torch.ops._c10d_functional.all_reduce_.default``."""
    return name.removesuffix(".default").rpartition(".")[2].rstrip("_")


def machine_lines(one: Collection[str], other: Collection[str]) -> Iterator[Line]:
    """A note that processes differ in cores or limits; nothing if these are not recorded for both."""
    if all(one) and all(other) and one and other and {*one} != {*other}:
        sides = [listed(sorted({*machines}), _SIDE_BY_SIDE, "; ") for machines in (one, other)]
        yield Line(f"on other machines: {sides[0]}, and {sides[1]}", 3, hang=3)


def signed(ns: int) -> str:
    """A difference of times with its sign.

    Examples
    --------
    >>> signed(1_300_000_000), signed(-8_000_000), signed(-3)
    ('+1.3 s', '-8 ms', '0 ms')
    """
    text = duration(abs(ns))
    return text if text == duration(0) else f"{'+' if ns > 0 else '-'}{text}"


def _where(phases: Mapping[str, int]) -> str:
    """The phases that make up most of a difference, and those that took less."""
    least = _LEAST_SHARE * max(map(abs, phases.values()), default=0)
    large = [(name, ns) for name, ns in phases.items() if abs(ns) > least]
    more = [f"{name} {signed(ns)}" for name, ns in large if ns > 0]
    less = [f"{name} {signed(ns)}" for name, ns in reversed(large) if ns < 0]
    parts = [listed(texts, _PHASES) for texts in (more, less) if texts]
    return f": {'; '.join(parts)}" if parts else ""


def time_blocks(spent: TimeSpent) -> list[Block]:
    """The tables, and below them what could be saved."""
    if not spent.runs:
        text = "no trace with events was read: torch 2.5 and later write them to the folder that TORCH_TRACE names"
        parts = (start_lines(spent.starts), [Line(text, style="bold")])
        return [*list(parted(parts))[1:], *problem_lines(spent.problems)]
    shown = told = spent.members
    title = "where the time of compiling went"
    if len(shown) > _RUNS:
        ordered = sorted(shown, key=lambda one: one.readings.total_ns)
        shown, told = (ordered[-1], ordered[len(ordered) // 2], ordered[0]), spent.alike
        title += f": the slowest of {len(ordered):,} processes, the median and the quickest"
    apart = f"{shown[1].run} - {shown[0].run}" if len(spent.members) == 2 else ""
    blocks: list[Block] = [Line(slowest_text(spent.runs), style="bold"), Line()]
    for first in range(0, len(shown), _SIDE_BY_SIDE):
        some = shown[first : first + _SIDE_BY_SIDE]
        blocks += [phases_table(title, {f"run {one.run}": one.phases for one in some}, apart), Line()]
        title = "further processes"
    if spent.contrast is not None:
        blocks.append(Line(contrast_text(spent.contrast), hang=3, style="bold"))
        blocks += (Line(text, 3, "dim", hang=6) for text in path_texts(spent.members))
        blocks += machine_lines([spent.contrast.slower.machine], [spent.contrast.other.machine])
        waited = () if spent.ranks is None else rank_texts(spent.ranks, spent.runs)
        blocks += (Line(text, hang=3) for text in (*waited, *apart_texts(spent.apart)))
        blocks.append(Line())
    for one in told[:_RUNS]:
        blocks += _reading_lines(one)
    blocks += rest(len(told) - _RUNS, "command", "--json lists all runs", indent=0)
    if spent.without:
        names = listed(spent.without, 3)
        blocks.append(Line(f"no trace with events: {names}", style="dim"))
    return [*blocks, *parted([start_lines(spent.starts)]), *problem_lines(spent.problems)]


def phases_table(name: str, sides: Mapping[str, Mapping[str, int]], apart: str = "") -> Table:
    """The self time of each phase on each side with its share, the longest first; under the head `apart`, how much longer it took on the second side."""
    longest = {phase: max(of.get(phase, 0) for of in sides.values()) for of in sides.values() for phase in of}
    totals = {side: sum(of.values()) for side, of in sides.items()}
    longer = phase_differences(*sides.values()) if apart else {}

    def row(phase: str) -> Iterator[Cell]:
        yield shortened(phase, 30)
        for side, of in sides.items():
            ns = of.get(phase)
            yield timed(ns)
            yield None if ns is None or not totals[side] else shared(ns / totals[side])
        yield from [Sorted(signed(longer[phase]), longer[phase], "ns")] if apart else []

    heads = [Head("phase"), *(Head(text, "number") for side in sides for text in (side, "share"))]
    in_all: list[Cell] = ["in all", *(cell for ns in totals.values() for cell in (timed(ns), None))]
    if apart:
        heads.append(Head(apart, "number"))
        in_all.append(Sorted(signed(sum(longer.values())), sum(longer.values()), "ns"))
    # Phases shorter than a millisecond everywhere are left out.
    seen = [phase for phase, ns in longest.items() if duration(ns) != duration(0)]
    rows = (tuple(row(phase)) for phase in sorted(seen, key=lambda phase: -longest[phase]))
    return Table(name, tuple(heads), (*rows, tuple(in_all)))


def _reading_lines(one: RunTime) -> Iterator[Line]:
    readings = one.readings
    if one.is_preflight:
        why = "it compiled nothing, so they do not show what hits would save a real run"
        yield Line(f"{one.name}: its own times; {why}", hang=3)
        return
    if one.could_save_ns is None:
        could, stays = "no lookup of it is recorded", "so that what hits could save is not known"
    elif one.could_save_ns:
        could = f"hits in all caches could still save about {duration(readings.could_save_ns)}"
        stays = f"about {duration(readings.stays_ns)} stay even then"
    else:
        could, stays = "no hit could save more", f"{duration(readings.stays_ns)} stay"
    once = sum(one.phases.get(phase, 0) for phase in ONCE_A_FOLDER)
    of_folder = f", {duration(once)} of them once a folder" if once and one.could_save_ns is not None else ""
    saved = "" if one.could_save_ns is None else f"; {_saved(one)}"
    yield Line(f"{one.name}: {could}, {stays}{of_folder}{saved}", hang=3)
    if besides := besides_text(one.besides, readings.total_ns):
        yield Line(besides, 3, "dim", hang=6)
    if readings.unended:
        text = f"{plural(readings.unended, 'event')} without an end in the log: the process ended in it, still runs, or the log lost it"
        yield Line(text, 3, "dim")
    if not one.has_tracing:
        guards = "" if _GUARDS in one.phases else " and guards"
        text = f"no event of Dynamo's tracing{guards} is recorded: that time is in “{REST}”"
        yield Line(text, 3, "dim")


def besides_text(besides: Besides, total_ns: int) -> str:
    """The time outside of compiles, as far as recorded; empty if that is next to nothing."""
    between_ns = besides.between_ns if (besides.between_ns or 0) > _LEAST_BESIDES * total_ns else None
    parts = (
        (besides.before_ns, "from the start of the command to its first record, imports among them"),
        (between_ns, "between the first and the last record"),
        (besides.after_ns, "from the last record to the end of the command"),
    )
    told = "; ".join(f"{duration(ns)} {what}" for ns, what in parts if ns is not None)
    return told and f"in no event: {told}"


def _saved(one: RunTime) -> str:
    readings = one.readings
    if not readings.hits:
        return "nothing hit"
    hits = f"{'its' if one.of == 1 else 'their'} {plural(readings.hits, 'hit')}"
    if readings.saved_ns is None:
        return f"what {hits} saved is not recorded"
    least = "at least " if readings.hits_without_time else ""
    return f"{hits} saved {least}{duration(readings.saved_ns)}"


class Slice(NamedTuple):
    """Something that took its time."""

    start_ns: int
    end_ns: int
    name: str
    kind: str
    more: JsonObject


def trace_object(read: Recording) -> JsonObject:
    """What each process did when, in the trace event format, which ui.perfetto.dev, chrome://tracing and speedscope open.

    A process is a run, in the order of ranks. It has a row of lookups, from the question to the answer or to the end of the compile, and
    one of torch's events with their phases; where threads overlap it has several, for viewers need slices of a row to nest.
    """
    runs = read.facts.runs
    lookups = by_key(
        (row.run, _of_lookup(read, row)) for row in read.facts.lookups.values() if row.time is not None
    )
    events, _ = read_traces(runs.values(), read.tables.stamps, "its events", _slices)
    rows = [(run, "cache lookups", row) for run, slices in lookups.items() for row in nested(slices)]
    rows += [(run, "torch", row) for run, slices in events for row in nested(slices)]
    began = min((one.start_ns for _, _, row in rows for one in row), default=0)
    made: list[JsonObject] = []
    for run in dict.fromkeys(run for run, _, _ in rows):
        rank = runs[run].rank
        made += [
            _named("process_name", run, 1, {"name": run_name(read.facts, run)}),
            _named("process_sort_index", run, 1, {"sort_index": run if rank is None else rank}),
        ]
    for thread, (run, name, row) in enumerate(rows, 1):
        made.append(_named("thread_name", run, thread, {"name": name}))
        made += (
            {
                "ph": "X", "pid": _process(run), "tid": thread, "name": one.name, "cat": one.kind,
                # Microseconds, as the format has it.
                "ts": (one.start_ns - began) / 1000, "dur": (one.end_ns - one.start_ns) / 1000, "args": one.more,
            }
            for one in row
        )  # fmt: skip
    return {"displayTimeUnit": "ms", "traceEvents": made}


def _process(run: int) -> int:
    # Perfetto takes 0, of a process or of a thread, for the idle one.
    return run + 1


def _named(what: str, run: int, thread: int, more: JsonObject) -> JsonObject:
    return {"ph": "M", "pid": _process(run), "tid": thread, "name": what, "args": more}


def _of_lookup(read: Recording, row: LookupRow) -> Slice:
    assert row.time is not None
    miss = read.facts.misses.get(row.lookup)
    more: JsonObject = {
        "lookup": row.lookup, "key": row.cache_key, "compile": row.compile_id, "function": place_name(row, read.facts.files),
        "reason": None if miss is None else miss.reason,
    }  # fmt: skip
    end = row.time if row.end_time is None else max(row.end_time, row.time)
    return Slice(row.time, end, f"{cache_name(row)} {row.outcome}", row.cache, more)


def _slices(path: str, size: int | None) -> tuple[list[Slice], list[ProblemRow]]:
    events = TraceEvents(path, size)
    return list(_closed(events)), events.problems


def _closed(events: Iterable[TraceEvent]) -> Iterator[Slice]:
    """Each event from its begin to its end; one that the trace has no end of, until the last one."""
    opened: dict[str, list[tuple[TraceEvent, str]]] = defaultdict(list)
    above: list[str] = []
    now = 0
    for event in events:
        now = max(now, event.time_ns)
        if event.is_begin:
            opened[event.name].append((event, inferred_phase(event.name, above[-1] if above else "")))
            above.append(event.name)
        elif opened[event.name]:
            yield _slice(*opened[event.name].pop(), event.time_ns)
            del above[len(above) - 1 - above[::-1].index(event.name)]
    for left in opened.values():
        yield from (_slice(*one, now) for one in left)


def _slice(event: TraceEvent, inferred: str, end_ns: int) -> Slice:
    phase = phase_of(event.name, inferred)
    kind = "not named" if phase is None else phase.name
    more: JsonObject = {"compile": event.compile_id, "phase": kind}
    return Slice(event.time_ns, max(end_ns, event.time_ns), event.name, kind, more)


def nested(slices: Iterable[Slice]) -> list[list[Slice]]:
    """The slices in as few rows as it takes for those of a row to nest: threads of one process overlap.

    Examples
    --------
    >>> one, two, three = (Slice(*ends, "", "", {}) for ends in ((0, 4), (1, 3), (2, 5)))
    >>> nested([three, one, two]) == [[one, two], [three]]
    True
    """
    rows: list[list[Slice]] = []
    ends: list[list[int]] = []  # of what is open in each row
    for one in sorted(slices, key=lambda one: (one.start_ns, -one.end_ns)):
        for opened in ends:
            while opened and opened[-1] <= one.start_ns:
                opened.pop()
        fits = (at for at, opened in enumerate(ends) if not opened or one.end_ns <= opened[-1])
        at = next(fits, len(rows))
        if at == len(rows):
            rows.append([])
            ends.append([])
        rows[at].append(one)
        ends[at].append(one.end_ns)
    return rows
