"""Causes where they card: what is counted of all runs is what is counted run by run."""

from collections import Counter

import pytest

import cachescope
from cachescope.answers.cards import Cards, ways
from cachescope.answers.chosen import Chosen

SAMPLES = ("config_flip", *(pytest.param(name, marks=pytest.mark.slow) for name in ("four_ranks", "tour")))


@pytest.mark.parametrize("name", SAMPLES)
def test_causes_of_each_run_add_up_to_those_of_all(name: str) -> None:
    scope = cachescope.read(cachescope.sample(name))
    every = Cards.of(scope, most=1000)
    misses: Counter[int] = Counter()
    lost: Counter[int] = Counter()
    runs: Counter[int] = Counter()
    for run in scope.runs["run"]:
        for card in Cards.of(scope, Chosen.of_runs(scope, {run}), most=1000).cards:
            cause = card.row.cause
            misses[cause] += card.row.misses
            lost[cause] += card.row.time_lost_ns or 0
            runs[cause] += len(card.row.runs)
    assert every.cards and every.more == 0
    for card in every.cards:
        cause = card.row.cause
        assert card.row.misses == misses[cause]
        assert (card.row.time_lost_ns or 0) == lost[cause]
        assert len(card.row.runs) == runs[cause] and len(card.places) == min(2, card.roots)


def test_what_is_beyond_the_most_is_counted() -> None:
    scope = cachescope.read(cachescope.sample("tour"))
    every, first = Cards.of(scope, most=1000), Cards.of(scope, most=1)
    assert first.cards == every.cards[:1]
    assert first.more == len(every.cards) - 1 > 0
    assert first.more_misses == sum(card.row.misses for card in every.cards[1:])


def test_ways_of_a_cause_differ_in_their_values() -> None:
    scope = cachescope.read(cachescope.sample("tour"))
    for card in Cards.of(scope, most=1000).cards:
        found = ways(scope, card.row.cause, 3)
        texts = [tuple(change.summary for change in one.changes) or one.reason for one in found]
        assert 1 <= len(found) <= 3
        assert len(set(texts)) == len(texts)


def test_the_text_repr_counts_the_entries_of_each_status() -> None:
    scope = cachescope.read(cachescope.sample("entry_truncated"))
    statuses = scope.entries["status"].value_counts().to_dict()
    assert statuses["damaged"] > 0
    assert repr(scope).endswith(f"entries: {sum(statuses.values())}, damaged: {statuses['damaged']}")
