"""Hit rates by count and by compile time."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from cachescope.errors import NotFoundError
from cachescope.frames.answers import HIT_RATES
from cachescope.terms import FXGRAPH


def hit_rates(lookups: pd.DataFrame, by: Sequence[str] = ()) -> pd.DataFrame:
    """Hit rates of groups of lookups.

    Compile time is that of the FX graphs (an AOTAutograd hit contains the FX hits of its graphs, and their
    times would count twice), so ``time_hit_rate`` is missing where a group has no FX lookup with a time.

    Parameters
    ----------
    lookups : DataFrame
        The frame lookups.
    by : sequence of str
        Columns of it to group by; none for one row over everything.

    Returns
    -------
    DataFrame
        The columns of `by`, then those of ``describe("hit_rates")``.

    Raises
    ------
    NotFoundError
        If a column is not there.
    """
    unknown = [name for name in by if name not in lookups.columns]
    if unknown:
        raise NotFoundError(f"no column {unknown[0]!r} in lookups; there are {', '.join(lookups.columns)}")
    groups = lookups.groupby(list(by), dropna=False, sort=True) if by else [((), lookups)]
    rates, labels = [], []
    for label, group in groups:
        labels.append(label)
        rates.append(_rate(group))
    frame = HIT_RATES.build(rates)
    for at, name in enumerate(by):
        frame.insert(at, name, pd.Series([label[at] for label in labels], dtype=lookups[name].dtype))
    return frame


def _rate(group: pd.DataFrame) -> dict[str, object]:
    outcome = group["outcome"]
    hits = int((outcome == "hit").sum())
    is_fx = group["cache"] == FXGRAPH
    saved = _total(group.loc[is_fx & (outcome == "hit"), "time_saved_ns"])
    lost = _total(group.loc[is_fx & (outcome != "hit"), "time_taken_ns"])
    known = None if saved is None and lost is None else (saved or 0) + (lost or 0)
    return {
        "lookups": len(group),
        "hits": hits,
        "misses": int(outcome.isin(["full_miss", "guard_miss"]).sum()),
        "bypasses": int(outcome.isin(["bypass", "disabled"]).sum()),
        "hit_rate": hits / len(group) if len(group) else None,
        "time_saved_ns": saved,
        "time_lost_ns": lost,
        "time_hit_rate": (saved or 0) / known if known else None,
    }


def _total(times: pd.Series) -> int | None:
    present = times.dropna()
    return int(present.sum()) if len(present) else None
