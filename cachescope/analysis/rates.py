"""Hit rates by count and by compile time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from cachescope.analysis.preflight.words import as_if_made
from cachescope.columns import frame_of
from cachescope.errors import NotFoundError
from cachescope.frames.answer_rows import RateRow
from cachescope.terms import FXGRAPH, MISSED, VLLM

Groups = npt.NDArray[np.int64]


def hit_rates(lookups: pd.DataFrame, by: str | Sequence[str] = ()) -> pd.DataFrame:
    """Hit rates of groups of lookups.

    Lookups whose outcome was not seen are counted separately, and are in no rate.

    Compile time is that of the FX graphs (an AOTAutograd hit contains the FX hits of its graphs, whose
    times would count twice). Where torch recorded none, the compile time in vLLM's log counts as lost, too.
    ``time_hit_rate`` is missing if a group has no FX lookup with a time, and also if it has FX hits of which none has a
    time, or others of which none has one: what is not recorded is not zero.

    Parameters
    ----------
    lookups : DataFrame
        The frame lookups.
    by : str or sequence of str
        A column, or columns, to group by; none for one row over everything.

    Returns
    -------
    DataFrame
        The columns of `by`, then those of ``describe("hit_rates")``.

    Raises
    ------
    NotFoundError
        If a column does not exist.
    """
    by = [by] if isinstance(by, str) else by
    unknown = [name for name in by if name not in lookups.columns]
    if unknown:
        raise NotFoundError(f"no column {unknown[0]!r} in lookups; there are {', '.join(lookups.columns)}")
    group = np.zeros(len(lookups), dtype=np.int64)
    if by:
        group[:] = lookups.groupby(list(by), dropna=False, sort=True).ngroup()
    count = int(group.max(initial=-1)) + 1 if by else 1
    frame = frame_of(_rates(lookups, group, count), RateRow)
    first = np.zeros(count, dtype=np.int64)
    first[group[::-1]] = np.arange(len(lookups))[::-1]
    for at, name in enumerate(by):
        frame.insert(at, name, lookups[name].take(first).reset_index(drop=True))
    return frame


def _rates(lookups: pd.DataFrame, group: Groups, count: int) -> Iterator[RateRow]:
    outcome = as_if_made(lookups)["outcome"]
    is_hit = (outcome == "hit").to_numpy(dtype=bool)
    is_fx = (lookups["cache"] == FXGRAPH).to_numpy(dtype=bool)
    chosen = {
        "lookups": np.ones(len(lookups), dtype=bool),
        "hits": is_hit,
        "misses": outcome.isin(MISSED).to_numpy(dtype=bool),
        "bypasses": outcome.isin(["bypass", "disabled"]).to_numpy(dtype=bool),
        "unknown": (outcome == "unknown").to_numpy(dtype=bool),
    }
    counts = {name: np.bincount(group[mask], minlength=count).tolist() for name, mask in chosen.items()}
    is_compiled = is_fx & ~is_hit & ~chosen["unknown"]
    is_vllm = (lookups["cache"] == VLLM).to_numpy(dtype=bool)
    saved = _totals(lookups["time_saved_ns"], group, is_fx & is_hit, count)
    lost = _totals(lookups["time_taken_ns"], group, is_fx & ~is_hit, count)
    all_lost = _totals(lookups["time_taken_ns"], group, (is_fx | is_vllm) & ~is_hit, count)
    has_hits, has_others = (
        np.bincount(group[mask], minlength=count) > 0 for mask in (is_fx & is_hit, is_compiled)
    )
    for at in range(count):
        row = {name: numbers[at] for name, numbers in counts.items()}
        is_recorded = not (has_hits[at] and saved[at] is None) and not (has_others[at] and lost[at] is None)
        time = (saved[at] or 0) + (lost[at] or 0)
        seen = row["lookups"] - row["unknown"]
        yield RateRow(
            **row,
            hit_rate=row["hits"] / seen if seen else None,
            time_saved_ns=saved[at],
            time_lost_ns=all_lost[at],
            time_hit_rate=(saved[at] or 0) / time if is_recorded and time else None,
        )


def _totals(times: pd.Series, group: Groups, chosen: npt.NDArray[np.bool_], count: int) -> list[int | None]:
    """The sum of the known times of each group; None for a group without any."""
    known = chosen & times.notna().to_numpy()
    total = np.zeros(count, dtype=np.int64)
    np.add.at(total, group[known], times[known].to_numpy(dtype=np.int64))
    has_any = np.bincount(group[known], minlength=count) > 0
    return [time if there else None for time, there in zip(total.tolist(), has_any.tolist(), strict=True)]
