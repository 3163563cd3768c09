"""By cause, what a replay does; and what leaving out the changed fields of each cause would do."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from cachescope.analysis.what_if.frames import Counts, ReplayInput
from cachescope.analysis.what_if.recorded import HIT, UNKNOWN, Outcomes, Positions
from cachescope.analysis.what_if.why_still import why_still
from cachescope.columns import frame_of, rows_of
from cachescope.frames.answer_rows import CauseRow
from cachescope.frames.replay_rows import CauseSaving, WhatIfCause
from cachescope.keys.key_fields import Removed
from cachescope.verdict_kinds import kind_of

# Each takes as long as a replay.
_EXPLAINED: Final = 20


def causes_frame(
    replayed: ReplayInput, removed: Removed, after: Outcomes, causes: pd.DataFrame, misses: pd.DataFrame
) -> pd.DataFrame:
    """The frame ``what_if_causes``: the causes in their own order, from the frames causes and misses."""
    number = {cause: at for at, cause in enumerate(causes["cause"].tolist())}
    places = _places(replayed, misses)
    group = np.full(len(after), -1, dtype=np.int64)
    group[places] = [number[cause] for cause in misses["cause"].tolist()]
    counts = Counts.of(replayed.times, after, group, len(causes))
    reasons = _reasons(replayed, removed, after, causes, group, counts)
    rows = (
        WhatIfCause(
            cause=cause.cause,
            verdict=cause.verdict,
            summary=cause.summary,
            misses=counts.lookups[at],
            hits_after=counts.turned[at],
            unknown=counts.unknown[at],
            time_won_ns=counts.time_won_ns[at],
            why=reasons[at],
        )
        for at, cause in enumerate(rows_of(causes, CauseRow))
    )
    return frame_of(rows, WhatIfCause)


def _reasons(
    replayed: ReplayInput,
    removed: Removed,
    after: Outcomes,
    causes: pd.DataFrame,
    group: Positions,
    counts: Counts,
) -> list[str | None]:
    """Why misses stay or may stay, of the first causes all of whose changed fields are out."""
    reasons: list[str | None] = [None] * len(causes)
    if not removed:
        return reasons
    stay = np.array(counts.lookups) > np.array(counts.turned)
    left = np.flatnonzero(stay)
    rows = zip(left.tolist(), rows_of(causes.iloc[left], CauseRow), strict=True)
    out = [(at, cause) for at, cause in rows if cause.fields and removed.fields.issuperset(cause.fields)]
    for at, cause in out[:_EXPLAINED]:
        mine = np.flatnonzero(group == at)
        reasons[at] = why_still(replayed.replay, removed, after, cause, mine).why
    return reasons


def cause_savings_frame(
    replayed: ReplayInput, causes: pd.DataFrame, misses: pd.DataFrame, most: int
) -> pd.DataFrame:
    """The frame ``cause_savings`` of the first so many causes, in their order; there is nothing to say of a cold start."""
    rows = [row for row in rows_of(causes, CauseRow) if not kind_of(row).is_first]
    places = _places(replayed, misses)
    of_cause = misses["cause"].to_numpy(dtype=np.int64)
    return frame_of(
        (_saving(replayed, row, places[of_cause == row.cause]) for row in rows[:most]), CauseSaving
    )


def _saving(replayed: ReplayInput, cause: CauseRow, at: Positions) -> CauseSaving:
    """What leaving out its own fields does; a cause without fields keeps all of its keys."""
    removed = Removed(frozenset(cause.fields))
    replay, times = replayed.replay, replayed.times
    after = replay.outcomes(removed) if removed else replay.recorded.outcome
    turned = at[times.miss[at] & (after[at] == HIT)]
    stays = why_still(replay, removed, after, cause, at)
    return CauseSaving(
        cause=cause.cause,
        verdict=cause.verdict,
        summary=cause.summary,
        fields=cause.fields,
        misses=cause.misses,
        time_lost_ns=cause.time_lost_ns,
        hits_after=len(turned),
        time_won_ns=times.total(turned),
        unknown=int(np.count_nonzero(after[at] == UNKNOWN)),
        staggered=len(stays.staggered),
        staggered_time_ns=times.total(stays.staggered),
        why=stays.why,
    )


def _places(replayed: ReplayInput, misses: pd.DataFrame) -> Positions:
    """The position of each miss."""
    return replayed.replay.recorded.lookups.places_of(misses["lookup"].tolist())
