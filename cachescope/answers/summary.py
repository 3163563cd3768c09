"""What was read, in a line and in short, and what stays outside the causes that are shown one by one."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

from cachescope.analysis.graphs import own_operators
from cachescope.analysis.phases.names import AUTOTUNING, BACKEND, INDUCTOR, LOADING_GRAPH
from cachescope.analysis.rates import rates
from cachescope.answers.chosen import Chosen
from cachescope.answers.facts import Facts
from cachescope.answers.recording import MOST_BYTES_READ_AGAIN, Recording
from cachescope.frames.answer_rows import RateRow
from cachescope.frames.compile_rows import CompileRow, PhaseRow
from cachescope.frames.recorded_rows import LookupRow
from cachescope.grouping import by_key
from cachescope.readers.sources import counters_said, head_of
from cachescope.terms import FXGRAPH, HOW_TO_RECORD, MEGA_CACHE, MISSED, VLLM
from cachescope.verdict_kinds import kind_of
from cachescope.version import __version__
from cachescope.wording import duration, file_size, file_time, listed, numbered, percent, plural

# Why an outcome is unknown: of torch's caches, and of vLLM's own.
WHY_UNKNOWN: Final = (
    "the log ends before its outcome, has lost the line of it, or is a trace of torch 2.4, which has none",
    "vLLM's log does not say whether it loaded or compiled: it ends before, lines are missing, or the release says so of its first rank alone",
)


def counts_text(read: Recording, some: Sequence[LookupRow] | None = None) -> str:
    """Lookups, hits and misses, and the hit rate by count and by compile time, in one line; of all that were read, or of some."""
    facts = read.facts
    if not facts.lookups:
        return _no_lookup(read)
    rows = list(facts.lookups.values()) if some is None else some
    if not rows:
        return f"none of the {plural(len(facts.lookups), 'lookup')} that were read is among these"
    rate = rates(rows)
    known = f" of the {rate.lookups - rate.unknown:,} known" if rate.unknown else ""
    shares = "no hit rate" if rate.hit_rate is None else f"{percent(rate.hit_rate)}{known} by count"
    if rate.time_hit_rate is not None:
        shares += f", {percent(rate.time_hit_rate)} by compile time"
    # Compile workers leave traces as well; a run is a process that looked something up.
    looked_up = len({row.run for row in rows})
    lookups, runs = plural(len(rows), "lookup"), plural(looked_up, "run")
    predicted = predicted_lookups(facts, rows)
    counts_text = f"{lookups} in {runs}: {outcomes(rate)} ({shares})"
    if len(rows) == len(facts.lookups) and (blind := without_lookups(read)):
        counts_text += f"; no lookup is recorded in {blind}"
    if predicted == len(rows):
        return f"predicted by a pre-flight: {counts_text}"
    return f"{counts_text}; {predicted} of them predicted by a pre-flight" if predicted else counts_text


def without_lookups(read: Recording) -> str:
    """Which processes compiled without a recorded lookup, and which text logs of torch have none, beside those that have some."""
    of_lookups = {row.run for row in read.facts.lookups.values()}
    runs = read.facts.runs.items()
    compiled = sum(
        not row.looked_up or (run in read.tables.compiled and run not in of_lookups) for run, row in runs
    )
    silent = read.tables.silent
    parts = [f"{plural(compiled, 'other run')} that compiled"] if compiled else []
    if silent:
        parts.append(plural(len(silent), "other log") if len(silent) > 1 else os.path.basename(silent[0]))
    return " and ".join(parts)


def predicted_lookups(facts: Facts, lookups: Iterable[LookupRow]) -> int:
    """How many of some lookups are predicted by pre-flights."""
    return sum(facts.runs[row.run].is_preflight for row in lookups)


def outcomes(rate: RateRow) -> str:
    """How many lookups of a row of hit rates went which way."""
    bypassed = f", {rate.bypasses:,} bypassed or disabled" if rate.bypasses else ""
    unknown = f", {rate.unknown:,} of unknown outcome" if rate.unknown else ""
    return f"{rate.hits:,} hit, {rate.misses:,} missed{bypassed}{unknown}"


def compile_time(rate: RateRow) -> str:
    """The compile time that hits saved and that others lost; a time that is not recorded is not zero."""
    saved, lost = rate.time_saved_ns, rate.time_lost_ns
    no_hits, only_hits = not rate.hits, not rate.misses + rate.bypasses
    if saved is None and lost is None and not (no_hits and only_hits):
        return "times not recorded"
    return f"{_known_time(saved, no_hits)} saved, {_known_time(lost, only_hits)} lost"


def _known_time(ns: int | None, is_none: bool) -> str:
    if ns is not None:
        return duration(ns)
    return "nothing" if is_none else "an unrecorded time"


def seen_text(rate: RateRow) -> str:
    """Of how many lookups a hit rate is, and how many it leaves out."""
    unknown = f"; {rate.unknown:,} of unknown outcome" if rate.unknown else ""
    return f"{plural(rate.lookups - rate.unknown, 'lookup')}{unknown}"


def why_no_lookup(read: Recording, runs: Collection[int]) -> str:
    """Why no lookup of some runs is recorded: what their logs show of it, else what it may be."""
    sources = {source for run in runs for source in read.facts.runs[run].sources}
    if any(row.kind == "quoted" and row.source in sources for row in read.tables.problems.rows):
        return f"what their logs say of torch's caches is not all read as lookups: see the problems, or {HOW_TO_RECORD}"
    in_text = read.tables.compiled.keys() & set(runs)
    if in_text:
        others = set(runs) - in_text
        of_text = f"text logs have lookups only where torch's cache loggers are on: {HOW_TO_RECORD}"
        return f"{why_no_lookup(read, others)}; {of_text}" if others else of_text
    # Records that are lost may be those of a graph; in what is empty, such as a cache directory, there are none.
    is_damaged = any(row.kind != "empty" for row in read.tables.problems.rows)
    is_whole = not is_damaged and not any(read.facts.runs[run].is_cut for run in runs)
    # The end of a backward graph is not recorded before torch 2.6; its frame has ended before.
    every = [row for row in compiles_of(read, runs) if row.run in runs]
    compiles = [row for row in every if row.kind != "backward"]
    have_ended = all(row.error is None and row.time_taken_ns is not None for row in compiles)
    if is_whole and have_ended and {row.run for row in compiles} == set(runs):
        known = _why_compiled_without(read, runs, compiles)
        if known is not None:
            return known
    none_has_ended = all(row.time_taken_ns is None for row in every)
    if is_whole and none_has_ended and {run for run, _ in loaded_graphs(read, runs)} == set(runs):
        return "graphs were loaded from a package, which asks no cache: what caching_precompile or aot_compile had saved"
    lost = "" if is_whole else "its log is damaged or cut, so that some may be lost; or "
    failed = "compiles failed, " if any(read.facts.runs[run].failed_compiles for run in runs) else ""
    return f"{lost}{failed}caching was off, nothing was compiled (as by torch.export), a backend compiled it that asks no cache (as aot_eager), or what was compiled came from a package that needs no lookup"


def loaded_graphs(read: Recording, runs: Collection[int]) -> set[tuple[int, str | None]]:
    """The compiles of some runs that loaded a graph, and looked none up: it came with a package of ``caching_precompile`` or ``aot_compile``."""
    looked_up = {(row.run, row.compile_id) for row in read.facts.lookups.values()}
    rows = (row for row in phases_of(read, runs) if row.event == LOADING_GRAPH)
    return {(row.run, row.compile_id) for row in rows} - looked_up


def compiles_of(read: Recording, runs: Collection[int]) -> Sequence[CompileRow]:
    """The compiles that were read, and those of some runs; nothing where their traces would be long to read for it."""
    return () if read.size_of_logs(runs) > MOST_BYTES_READ_AGAIN else read.compiles_read[0].rows


def _why_compiled_without(
    read: Recording, runs: Collection[int], compiles: Sequence[CompileRow]
) -> str | None:
    """Why compiles whose records are whole asked no cache; None if they do not show it."""
    graphs = [row for row in compiles if row.operators]
    frames = plural(len(graphs or compiles), "frame")
    if not graphs:
        # Where Dynamo made no graph at all, its operators are not counted; a count of none is the evidence.
        if all(row.operators is None for row in compiles):
            return None
        # torch/_dynamo/output_graph.py, `OutputGraph.compile_and_call_fx_graph`: a graph without operators and outputs goes to no compiler.
        breaks = dict.fromkeys(chain.from_iterable(row.graph_breaks for row in compiles))
        after = f". Graph breaks: {listed(breaks, 2, '; ')}" if breaks else ""
        return f"Dynamo found no operator to compile in {frames}{after} (cachescope compiles lists them)"
    # What Inductor compiles, it writes to the cache directory. What torch 2.4 bypasses is in no trace.
    if all(read.facts.runs[row.run].cache_dir for row in graphs):
        return f"Inductor compiled {frames} without a lookup: caching was off, as it is in torch 2.4 unless TORCHINDUCTOR_FX_GRAPH_CACHE=1 is set, or torch 2.4 bypassed it"
    events = {(row.run, row.event) for row in phases_of(read, runs)}
    if all((row.run, BACKEND) in events and (row.run, INDUCTOR) not in events for row in graphs):
        return f"a backend that asks none of torch's caches compiled {frames}, as eager or aot_eager would: the trace has no event of Inductor"
    return None


def _no_lookup(read: Recording) -> str:
    facts = read.facts
    if not facts.runs and facts.entries:
        size = sum(entry.size_bytes or 0 for entry in facts.entries.values())
        return f"no lookups were read; {plural(len(facts.entries), 'entry')} of {file_size(size)}"
    if not facts.runs and read.tables.contexts:
        return f"no lookups and no entries; {plural(len(read.tables.contexts), 'context')}"
    counted = "".join(counters_said(head_of(one)) for one in read.sources if os.path.isfile(one))
    then = f"{counted};" if counted else ":"
    if facts.runs:
        return f"no lookup is recorded in {plural(len(facts.runs), 'run')}{then} {why_no_lookup(read, facts.runs.keys())}"
    return f"no lookup is recorded, which does not say that there was none{then} {HOW_TO_RECORD}"


def footer(chosen: Chosen) -> str:
    """What stays outside the numbered causes: first lookups, unexplained misses, unknown outcomes; and all problems."""
    read, facts, counted = chosen.read, chosen.read.facts, chosen.causes
    parts, ranks = [], {row.rank for row in facts.runs.values()} - {None}
    for cause in counted:
        if kind_of(cause).is_first:
            time = "" if cause.time_lost_ns is None else f", {duration(cause.time_lost_ns)}"
            if time and len(cause.ranks) > 1:
                time += f" in {len(cause.ranks)} ranks"
            is_of_some = cause.ranks and ranks.difference(cause.ranks)
            where = f" on {numbered('rank', cause.ranks)}" if is_of_some else ""
            parts.append(f"{cause.summary}: {plural(cause.misses, 'miss')}{where}{time}")
    if may_be_first := [cause for cause in counted if kind_of(cause).may_be_first]:
        parts += _held_in_bundle(chosen)
        parts += _not_compared(read, {run for cause in may_be_first for run in cause.runs})
    if len(chosen):
        unexplained = (cause.misses for cause in counted if kind_of(cause).is_unexplained)
        parts.append(f"not explained: {sum(unexplained):,}")
    unknown = Counter(row.cache == VLLM for row in chosen.rows if row.outcome == "unknown")
    parts += [f"unknown: {count:,}, for {WHY_UNKNOWN[of_vllm]}" for of_vllm, count in sorted(unknown.items())]
    if tuned := _tuned(read):
        parts.append(tuned)
    parts.append(f"problems: {sum(row.count for row in read.tables.problems.rows):,}")
    if operators := hits_call(read, chosen.rows):
        parts.append(f"hits call {operators}")
    return "    ".join(parts)


def _held_in_bundle(chosen: Chosen) -> Iterator[str]:
    """What the first mega-cache that was read holds of the keys that missed, and the command that compares the rest."""
    files = [row for row in chosen.read.facts.entries.values() if row.cache == MEGA_CACHE]
    if not files:
        return
    first, *others = files
    missed = {row.cache_key for row in chosen.rows if row.cache == FXGRAPH and row.outcome in MISSED}
    held = f"holds {len(missed.intersection(first.fx_keys)):,} of the {plural(len(missed), 'FX key')} that missed"
    logs = [one for one in chosen.read.sources if one != first.path]
    command = (
        shlex.join(("cachescope", "diff", first.path, *logs))
        if len(logs) == 1
        else "cachescope diff FILE RUN"
    )
    more = f" (there are {len(others):,} more)" if others else ""
    yield f"{first.path} {held if missed else 'was not compared'}: {command} compares them{more}"


def _not_compared(read: Recording, runs: Iterable[int]) -> Iterator[str]:
    """The directory that others had filled before some runs began, if it was not read, and the command that compares."""
    filled = dict.fromkeys(read.facts.runs[run].filled_dir for run in sorted(runs))
    others = [
        one for one in filled if one is not None and one not in map(os.path.realpath, read.tables.cache_roots)
    ]
    if others:
        command = shlex.join(("cachescope", "explain", *read.sources, others[0]))
        yield f"not compared with what lay in {others[0]} before: {command} does that"


def _tuned(read: Recording) -> str:
    """How often Triton's autotuning found a tuned configuration, and how often not, though all graphs of its compile hit; and what that cost."""
    facts = read.facts
    asked = [(run, *text.split(" ", 2)[:2]) for run, row in facts.runs.items() for text in row.kernel_lookups]
    states = Counter(state for *_, state in asked)
    if states.keys() <= {"hit"}:
        return ""
    # Compile ids repeat after `torch._dynamo.reset()`, and no kernel says of which compile it is then.
    outcomes = by_key(((row.run, row.compile_id), row.outcome) for row in facts.lookups.values())
    hits = {compile_id for compile_id, found in outcomes.items() if {*found} == {"hit"}}
    below = Counter((run, one) for run, one, state in asked if state == "miss" and (run, one) in hits)
    tuned = [row for row in phases_of(read, facts.runs) if row.phase == AUTOTUNING] if below else []
    ns = sum(row.self_time_ns for row in tuned if (row.run, row.compile_id) in below)
    cost = f", tuned in {duration(ns)}" if ns else ""
    where = f" ({below.total():,} of these in compiles with hits alone{cost})" if below else ""
    off = f", {states['force_disabled']:,} not asked for" if states["force_disabled"] else ""
    return (
        f"tuned configurations of Triton kernels: {states['hit']:,} found, {states['miss']:,} not{where}{off}"
    )


