"""Bars, rates and the trend: lookups in, passed or not and the numbers out; made by hand. What is not recorded is not zero."""

from typing import Any

import pandas as pd
import pytest

from cachescope.analysis.verdicts.misses import SameCause, same_cause
from cachescope.answers.summary import compile_time
from cachescope.columns import records, rows_of
from cachescope.frames.answer_rows import CauseRow, RateRow
from cachescope.report.layout import wrapped
from cachescope.report.terminal import terminal_lines
from cachescope.report.why_missed import answer_blocks
from cachescope.scope import Scope
from cachescope.wording import plural
from tests.made import CODE, SECOND_NS, Made, aot, fx, run, scope_of

G = {"gm": CODE}
SECOND = 10**9


def lookups(hits: int = 0, misses: int = 0, unknown: int = 0, took: float | None = 2.0) -> list[Made]:
    made = [fx(f"h{n}", "hit", G, at=n, compile_id=f"{n}/0", time_saved_ns=3 * SECOND) for n in range(hits)]
    made += [fx(f"m{n}", details=None, at=50 + n, took=took, compile_id=f"{n}/1") for n in range(misses)]
    return made + [fx(f"u{n}", "unknown", G, at=90 + n, compile_id=f"{n}/2") for n in range(unknown)]


def scope(**counts: Any) -> Scope:
    return scope_of(run(*lookups(**counts)))


def bar(found: Scope, **asked: Any) -> dict[str, Any]:
    row, *_ = found.check(**asked).frame.astype(object).to_dict("records")
    return row


@pytest.mark.parametrize(("counts", "least", "passed", "found", "reason"), [
    ({"hits": 3, "misses": 1}, 0.75, True, 0.75, "3 of 4 lookups hit"),
    ({"hits": 3, "misses": 1}, 0.76, False, 0.75, "3 of 4 lookups hit"),
    ({"hits": 4}, 1.0, True, 1.0, "4 of 4 lookups hit"),
    ({"misses": 2}, 0.0, True, 0.0, "0 of 2 lookups hit"),
    ({"hits": 3, "unknown": 1}, 0.75, True, 0.75, "3 of 4 lookups hit; the outcome of 1 lookup was not seen, which counts as none"),
    ({"hits": 3, "unknown": 2}, 0.75, False, 0.6, "the outcome of 2 lookups was not seen"),
])  # fmt: skip
def test_min_hit_rate(counts: dict[str, int], least: float, passed: bool, found: float, reason: str) -> None:
    row = bar(scope(**counts), min_hit_rate=least)
    assert (row["passed"], row["found"]) == (passed, found)
    assert reason in row["reason"]
    assert bool(row["causes"]) == (not passed and bool(counts.get("misses")))


@pytest.mark.parametrize(("counts", "most", "passed", "found", "reason"), [
    ({"hits": 1, "misses": 2}, 4, True, 4, "2 of 3 lookups did not hit"),
    ({"hits": 1, "misses": 2}, 3, False, 4, "2 of 3 lookups did not hit"),
    ({"hits": 1}, 0, True, 0, "0 of 1 lookup did not hit"),
    ({"misses": 1, "took": None}, 9, False, None, "only traces (TORCH_TRACE) have their times"),
    ({"hits": 2, "unknown": 1}, 9, False, None, "the outcome of 1 lookup was not seen, and what that took"),
    ({"misses": 1, "unknown": 1}, 2, False, None, "and what that took is not known"),
    ({"misses": 1, "unknown": 1}, 1, False, 2, "1 of 2 lookups did not hit"),
])  # fmt: skip
def test_time_lost(counts: dict[str, Any], most: int, passed: bool, found: float | None, reason: str) -> None:
    row = bar(scope(**counts), max_time_lost_ns=most * SECOND)
    assert row["passed"] is passed
    wanted = None if found is None else found * SECOND
    assert (None if row["found"] != row["found"] else row["found"]) == wanted
    assert reason in row["reason"]
    assert bool(row["causes"]) == (not passed and bool(counts.get("misses")))


def test_causes_that_cost_nothing_do_not_break_the_bar_of_time() -> None:
    made = scope_of(run(fx("m1", details=G, at=0, took=5.0, compile_id="1/0"), *bypassed("no")))
    assert len(made.causes) == 2
    assert bar(made, max_time_lost_ns=SECOND)["causes"] == (0,)
    assert bar(made, min_hit_rate=0.5)["causes"] == (0, 1)


def bypassed(*reasons: str) -> list[Made]:
    told = enumerate(reasons)
    return [fx(None, "bypass", at=n, bypass_reason=reason, compile_id=f"{n}/0") for n, reason in told]


@pytest.mark.parametrize(("known", "now", "new"), [
    (["one"], ["one"], 0), (["one"], ["one", "two"], 1), (["one", "two"], ["two"], 0),
    (["one"], ["two", "three"], 2), (["one"], [], 0),
])  # fmt: skip
def test_no_new_cause(known: list[str], now: list[str], new: int) -> None:
    hit = lookups(hits=1)
    baseline, made = scope_of(run(*hit, *bypassed(*known))), scope_of(run(*hit, *bypassed(*now)))
    row = bar(made, against=baseline)
    assert (row["passed"], row["found"], len(row["causes"])) == (not new, new, new)
    assert row["reason"].startswith(f"{new} of {plural(len(now), 'cause')} new against the base")


def test_an_outcome_that_was_not_seen_may_have_a_new_cause() -> None:
    baseline = scope_of(run(*bypassed("one")))
    row = bar(scope_of(run(*bypassed("one"), *lookups(unknown=1))), against=baseline)
    assert row["passed"] is False and "may have a new cause" in row["reason"]
    # A new cause is one whatever was not seen.
    row = bar(scope_of(run(*bypassed("two"), *lookups(unknown=1))), against=baseline)
    assert (row["passed"], row["found"]) == (False, 1)


