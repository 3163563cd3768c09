"""What judges damaged recordings sees every kind of wrong answer. The answers here are made by hand."""

from collections import Counter
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pandas as pd
import pytest

from tests.wild.answers import Answer, AnswerSet, Cause
from tests.wild.damages import CACHES, TEXT, Damage
from tests.wild.judging import GONE, NOT_COMPARABLE, NOT_KNOWN, SAME, Judge, Report

COLD = Cause("first_lookup", frozenset())
FUSION = frozenset({"inductor_config[epilogue_fusion]"})
CHANGED = Cause("key_changed", FUSION)
DETAILS: dict[str, dict[str, str] | None] = {
    "a1": {"gm": "graph", "tag": "x", **dict.fromkeys(FUSION, "on")},
    "a2": {"gm": "graph", "tag": "x", **dict.fromkeys(FUSION, "off")},
    "a3": {"gm": "graph", "tag": "y", **dict.fromkeys(FUSION, "off")},
}


def miss(number: int, run: int, key: str, **more: Any) -> Answer:
    said = {"verdict": "first_lookup", "root": True, "cause": COLD} | more
    return Answer(number, run, f"pid{run}", "aotautograd", key, "0/0", None, "full_miss", "recorded", **said)


# A cold run; one with another config, compared with it; one with another tag besides, compared with the second.
FIRST = miss(0, 0, "a1")
SECOND = miss(1, 1, "a2", verdict="key_changed", changed=FUSION, cause=CHANGED, baseline=0)
THIRD = miss(2, 2, "a3", verdict="key_changed", changed=frozenset({"tag"}), baseline=1)
GONE_ENTRY = miss(3, 3, "a1", verdict="entry_unavailable", kind="deleted", baseline=0)
WHOLE = [FIRST, SECOND, THIRD, GONE_ENTRY]

CUT = Damage("cut", lambda *_: None, frozenset({TEXT}), frozenset({TEXT}))
TIMES = Damage("times", lambda *_: None, frozenset({CACHES}), frozenset({CACHES}))
DRESSED = Damage("dressed", lambda *_: None, frozenset({TEXT}))
TWICE = Damage("twice", lambda *_: None, frozenset({TEXT}), copies=2)


def answer_set(answers: list[Answer]) -> AnswerSet:
    runs = {answer.run: answer.process for answer in answers}
    sources = pd.DataFrame({"run": list(runs), "sources": [(f"text/{run}.log",) for run in runs]})
    return AnswerSet(cast(Any, SimpleNamespace(runs=sources)), answers, runs, dict(DETAILS))


def judged(
    said: list[Answer],
    damage: Damage = CUT,
    floor: list[Answer] | None = None,
    left: dict[str, int] | None = None,
) -> Report:
    by_itself = None if floor is None else answer_set(floor)
    return Judge(answer_set(WHOLE), answer_set(said), damage, by_itself, Counter(left or {})).report()


UNKNOWN = replace(SECOND, outcome="unknown", verdict=None, changed=frozenset(), root=None, cause=None)
NO_DETAILS = replace(SECOND, verdict="details_not_recorded", changed=frozenset(), details="not_recorded")


@pytest.mark.parametrize("damage", [CUT, TIMES, DRESSED])
def test_what_is_the_same_is_right(damage: Damage) -> None:
    report = judged(WHOLE, damage, floor=WHOLE)
    assert not report.wrong
    assert report.counts == {SAME: 4}


@pytest.mark.parametrize("answer", [UNKNOWN, NO_DETAILS])
def test_what_is_not_known_is_right_where_nothing_else_says_it(answer: Answer) -> None:
    said = [FIRST, answer, replace(THIRD, verdict="details_not_recorded", changed=frozenset()), GONE_ENTRY]
    report = judged(said)
    assert not report.wrong
    assert report.counts == {SAME: 2, NOT_KNOWN: 2}
    wrong = judged([FIRST, answer, THIRD, GONE_ENTRY], floor=WHOLE).wrong
    assert [what for what, _ in wrong] == ["not known, though other sources say it"]


def test_what_is_lost_may_be_gone_and_no_more() -> None:
    assert judged([FIRST, SECOND, THIRD]).counts == {SAME: 3, GONE: 1}
    assert [what for what, _ in judged([FIRST, SECOND, THIRD], TIMES).wrong] == ["a lookup lost"]
    assert [what for what, _ in judged(WHOLE[:3], left={"a1": 2}).wrong] == ["less than the lines say"]


