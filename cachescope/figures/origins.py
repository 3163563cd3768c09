"""Where time begins in a figure: with each run, or with the first of them if they ran at once."""

from __future__ import annotations

from typing import Any

import pandas as pd


def origins(
    runs: pd.DataFrame, begun: pd.Series[Any], ended: pd.Series[Any], joins: bool = True
) -> tuple[pd.Series[Any], str]:
    """The moment from which time counts in each run, and what to call it.

    Parameters
    ----------
    runs : DataFrame
        Columns run, start_time.
    begun, ended : Series
        By run: the first and the last moment of what is drawn.
    joins : bool
        Whether time counts from the first run where all ran at once.
    """
    started = runs.set_index("run")["start_time"].dropna()
    start = started.reindex(begun.index).fillna(begun)
    start = start.where(start <= begun, begun)
    if joins and len(start) > 1 and start.max() < ended.min():
        return pd.Series(start.min(), index=start.index), "since the first run began"
    return start, "since the run began"