def of_option(value: str, name: str = "f1", outcome: str = "full_miss", at: int = 0) -> Made:
    return fx(name, outcome, {**G, "inductor_config[x]": value}, at=at, compile_id="0/0")


SINE = "def forward(self, x):\n    return (torch.sin(x),)"
OTHER_GRAPH = fx("other", details={"gm": SINE}, at=5, compile_id="5/0")


def test_what_changed_since_the_base_is_new_though_it_is_a_first_lookup_as_others_were_there() -> None:
    base = scope_of(run(OTHER_GRAPH, of_option("1", outcome="hit", at=20)))
    row = bar(scope_of(run(OTHER_GRAPH, of_option("2", "f2", at=20))), against=base)
    assert (row["bar"], row["passed"], row["found"]) == ("no_new_cause", False, 1)


def test_another_value_of_what_had_changed_within_the_base_is_no_new_cause() -> None:
    base = scope_of(run(of_option("1")), run(of_option("2", "f2", at=50)))
    row = bar(scope_of(run(of_option("3", "f3"))), against=base)
    assert (row["bar"], row["passed"], row["found"]) == ("no_new_cause", True, 0)


def test_rates_count_each_outcome_once() -> None:
    made = [
        fx("f1", "hit", G, at=0, time_saved_ns=6 * SECOND, compile_id="0/0"),
        fx("f2", details=G, at=1, took=2.0, compile_id="1/0"),
        fx("f3", "guard_miss", G, at=2, took=1.0, compile_id="2/0"),
        fx(None, "bypass", at=3, compile_id="3/0"),
        fx(None, "disabled", at=4, compile_id="4/0"),
        fx("f4", "unknown", G, at=5, compile_id="5/0"),
        aot("a1", "hit", G, at=6, time_saved_ns=50 * SECOND, compile_id="6/0"),
        aot("a2", details=G, at=7, took=70.0, compile_id="7/0"),
    ]
    scope = scope_of(run(*made[:4], rank=0), run(*made[4:], rank=1))
    (rate,) = scope.hit_rates().to_dict("records")
    counts = {name: rate[name] for name in ("lookups", "hits", "misses", "bypasses", "unknown")}
    assert counts == {"lookups": 8, "hits": 2, "misses": 3, "bypasses": 2, "unknown": 1}
    # An AOTAutograd lookup contains the times of its graphs.
    assert (rate["time_saved_ns"], rate["time_lost_ns"]) == (6 * SECOND, 3 * SECOND)
    assert rate["time_hit_rate"] == pytest.approx(6 / 9)
    by_cache = scope.hit_rates(["cache"]).set_index("cache")
    assert by_cache["lookups"].to_dict() == {"aotautograd": 2, "fxgraph": 6}
    assert by_cache["time_hit_rate"].isna().to_dict() == {"aotautograd": True, "fxgraph": False}
    assert scope.hit_rates(["rank"])["hits"].tolist() == [1, 1]
    found = scope.hit_rates(["run", "cache"])[["run", "cache"]].to_numpy().tolist()
    assert found == [[0, "fxgraph"], [1, "aotautograd"], [1, "fxgraph"]]


def rate(hits: int, misses: int, unknown: int = 0, lost: int | None = None) -> RateRow:
    return RateRow(hits + misses + unknown, hits, misses, 0, unknown, None, None, lost, None)


def cause(
    number: int, kind: str = "", *fields: str, lost: int | None = None, verdict: str = "key_changed"
) -> CauseRow:
    return CauseRow(number, verdict, kind, fields, 1, 1, (), (), lost, "", None)


def name(of: CauseRow) -> SameCause:
    return same_cause(of, of.fields)


def test_what_names_a_cause_in_another_scope() -> None:
    assert name(cause(1, "edit 1", "x", "gm")) == name(cause(5, "edit 1", "gm", "x", lost=9))
    first = cause(1, "edit 1", "x", "gm", verdict="first_lookup")
    for other in (cause(1, "edit 2", "x", "gm"), cause(1, "edit 1", "x"), first):
        assert name(other) != name(cause(1, "edit 1", "x", "gm"))
    # What follows from another torch differs from graph to graph.
    upgraded = cause(1, "upgrade: torch 1 -> 2", "torch_version", "x")
    assert name(upgraded) == name(cause(2, "upgrade: torch 1 -> 2", "torch_version"))
    assert name(upgraded) != name(cause(2, "upgrade: torch 1 -> 3", "torch_version", "x"))


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
    text = wrapped(terminal_lines(answer_blocks(scope)))
    assert "2026-11-" in text and "1970" not in text


GRAPH = {"gm": "a graph"}


def hit(number: int, saved: float | None) -> Made:
    ns = None if saved is None else int(saved * SECOND_NS)
    told = {"compile_id": f"{number}/0", "time_saved_ns": ns}
    return fx(f"h{number}", "hit", {"gm": "another graph"}, at=number, **told)


def miss(number: int, took: float | None, outcome: str = "full_miss") -> Made:
    return fx(f"m{number}", outcome, GRAPH, at=number, took=took, compile_id=f"{number}/0")


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
    one, other = ({**GRAPH, "inductor_config[a]": text} for text in ("True", "False"))
    first = run(fx("m1", "full_miss", one, at=1, took=took), hit(2, saved))
    return scope_of(first, run(fx("m2", "full_miss", other, at=100, took=took)))


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
