"""Causes where they struck: what is counted of all runs is what is counted run by run."""

from collections import Counter

import pytest

import cachescope
from cachescope.answers.causes import Causes, ways
from cachescope.answers.chosen import Chosen
from cachescope.answers.summary import InShort

SAMPLES = ("config_flip", *(pytest.param(name, marks=pytest.mark.slow) for name in ("four_ranks", "tour")))


@pytest.mark.parametrize("name", SAMPLES)
def test_causes_of_each_run_add_up_to_those_of_all(name: str) -> None:
    scope = cachescope.read(cachescope.sample(name))
    every = Causes.of(scope, most=1000)
    misses: Counter[int] = Counter()
    lost: Counter[int] = Counter()
    runs: Counter[int] = Counter()
    for run in scope.runs["run"]:
        for struck in Causes.of(scope, Chosen.of_runs(scope, {run}), most=1000).struck:
            cause = struck.row.cause
            misses[cause] += struck.misses
            lost[cause] += struck.time_lost_ns or 0
            runs[cause] += struck.runs
    assert every.struck and every.more == 0
    for struck in every.struck:
        cause = struck.row.cause
        assert struck.misses == misses[cause]
        assert (struck.time_lost_ns or 0) == lost[cause]
        assert struck.runs == runs[cause] and len(struck.places) == min(2, struck.roots)


def test_what_is_beyond_the_most_is_counted() -> None:
    scope = cachescope.read(cachescope.sample("tour"))
    every, first = Causes.of(scope, most=1000), Causes.of(scope, most=1)
    assert first.struck == every.struck[:1]
    assert first.more == len(every.struck) - 1 > 0
    assert first.more_misses == sum(struck.misses for struck in every.struck[1:])


def test_ways_of_a_cause_differ_in_their_values() -> None:
    scope = cachescope.read(cachescope.sample("tour"))
    for struck in Causes.of(scope, most=1000).struck:
        found = ways(scope, struck.row.cause, 3)
        texts = [tuple(change.summary for change in one.changes) or one.reason for one in found]
        assert 1 <= len(found) <= 3
        assert len(set(texts)) == len(texts)


def test_in_short_counts_the_entries_of_each_status() -> None:
    scope = cachescope.read(cachescope.sample("entry_truncated"))
    found = InShort.of(scope)
    statuses = scope.entries["status"].value_counts().to_dict()
    assert found.entries == sum(statuses.values())
    assert found.damaged == statuses["damaged"] > 0
    assert found.unreadable == statuses.get("unreadable", 0)