def hits_call(read: Recording, rows: Iterable[LookupRow]) -> str:
    """The operators of the program's own that hits among some lookups call, and what no key holds of them; empty where there are none."""
    graph, details = read.history.keys.graph, read.tables.hash_details
    codes = (row.detail_set for row in rows if row.outcome == "hit")
    of_graph = {graph(code): code for code in codes if code is not None}
    texts = (gm.value_text for code in of_graph.values() if (gm := details.detail(code, "gm")))
    named = dict.fromkeys(name for text in texts for name in own_operators(text))
    if not named:
        return ""
    return f"{listed(named, 3)}, which no key holds the code of: it runs as it is now, but edits of its schema, its fake implementation and its backward are not seen (pytorch #187319, #144344)"


def phases_of(read: Recording, runs: Collection[int]) -> list[PhaseRow]:
    """The phases of some runs; none where they were not read yet and that would take long."""
    if not read.has_phases and read.size_of_logs(read.facts.runs) > MOST_BYTES_READ_AGAIN:
        return []
    return [row for row in read.phases_read[0].rows if row.run in runs]


def about_text(scope: Recording, said: str) -> str:
    """How many lookups hit unless that was said, how many entries are beside them, when the sources were recorded, and by what; the same for the same data."""
    facts = scope.facts
    times = [row.start_time for row in facts.runs.values() if row.start_time is not None]
    versions = sorted({row.torch_version for row in facts.runs.values() if row.torch_version})
    counts = counts_text(scope)
    parts = [] if counts == said else [counts]
    if times:
        first, last = file_time(min(times)), file_time(max(times))
        parts.append(f"recorded {first}" + (f" to {last}" if last != first else "") + " UTC")
    if versions:
        parts.append(f"torch {listed(versions, 4)}")
    if facts.lookups and facts.entries:
        parts.append(plural(len(facts.entries), "entry"))
    return " · ".join([*parts, f"made by cachescope {__version__}"])
