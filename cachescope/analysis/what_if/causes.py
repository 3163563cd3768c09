"""By cause, what a replay does; and what leaving out the changed fields of each cause would do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from cachescope.analysis.what_if.replay import Replay
from cachescope.analysis.what_if.replay_columns import UNKNOWN, Outcomes
from cachescope.analysis.what_if.still_missing import why_still
from cachescope.frames.answer_rows import CauseRow, MissRow
from cachescope.frames.replay_rows import CauseSaving, WhatIfCause
from cachescope.grouping import by_key
from cachescope.keys.key_fields import Removed
from cachescope.verdict_kinds import kind_of

# Each takes as long as a replay.
_EXPLAINED: Final = 20


def cause_rows(
    replay: Replay,
    removed: Removed,
    equal: Mapping[int, list[int]],
    after: Outcomes,
    causes: Sequence[CauseRow],
    misses: Iterable[MissRow],
) -> list[WhatIfCause]:
    """What became of the misses of each cause, in the order of the causes.

    Why misses stay, or may stay, is said of the first causes all of whose changed fields are out; `equal` is as `why_still` takes it.
    """
    positions = _positions(replay, misses)
    rows, explained = [], 0
    for cause in causes:
        mine = positions[cause.cause]
        turned = replay.turned(after, mine)
        why = None
        is_out = bool(removed and cause.fields) and removed.fields.issuperset(cause.fields)
        if is_out and len(mine) > len(turned) and explained < _EXPLAINED:
            explained += 1
            why = why_still(replay, equal, after, cause, mine).why
        rows.append(
            WhatIfCause(
                cause=cause.cause,
                verdict=cause.verdict,
                summary=cause.summary,
                misses=len(mine),
                hits_after=len(turned),
                unknown=sum(after[at] == UNKNOWN for at in mine),
                time_won_ns=replay.total(turned),
                why=why,
            )
        )
    return rows


def saving_rows(
    replay: Replay, causes: Iterable[CauseRow], misses: Iterable[MissRow], most: int
) -> list[CauseSaving]:
    """What leaving out the fields of each of the first causes does; there is nothing to say of a cold start."""
    positions = _positions(replay, misses)
    chosen = [cause for cause in causes if not kind_of(cause).is_first][:most]
    return [_saving(replay, cause, positions[cause.cause]) for cause in chosen]


def _saving(replay: Replay, cause: CauseRow, at: list[int]) -> CauseSaving:
    """What leaving out its own fields does; a cause without fields keeps all of its keys."""
    removed = Removed(frozenset(cause.fields))
    joined = replay.table.joined(removed) if removed else []
    after = replay.outcomes(removed, replay.groups(joined))
    turned = replay.turned(after, at)
    stays = why_still(replay, {key: keys for keys in joined for key in keys}, after, cause, at)
    return CauseSaving(
        cause=cause.cause,
        verdict=cause.verdict,
        summary=cause.summary,
        fields=cause.fields,
        misses=cause.misses,
        time_lost_ns=cause.time_lost_ns,
        hits_after=len(turned),
        time_won_ns=replay.total(turned),
        unknown=sum(after[one] == UNKNOWN for one in at),
        staggered=len(stays.staggered),
        staggered_time_ns=replay.total(stays.staggered),
        why=stays.why,
    )


def _positions(replay: Replay, misses: Iterable[MissRow]) -> dict[int, list[int]]:
    """The positions of the misses of each cause."""
    found = by_key((miss.cause, replay.history.index_of[miss.lookup]) for miss in misses)
    for positions in found.values():
        positions.sort()
    return found
