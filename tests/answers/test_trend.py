"""How starts went one after another, where some have no times: what is not recorded is not told as nothing."""

import pandas as pd

from cachescope.report.layout import wrapped
from cachescope.report.why_missed import answer_lines
from tests.made import fx, run, scope_of

_DAY = 24 * 3600.0


def test_a_start_without_times_has_neither_a_day_nor_seconds() -> None:
    timed = [run(fx(f"f{at}", at=at * _DAY, took=2.0), fx("f0", "hit", at=at * _DAY + 5)) for at in range(3)]
    scope = scope_of(*timed, run(fx("f9"), fx("f0", "hit")))
    trend = scope.trend.set_index("run")
    assert trend["start_time"].isna().to_dict() == {0: False, 1: False, 2: False, 3: True}
    assert trend.loc[3, "hit_rate"] == 0.5
    assert trend["avoidable_ns"].isna().to_dict() == {0: False, 1: False, 2: False, 3: True}
    assert pd.isna(trend.loc[3, "time_lost_ns"])
    # No day is made up, and the table can be laid out.
    text = wrapped(answer_lines(scope))
    assert "2026-11-" in text and "1970" not in text
