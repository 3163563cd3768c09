"""What was compiled after misses and how much of it was avoidable, in all and for each start: the headline of every answer."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, Self

from cachescope.analysis.history.timeline import NOT_CERTAIN
from cachescope.analysis.phases.frame import self_times
from cachescope.analysis.phases.names import VECTOR_TEST, WAITING_FOR_TEST
from cachescope.analysis.rates import rates
from cachescope.analysis.verdicts.misses import Compile, compile_of
from cachescope.answers.chosen import Chosen
from cachescope.answers.facts import Facts
from cachescope.answers.names import fields_text, other_directory, why_never_stored
from cachescope.answers.recording import Recording
from cachescope.answers.starts import Start, starts_of
from cachescope.answers.summary import counts_text, phases_of, without_lookups
from cachescope.frames.answer_rows import CauseRow, MissRow, TrendRow
from cachescope.grouping import by_key
from cachescope.keys.key_fields import (
    FREEZING,
    IS_INFERENCE,
    OF_THE_INSTALLATION,
    is_code,
    is_input,
    is_of_the_call,
)
from cachescope.rows import like
from cachescope.terms import FXGRAPH, VLLM
from cachescope.verdict_kinds import kind_of
from cachescope.wording import date, duration, listed, plural

_NAMED: Final = 3
# Inductor's own code is part of the key, too.
_OF_THE_MACHINE: Final = (*OF_THE_INSTALLATION, "code_hash")
_DAY_NS: Final = 24 * 3600 * 10**9
_FEWEST: Final = 3

WORDS: Final = {
    "avoidable": ("avoidable", ""),
    "at once": ("at once", ""),
    "first": ("first compiles", "of first compiles"),
    "code": ("changed code", "of changed code"),
    "inputs": ("other inputs", "for other inputs"),
    "guards": ("other sizes or values", "for other sizes or values, which guards keep apart"),
    "sizes": ("symbolic sizes", "for sizes or integers that became symbolic, fixed or unbacked"),
    "machine": ("another machine", "on another machine or torch"),
    "upgrade": ("upgrade", "after another torch was installed"),
    "factors": ("other factors", "after vLLM's factors changed"),
    "not cached": ("not cached", "not cached"),
    "unknown": ("not known", "for a reason that is not known"),
}
"""Words for what compiles after misses were, beside their seconds: on a card, and in the headline if they were not avoidable."""
# In these cases the graph had been compiled before, or may have been.
_IN_DOUBT: Final = frozenset({"avoidable", "not cached", "factors", "unknown"})


@dataclass(frozen=True, slots=True)
class Costs:
    """What was compiled after misses: on the path of each start, which is that of its slowest rank.

    Avoidable is what had been compiled before within what was read, or what a setting, a folder or an order of starts
    caused. Amounts are nanoseconds, or misses where no time is recorded.
    """

    is_timed: bool
    avoidable: tuple[tuple[CauseRow, int], ...]  # the causes of what was avoidable, the costliest first
    avoidable_in: dict[int, int]  # the same by the run that compiled it
    others: dict[str, int]  # the rest, by the keys of the words for it
    ranks_ns: int | None  # what all ranks of all starts compiled together; None if no start has several ranks
    at_once_ns: int  # how much of that several ranks compiled at once
    compiles: dict[str, set[Compile]]  # the compiles, by the same keys
    not_cached: tuple[str, ...]  # the reasons why graphs were not cached, the costliest first
    untimed: int  # misses without a recorded time that were not avoidable, if others have a time
    # By cause, the number of avoidable misses without a recorded time. An AOTAutograd miss above graphs that hit is
    # traced and partitioned again, and Inductor compiles nothing.
    avoidable_untimed: dict[int, int]
    # Whether any miss, on the path or not, may be of what had been compiled before, or not everything was understood.
    is_any_in_doubt: bool

    @property
    def amount(self) -> int:
        """How much was compiled."""
        return sum(amount for _, amount in self.avoidable) + sum(self.others.values())

    @classmethod
    def of(cls, chosen: Chosen, found_before: Collection[int] = ()) -> Self:
        """The costs of some lookups, or of all that were read. First lookups among `found_before` were found elsewhere, so they were avoidable."""
        facts, causes = chosen.read.facts, chosen.read.explained.rows
        # A pre-flight compiled nothing.
        real = {run for run, row in facts.runs.items() if not row.is_preflight}
        misses = [facts.misses[one] for one in chosen.misses if facts.lookups[one].run in real]
        # An AOTAutograd miss contains the misses of its graphs.
        rows = ((miss, facts.lookups[miss.lookup]) for miss in misses)
        timed = [(miss, row.time_taken_ns) for miss, row in rows if row.cache in (FXGRAPH, VLLM)]
        untimed = [miss for miss, ns in timed if ns is None]
        untimed += [miss for miss in misses if {row.outcome for row in facts.below(miss.lookup)} == {"hit"}]
        of_run: dict[int, list[tuple[MissRow, int]]] = {}
        is_timed = any(ns is not None for _, ns in timed)
        for miss, ns in timed if is_timed else ((miss, 1) for miss in misses):
            if ns is not None:
                of_run.setdefault(facts.lookups[miss.lookup].run, []).append((miss, ns))
        of_start = _jobs(chosen.read)
        costs_of = [cost_of(chosen.read, cause) for cause in causes]

        def told(miss: MissRow) -> MissRow:
            """The miss that tells what the compile after one was: that of the rank that was compiling the same key, if there is one."""
            is_of_rank = costs_of[miss.cause] == "at once" and facts.lookups[miss.lookup].run in of_start
            other = miss.baseline_lookup if is_of_rank else None
            return miss if other is None else facts.misses.get(other, miss)

        def what_of(miss: MissRow) -> str:
            """What the compile after a miss was."""
            what = costs_of[told(miss).cause]
            if what == "at once":
                # One of the ranks has to compile it. Other processes can start one after another.
                what = "first" if facts.lookups[miss.lookup].run in of_start else "avoidable"
            return "avoidable" if what == "first" and miss.lookup in found_before else what

        avoidable, avoidable_in, not_cached = Counter[int](), Counter[int](), Counter[str]()
        others, compiles = Counter[str](), defaultdict[str, set[Compile]](set)
        for run in _path(of_run, of_start):
            for miss, amount in of_run[run]:
                what = what_of(miss)
                if what == "avoidable":
                    avoidable[told(miss).cause] += amount
                    avoidable_in[run] += amount
                else:
                    others[what] += amount
                    if what == "not cached":
                        not_cached[kind_of(causes[told(miss).cause]).by] += amount
                    compiles[what].add(compile_of(facts.lookups[miss.lookup]))
        every = list(chain(*of_run.values()))
        all_ranks = sum(amount for _, amount in every)
        has_ranks = is_timed and not of_start.keys().isdisjoint(of_run)
        at_once = [ns for miss, ns in every if kind_of(causes[miss.cause]).cost == "at once"]
        return cls(
            is_timed,
            tuple((causes[cause], amount) for cause, amount in avoidable.most_common()),
            avoidable_in,
            dict(others.most_common()),
            all_ranks if has_ranks else None,
            sum(at_once) if is_timed else 0,
            compiles,
            tuple(reason for reason, _ in not_cached.most_common()),
            sum(ns is None and what_of(miss) != "avoidable" for miss, ns in timed) if is_timed else 0,
            Counter(told(miss).cause for miss in untimed if what_of(miss) == "avoidable"),
            is_any_in_doubt=bool(chosen.read.tables.problems.rows or without_lookups(chosen.read))
            or any(row.outcome == "unknown" for row in chosen.rows)
            or any(what_of(miss) in _IN_DOUBT for miss in misses),
        )


def _jobs(read: Recording) -> dict[int, tuple[int, ...]]:
    """The runs that are ranks of a job, each with all runs of the job."""
    if all(row.rank is None for row in read.facts.runs.values()):
        return {}
    return {run: start.runs for start in starts_of(read) if len(start.runs) > 1 for run in start.runs}


def _path(
    of_run: dict[int, list[tuple[MissRow, int]]], of_start: dict[int, tuple[int, ...]]
) -> Iterator[int]:
    """For each start, the run that compiled the longest."""
    for run in of_run:
        mates = of_start.get(run, (run,))
        if run == max(mates, key=lambda mate: sum(ns for _, ns in of_run.get(mate, ()))):
            yield run


def cost_of(read: Recording, cause: CauseRow) -> str:
    """What the compiles after the misses of a cause were: avoidable, at once, or one of the others."""
    cost = _cost_of(read.facts, cause)
    if cost != "avoidable":
        return cost
    whys = {why_never_stored(root, read.history) for root in read.facts.roots_of(cause.cause)}
    if None in whys or not whys:
        return cost
    # A compile that failed does not count as compiled before.
    return "unknown" if whys.intersection(NOT_CERTAIN) else "first"


def _cost_of(facts: Facts, cause: CauseRow) -> str:
    cost = kind_of(cause).cost
    if cost != "fields":
        return cost
    if facts.lookups[facts.misses_of(cause.cause)[0].lookup].cache == VLLM:
        return "factors"
    if FREEZING in cause.fields:
        # The graph follows from the option. If its code differs as well, nothing shows whether by folding or by an edit.
        return "unknown" if cause.kind else "avoidable"
    # torch makes another graph of the same code where no backward graph can follow.
    is_unclear = not cause.kind and {"gm", IS_INFERENCE} <= {*cause.fields}
    of_fields = cost_of_fields(cause.fields)
    is_unclear |= kind_of(cause).may_differ_more and of_fields == "avoidable"
    return "unknown" if is_unclear else of_fields


def cost_of_fields(fields: Sequence[str]) -> str:
    """The same where these fields of a key changed."""
    if any(map(is_code, fields)):
        return "code"
    if any(is_input(one) or is_of_the_call(one) for one in fields):
        return "inputs"
    if any(field.startswith(_OF_THE_MACHINE) for field in fields):
        return "machine"
    return "avoidable" if fields else "unknown"


def headline(chosen: Chosen) -> str:
    """What was avoidable and by what; if nothing was, what was compiled; and if nothing missed, what hits took.

    ``4.0 s of the 18.4 s compiled after misses were avoidable: 2.0 s by epilogue_fusion, 2.0 s by cpp_runtime_thread_count``
    """
    costs = Costs.of(chosen)
    if not costs.amount:
        return _all_hit(chosen) or counts_text(chosen.read, chosen.rows)
    tests = dict(_cpu_tests(chosen.read, costs))
    rest = "; ".join(_others(costs, tests))
    untimed = costs.avoidable_untimed if costs.is_timed else {}
    count = sum(untimed.values())
    took, were = f"{plural(count, 'miss')} whose time is not recorded", "was" if count == 1 else "were"
    if costs.avoidable:
        text = f"{_avoidable(costs)} avoidable{_by(chosen.read, costs)}"
        text += f"; so {were} {took}" if untimed else ""
        text += f"; {rest}" if rest else ""
    elif untimed:
        causes = [_cause(chosen.read, chosen.read.explained.rows[cause]) for cause in untimed]
        text = f"{took} {were} avoidable, by {_listed(causes)}; {rest}"
    elif costs.is_any_in_doubt:
        where = "" if costs.ranks_ns is None else " on the slowest rank"
        text = f"No compile{where} is known to have been avoidable: {rest}"
    else:
        twice = "that had been compiled before" if costs.at_once_ns else "twice"
        text = f"Nothing was compiled {twice}: {rest}"
    return text + _of_ranks(costs)


def _all_hit(chosen: Chosen) -> str:
    """The sentence that all lookups hit, and what the slowest start still spent; empty if one did not hit."""
    if not len(chosen) or any(row.outcome != "hit" for row in chosen.rows):
        return ""
    text = f"All {plural(len(chosen), 'lookup')} hit" if len(chosen) > 1 else "The lookup hit"
    of_run = by_key((row.run, row) for row in phases_of(chosen.read, {row.run for row in chosen.rows}))
    if not of_run:
        return text
    slowest = max((self_times(rows) for rows in of_run.values()), key=lambda times: sum(times.values()))
    phases = [f"{duration(ns)} {name}" for name, ns in slowest.items()]
    start = "The slowest start" if len(of_run) > 1 else "The start"
    return f"{text}. {start} spent {duration(sum(slowest.values()))} in torch all the same: {listed(phases[:_NAMED], _NAMED)}"


def _avoidable(costs: Costs) -> str:
    avoidable = sum(amount for _, amount in costs.avoidable)
    if costs.is_timed:
        of = "All" if avoidable == costs.amount else f"{duration(avoidable)} of the"
        return f"{of} {duration(costs.amount)} compiled after misses were"
    if avoidable == costs.amount:
        return "The one miss was" if avoidable == 1 else f"All {avoidable:,} misses were"
    return f"{avoidable:,} of {costs.amount:,} misses {'was' if avoidable == 1 else 'were'}"


def _by(read: Recording, costs: Costs) -> str:
    causes = [(_cause(read, cause), _amount(costs, amount)) for cause, amount in costs.avoidable]
    if len(causes) == 1:
        return f", by {causes[0][0]}"
    return f": {_listed([f'{amount} by {cause}' for cause, amount in causes])}"


def _listed(causes: Sequence[str]) -> str:
    # A cause of several fields ends with "and 1 more" itself.
    more = len(causes[_NAMED:])
    return ", ".join(causes[:_NAMED]) + (f", and {plural(more, 'more cause')}" if more else "")


def _cause(read: Recording, cause: CauseRow) -> str:
    kind = kind_of(cause)
    by = kind.by
    if not cause.fields or kind.is_of_function:
        return by or cause.summary
    fields = (FREEZING,) if FREEZING in cause.fields else cause.fields
    # What it was made by says all of its inputs.
    rest = tuple(field for field in fields if not (by and is_input(field)))
    named = " and ".join(filter(None, (by, fields_text(rest, 2) if rest else "")))
    told = next((miss for miss in read.facts.misses_of(cause.cause) if miss.baseline), None)
    return f"{named} and another directory" if told and other_directory(told, read.history) else named


def _amount(costs: Costs, amount: int) -> str:
    return duration(amount) if costs.is_timed else plural(amount, "miss")


def _others(costs: Costs, tests: Mapping[str, str]) -> Iterator[str]:
    """What was compiled and not avoidable, the most first."""
    for what, amount in costs.others.items():
        how_many, why = _amount(costs, amount), ""
        if what == "not cached":
            why = f" ({listed(costs.not_cached, _NAMED)})"
            # Most of it is no miss: it never reached the cache.
            how_many = how_many if costs.is_timed else plural(amount, "lookup")
        yield f"{how_many} {WORDS[what][1]}{why}{tests.get(what, '')}"
    if costs.untimed:
        yield f"{plural(costs.untimed, 'miss')} without a recorded time"


def _cpu_tests(read: Recording, costs: Costs) -> Iterator[tuple[str, str]]:
    """How much of each was torch's test of the CPU, or the wait for another process's test."""
    if not costs.is_timed:
        return
    runs = {run for compiles in costs.compiles.values() for run, *_ in compiles}
    rows = by_key((compile_of(row), row) for row in phases_of(read, runs))
    for what, compiles in costs.compiles.items():
        times = self_times(chain.from_iterable(rows.get(one, ()) for one in compiles))
        whose = ((VECTOR_TEST, "torch's"), (WAITING_FOR_TEST, "waiting for another process's"))
        parts = [(duration(times[phase]), text) for phase, text in whose if phase in times]
        if parts:
            told = " and ".join([" of them ".join(parts[0]), *map(" ".join, parts[1:])])
            yield what, f", {told} test of the CPU's vector instructions, once a folder"


def _of_ranks(costs: Costs) -> str:
    if costs.ranks_ns in (None, costs.amount):
        return ""
    text = f". That is the slowest rank of each start; all ranks together compiled for {duration(costs.ranks_ns)}"
    if costs.at_once_ns:
        text += f", {duration(costs.at_once_ns)} of them on graphs that several compiled at once"
    return text


def trend_rows(read: Recording, *, by_day: bool = False) -> list[TrendRow]:
    """Each start in time order, or those of one day and commit as one row; without pre-flights, which compile nothing."""
    starts = [start for start in starts_of(read) if not start.members[0].row.is_preflight]
    days = by_key(((day_of(one), one.members[0].row.commit), one) for one in starts)
    costs = Costs.of(Chosen(read))
    return [_row(some, costs) for some in (days.values() if by_day else ([one] for one in starts))]


def day_of(start: Start | TrendRow) -> str | None:
    """The day on which it began; UTC."""
    return None if start.start_time is None else date(start.start_time)


def is_spread(read: Recording) -> bool:
    """Whether there are several runs, of different days or commits."""
    runs = read.facts.runs.values()
    times = [row.start_time for row in runs if row.start_time is not None]
    commits = {row.commit for row in runs if row.commit is not None}
    return len(times) >= _FEWEST and (len(commits) > 1 or max(times) - min(times) >= _DAY_NS)


def _row(starts: Sequence[Start], costs: Costs) -> TrendRow:
    first = starts[0].members[0].row
    avoidable = sum(costs.avoidable_in.get(run, 0) for start in starts for run in start.runs)
    rate = rates(row for start in starts for one in start.members for row in one.lookups)
    is_known = costs.is_timed and (rate.time_lost_ns is not None or rate.hits == rate.lookups)
    return like(
        TrendRow,
        rate,
        run=first.run,
        start_time=starts[0].start_time,
        label=first.label,
        commit=first.commit,
        starts=len(starts),
        avoidable_ns=avoidable if is_known else None,
    )
