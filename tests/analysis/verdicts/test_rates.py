"""Hit rates by compile time: what is not recorded is not zero."""

import pytest

from cachescope.answers.summary import compile_time
from cachescope.columns import records, rows_of
from cachescope.frames.answer_rows import RateRow
from cachescope.scope import Scope
from tests.made import SECOND_NS, Made, fx, run, scope_of

G = {"gm": "a graph"}


def hit(number: int, saved: float | None) -> Made:
    ns = None if saved is None else int(saved * SECOND_NS)
    told = {"compile_id": f"{number}/0", "time_saved_ns": ns}
    return fx(f"h{number}", "hit", {"gm": "another graph"}, at=number, **told)


def miss(number: int, took: float | None, outcome: str = "full_miss") -> Made:
    return fx(f"m{number}", outcome, G, at=number, took=took, compile_id=f"{number}/0")


def rate_of(*lookups: Made) -> RateRow:
    (rate,) = rows_of(scope_of(run(*lookups)).hit_rates(), RateRow)
    return rate


@pytest.mark.parametrize(("lookups", "rate", "text"), [
    ([hit(1, 3), miss(2, 1)], 0.75, "3.0 s saved, 1.0 s lost"),
    ([hit(1, 3)], 1, "3.0 s saved, nothing lost"),
    ([miss(1, 3)], 0, "nothing saved, 3.0 s lost"),
    # Some are known: the rate is theirs.
    ([hit(1, 3), hit(2, None), miss(3, 1), miss(4, None)], 0.75, "3.0 s saved, 1.0 s lost"),
    ([hit(1, None)], None, "times not recorded"),
    ([miss(1, None)], None, "times not recorded"),
    ([hit(1, None), miss(2, 1)], None, "an unrecorded time saved, 1.0 s lost"),
    ([hit(1, 3), miss(2, None)], None, "3.0 s saved, an unrecorded time lost"),
    ([hit(1, 3), miss(2, None, "guard_miss")], None, "3.0 s saved, an unrecorded time lost"),
    ([hit(1, 3), miss(2, None, "bypass")], None, "3.0 s saved, an unrecorded time lost"),
    # An outcome that was not seen is in no rate.
    ([hit(1, 3), miss(2, None, "unknown")], 1, "3.0 s saved, nothing lost"),
])  # fmt: skip
def test_what_is_not_recorded_is_not_zero(lookups: list[Made], rate: float | None, text: str) -> None:
    found = rate_of(*lookups)
    assert found.time_hit_rate == rate
    assert compile_time(found) == text


def twice(saved: float | None, took: float | None) -> Scope:
    """Two runs whose keys differ in one option, and a hit."""
    one, other = ({**G, "inductor_config[a]": text} for text in ("True", "False"))
    return scope_of(
        run(fx("m1", "full_miss", one, at=1, took=took), hit(2, saved)),
        run(fx("m2", "full_miss", other, at=100, took=took)),
    )


@pytest.mark.parametrize(("saved", "took", "rates", "text"), [
    (2, 4, [0.2, 0.6], "4.0 s saved)"),
    (None, None, [None, None], "times not recorded)"),
    (None, 4, [None, None], "4.0 s saved)"),
    (2, None, [None, None], "times not recorded)"),
])  # fmt: skip
def test_a_what_if_wins_no_time_that_is_not_recorded(
    saved: float | None, took: float | None, rates: list[float | None], text: str
) -> None:
    found = twice(saved, took).what_if(without="inductor_config[a]")
    assert [row["hits"] for row in records(found.rates)] == [1, 2]
    assert [row["time_hit_rate"] for row in records(found.rates)] == rates
    assert text in str(found).splitlines()[0]
