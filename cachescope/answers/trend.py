"""How starts went one after another: what hit, what was compiled, and how much of it was avoidable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from cachescope.analysis.rates import rates
from cachescope.answers.chosen import Chosen
from cachescope.answers.costs import Costs
from cachescope.answers.recording import Recording
from cachescope.frames.answer_rows import TrendRow
from cachescope.grouping import by_key
from cachescope.rows import like
from cachescope.wording import date

if TYPE_CHECKING:
    from cachescope.answers.starts import Start

_DAY_NS: Final = 24 * 3600 * 10**9
_FEWEST: Final = 3


def trend_rows(read: Recording, *, by_day: bool = False) -> list[TrendRow]:
    """Each start in the order of time, or those of each day and commit together; none of a pre-flight, which compiles nothing."""
    from cachescope.answers.starts import starts_of

    starts = [start for start in starts_of(read) if not start.members[0].row.is_preflight]
    days = by_key(((day_of(one), one.members[0].row.commit), one) for one in starts)
    costs = Costs.of(Chosen(read))
    return [_row(some, costs) for some in (days.values() if by_day else ([one] for one in starts))]


def day_of(start: Start | TrendRow) -> str | None:
    """The day on which it began; UTC."""
    return None if start.start_time is None else date(start.start_time)


def is_spread(read: Recording) -> bool:
    """Whether there are several runs, a day or a commit apart."""
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