@pytest.mark.parametrize(("wrong", "what"), [
    (replace(SECOND, verdict="entry_unavailable", changed=frozenset()), "key_changed reported as entry_unavailable"),
    (replace(SECOND, changed=FUSION | {"tag"}), "other fields blamed"),
    (replace(SECOND, verdict="first_lookup", changed=frozenset()), "key_changed reported as first_lookup"),
    (replace(SECOND, root=False, cause=COLD), "another cause"),
    (replace(SECOND, outcome="hit", verdict=None, changed=frozenset()), "outcome full_miss reported as hit"),
    (replace(SECOND, outcome="guard_miss", verdict="guard_failed"), "outcome full_miss reported as guard_miss"),
    (replace(SECOND, key="a9"), "a lookup too many"),
    (replace(SECOND, compile_id="7/0"), "a lookup too many"),
    (replace(SECOND, verdict="details_not_recorded"), "key_changed reported as details_not_recorded"),
])  # fmt: skip
def test_what_is_false_is_seen(wrong: Answer, what: str) -> None:
    assert what in [found for found, _ in judged([FIRST, wrong, THIRD, GONE_ENTRY]).wrong]


def test_another_reason_of_an_unavailable_entry_is_seen() -> None:
    wrong = judged([*WHOLE[:3], replace(GONE_ENTRY, kind="damaged")], TIMES).wrong
    assert [what for what, _ in wrong] == ["entry_unavailable: deleted reported as damaged"]
    assert not judged([*WHOLE[:3], replace(GONE_ENTRY, kind="not known")], TIMES).wrong
    assert not judged([*WHOLE[:3], replace(GONE_ENTRY, kind="gone or damaged")], TIMES).wrong


def test_a_stranger_is_no_relative() -> None:
    said = replace(FIRST, verdict="key_changed", changed=frozenset({"tag"}), baseline=3)
    wanted = ["first_lookup reported as key_changed"]
    assert [what for what, _ in judged([said, SECOND, THIRD, GONE_ENTRY]).wrong] == wanted


def test_a_farther_comparison_is_right_where_the_nearer_is_gone_and_it_is_true() -> None:
    both = FUSION | {"tag"}
    farther = replace(THIRD, changed=both, baseline=0, cause=Cause("key_changed", both))
    assert judged([FIRST, farther, GONE_ENTRY]).counts == {SAME: 2, GONE: 1, NOT_COMPARABLE: 1}
    assert [what for what, _ in judged([FIRST, SECOND, farther, GONE_ENTRY]).wrong] == ["other fields blamed"]
    untrue = replace(farther, changed=both | {"gm"})
    assert [what for what, _ in judged([FIRST, untrue, GONE_ENTRY]).wrong] == ["other fields blamed"]


def test_first_lookup_is_right_where_all_that_was_earlier_is_gone() -> None:
    alone = replace(GONE_ENTRY, verdict="first_lookup", kind=None)
    assert judged([alone]).counts == {GONE: 3, NOT_COMPARABLE: 1}
    # The second is of the same graph.
    wanted = ["entry_unavailable reported as first_lookup"]
    assert [what for what, _ in judged([NO_DETAILS, alone]).wrong] == wanted


def test_copies_are_runs_of_their_own_that_may_race() -> None:
    copy = [
        replace(one, number=one.number + 4, run=one.run + 4, baseline=None if one.baseline is None else one.baseline + 4)
        for one in WHOLE
    ]  # fmt: skip
    racing = replace(copy[0], verdict="compiled_concurrently")
    assert not judged([*WHOLE, *copy], TWICE).wrong
    assert judged([*WHOLE, racing, *copy[1:]], TWICE).counts == {SAME: 7, NOT_COMPARABLE: 1}
    assert {what for what, _ in judged(WHOLE, TWICE).wrong} == {"two processes taken for one"}
    assert {what for what, _ in judged([*WHOLE, *copy], DRESSED).wrong} >= {"a run too many"}


def test_a_lookup_told_twice_is_one_too_many() -> None:
    again = replace(FIRST, number=9, run=9)
    assert [what for what, _ in judged([*WHOLE, again]).wrong] == ["a run too many", "a lookup too many"]
    assert [what for what, _ in judged([*WHOLE, replace(again, run=0)]).wrong] == ["a lookup too many"]


def test_a_log_without_a_pid_is_known_by_its_name() -> None:
    assert answer_set(WHOLE).process_of_log == {"0": "pid0", "1": "pid1", "2": "pid2", "3": "pid3"}
