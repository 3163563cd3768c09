"""How starts went one after another: what hit, what was compiled, and how much of it was avoidable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from cachescope.analysis.rates import known_sum
from cachescope.answers.chosen import Chosen
from cachescope.answers.costs import Costs
from cachescope.answers.recording import Recording
from cachescope.frames.answer_rows import TrendRow
from cachescope.grouping import by_key
from cachescope.rows import like
from cachescope.wording import date

_DAY_NS: Final = 24 * 3600 * 10**9
_FEWEST: Final = 3


def trend_rows(read: Recording) -> list[TrendRow]:
    """Each start in the order of time; none of a pre-flight, which compiles nothing."""
    from cachescope.answers.starts import starts_of

    costs, found = Costs.of(Chosen(read)), list[TrendRow]()
    for start in starts_of(read):
        first, avoidable = start.members[0].row, (costs.avoidable_in.get(run, 0) for run in start.runs)
        if first.is_preflight:
            continue
        row = like(
            TrendRow,
            first,
            starts=1,
            start_time=start.start_time,
            lookups=sum(one.rate.lookups for one in start.members),
            hits=sum(one.rate.hits for one in start.members),
            unknown=sum(one.rate.unknown for one in start.members),
            hit_rate=start.hit_rate,
            time_lost_ns=start.time_lost_ns,
            avoidable_ns=sum(avoidable) if costs.is_timed else None,
        )
        found.append(row)
    return found


def is_spread(read: Recording) -> bool:
    """Whether there are several runs, a day or a commit apart."""
    runs = read.facts.runs.values()
    times = [row.start_time for row in runs if row.start_time is not None]
    commits = {row.commit for row in runs if row.commit is not None}
    return len(times) >= _FEWEST and (len(commits) > 1 or max(times) - min(times) >= _DAY_NS)


def trend(read: Recording) -> list[TrendRow]:
    """The starts of each day and commit together, the newest first; none unless they are that far apart."""
    if not is_spread(read):
        return []
    groups = by_key(((date(row.start_time or 0), row.commit), row) for row in trend_rows(read))
    return [*map(_together, groups.values())][::-1]


def _together(rows: Sequence[TrendRow]) -> TrendRow:
    names = ("starts", "lookups", "hits", "unknown", "time_lost_ns", "avoidable_ns")
    sums = {name: known_sum(getattr(row, name) for row in rows) for name in names}
    known = (sums["lookups"] or 0) - (sums["unknown"] or 0)
    return like(TrendRow, rows[0], **sums, hit_rate=(sums["hits"] or 0) / known if known else None)
