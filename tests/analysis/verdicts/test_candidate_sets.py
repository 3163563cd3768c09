"""The nearest of some lookups and entries by their hash details: sets in, worked out by counting fields by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from cachescope.analysis.history.places_by_group import NONE, Numbers
from cachescope.analysis.verdicts.candidate_sets import CandidateSets
from cachescope.analysis.verdicts.field_differences import FieldDifferences
from cachescope.details import HashDetails
from tests.made import component

# The value of each field by its letter; "-" is a field that the set lacks. `i` and `j` describe inputs.
FIELDS = {"a": "a", "b": "b", "c": "c", "i": "example_inputs[0]", "j": "example_inputs[1]"}


class Made:
    """Lookups at the places 10, 20, 30, … with one letter for the value of each field, and entries."""

    def __init__(self, lookups: Sequence[str], entries: Mapping[int, str] | None = None) -> None:
        self.store = HashDetails()
        # Not in the order of their codes.
        self.set_of("zzzzz")
        stored = {number: self.set_of(values) for number, values in (entries or {}).items()}
        self.places = numbers(*range(10, 10 * len(lookups) + 1, 10))
        sets = numbers(*map(self.set_of, lookups))
        self.sets = CandidateSets(self.store, self.places, sets, stored)

    def set_of(self, values: str) -> int:
        fields = zip(FIELDS.values(), values, strict=True)
        code, _ = self.store.add(component(field, value) for field, value in fields if value != "-")
        assert code is not None
        return code


def numbers(*found: int) -> Numbers:
    return np.array(found, dtype=np.int64)


@pytest.mark.parametrize(
    ("lookups", "wanted"),
    [
        (["11111"], NONE),
        (["11111", "11111"], 10),
        # The same set before one with another field, though that is later; of each the latest.
        (["11111", "21111", "11111"], 10),
        (["11111", "11111", "21111", "11111"], 20),
        (["21111", "12111", "11111"], 20),
        (["21111", "22111", "11111"], 10),
        (["2-111", "1-111", "11111"], 20),
        # Of two that lack a field the others count.
        (["11111", "-2211", "-1111"], 10),
        (["22111", "11111"], NONE),
        # Of two lookups of one other set the latest.
        (["11112", "11112", "22222", "11111"], 20),
    ],
)
def test_the_same_set_or_one_with_one_other_field(lookups: list[str], wanted: int) -> None:
    made = Made(lookups)
    assert made.sets.near(made.places[-1:]).tolist() == [wanted]


def test_near_is_answered_for_many_at_once() -> None:
    made = Made(["11111", "21111", "33333", "11111", "31111"])
    assert made.sets.near(numbers(50, 30, 20, 10, 40)).tolist() == [40, NONE, 10, NONE, 10]


@pytest.mark.parametrize(
    ("lookups", "entries", "wanted"),
    [
        ([], {}, (NONE, NONE)),
        (["22111"], {}, (10, NONE)),
        (["22111", "21111", "22211"], {}, (20, NONE)),
        # Among equals the latest, and a lookup before an entry.
        (["21111", "12111", "22111"], {}, (20, NONE)),
        (["21111", "21111"], {}, (20, NONE)),
        (["21111", "12111"], {7: "11211"}, (20, NONE)),
        (["21111"], {7: "11111"}, (NONE, 7)),
        (["22111"], {7: "11211", 8: "11121", 9: "22222"}, (NONE, 8)),
        ([], {7: "22222", 8: "22211"}, (NONE, 8)),
        ([], {7: "22222"}, (NONE, 7)),
        (["22111", "22111"], {7: "22211"}, (20, NONE)),
        # A field that one side lacks is one that differs.
        (["--111", "-1111"], {}, (20, NONE)),
    ],
)
def test_the_nearest_of_all(lookups: list[str], entries: dict[int, str], wanted: tuple[int, int]) -> None:
    made = Made([*lookups, "11111"], entries)
    assert made.sets.nearest(int(made.places[-1]), made.places[:-1], list(entries)) == wanted


def test_the_nearest_of_some() -> None:
    made = Made(["21111", "22111", "22211", "11111"], {7: "12111", 8: "22222"})
    assert made.sets.nearest(40, numbers(20, 30), []) == (20, NONE)
    assert made.sets.nearest(40, numbers(30), []) == (30, NONE)
    assert made.sets.nearest(40, numbers(20, 30), [8]) == (20, NONE)
    assert made.sets.nearest(40, numbers(20, 30), [8, 7]) == (NONE, 7)
    # From there only what comes before it.
    assert made.sets.nearest(30, numbers(10, 20), []) == (20, NONE)
    assert made.sets.nearest(20, numbers(10), []) == (10, NONE)


def nearer(
    lookups: list[str],
    baseline: str,
    may_be: Sequence[int] = (),
    other_calls: Sequence[int] = (),
    of_run: Sequence[int] = (),
) -> tuple[int, int]:
    """The nearer key than a baseline for the last lookup, of the three before it; some are other calls."""
    made = Made(lookups, {0: baseline})
    before = [10 * (len(lookups) - back) for back in (3, 2, 1)]
    allowed = np.array([[not may_be or place in may_be for place in before]])
    calls = np.array([[place in other_calls for place in before]])
    is_of_run = np.array([[place in of_run for place in before]])
    sets = numbers(made.set_of(baseline))
    found, apart = made.sets.nearer(made.places[-1:], sets, allowed, calls, is_of_run)
    return int(found[0]), int(apart[0])


@pytest.mark.parametrize(
    ("lookups", "baseline", "wanted"),
    [
        (["11111"], "22111", (NONE, 2)),
        (["21111", "11111"], "22111", (10, 2)),
        # As many fields are not fewer, and none at all is no other key.
        (["12211", "11111"], "22111", (NONE, 2)),
        (["11111", "11111"], "22111", (NONE, 2)),
        (["21111", "11111"], "11111", (NONE, 0)),
        (["12111", "11111"], "21111", (NONE, 1)),
        # Of those with some of the same fields the first of the nearest; of the others the last.
        (["21111", "12111", "11111"], "22111", (10, 2)),
        (["11211", "12111", "11121", "11111"], "22111", (20, 2)),
        (["11211", "11121", "11111"], "22111", (20, 2)),
        (["22111", "12111", "11111"], "22211", (20, 3)),
        (["11221", "11121", "11111"], "22211", (20, 3)),
        (["21111", "11131", "11111"], "22111", (10, 2)),
        # A value of its own in a field of the baseline's is within its fields.
        (["31111", "11111"], "22111", (10, 2)),
        # Only the three before it are looked at.
        (["21111", "33333", "33333", "33333", "11111"], "22111", (NONE, 2)),
        (["33333", "21111", "33333", "33333", "11111"], "22111", (20, 2)),
    ],
)
def test_a_nearer_key(lookups: list[str], baseline: str, wanted: tuple[int, int]) -> None:
    assert nearer(lookups, baseline) == wanted


def test_a_nearer_key_is_one_that_may_be_chosen() -> None:
    lookups = ["21111", "12111", "11112", "11111"]
    assert nearer(lookups, "22111", may_be=[20]) == (20, 2)
    assert nearer(lookups, "22111", may_be=[30]) == (30, 2)
    # Another call differs in inputs alone: in one that also differs in another field the key has changed.
    assert nearer(lookups, "22111", may_be=[30], other_calls=[30]) == (NONE, 2)
    assert nearer(lookups, "22111", may_be=[20], other_calls=[20]) == (20, 2)
    assert nearer(["11122", "11111"], "22112", other_calls=[10]) == (NONE, 3)
    assert nearer(["21112", "11111"], "22112", other_calls=[10]) == (10, 3)
    assert nearer(["21112", "11112", "11111"], "22112", other_calls=[10, 20]) == (10, 3)
    # What another call of the run has otherwise did not change since the run before.
    assert nearer(["11121", "11111"], "22111", of_run=[10]) == (NONE, 2)
    assert nearer(["21111", "11111"], "22111", of_run=[10]) == (10, 2)
    assert nearer(["11121", "11211", "11111"], "22111", of_run=[20]) == (10, 2)


@pytest.mark.parametrize(
    ("lookups", "wanted"),
    [
        (["11112", "11121", "11122", "21112", "21111", "11111"], [True, True, True, False, False]),
        (["111-1", "11211"], [False]),
        (["111-1", "11111"], [True]),
        (["11111", "11111"], [False]),
    ],
)
def test_whether_only_inputs_differ(lookups: list[str], wanted: list[bool]) -> None:
    made = Made(lookups)
    found = made.sets.only_inputs_differ(int(made.places[-1]), made.places[:-1])
    assert found.tolist() == wanted


def test_the_places_before_each() -> None:
    made = Made(["11111"] * 4)
    assert made.sets.before(numbers(40, 30), 2).tolist() == [[20, 30], [10, 20]]
    # Where there are fewer some place stands there, which is none that is asked for.
    assert made.sets.before(numbers(20), 2).tolist()[0][1] == 10


@pytest.mark.parametrize(
    ("place", "counts", "of_others"),
    [(0, [0, 1, 2, 5], [0, 1, 1, 3]), (1, [1, 0, 3, 5], [1, 0, 2, 3]), (2, [2, 3, 0, 5], [1, 2, 0, 3])],
)
def test_how_many_fields_separate_sets(place: int, counts: list[int], of_others: list[int]) -> None:
    made = Made([])
    sets = [made.set_of(values) for values in ("11111", "21111", "12121", "33333")]
    found = FieldDifferences(made.store, sets, lambda field: field.startswith("example"))
    assert [numbers.tolist() for numbers in found.counts(place)] == [counts, of_others]


def test_sets_that_are_equal_but_for_one_field() -> None:
    made = Made([])
    sets = [made.set_of(values) for values in ("11111", "21111", "12111", "22111", "21311")]
    found = FieldDifferences(made.store, sets, lambda _: False)
    groups = {frozenset(map(frozenset, same(numbers.tolist()))) for numbers in found.without_each()}
    but_for_a, but_for_b, but_for_c = ([{0, 1}, {2, 3}], [{0, 2}, {1, 3}], [{1, 4}])
    assert groups == {frozenset(map(frozenset, one)) for one in (but_for_a, but_for_b, but_for_c)}


def same(groups: list[int]) -> list[list[int]]:
    """Which have one number, where several have."""
    found = [[at for at, number in enumerate(groups) if number == one] for one in set(groups)]
    return [places for places in found if len(places) > 1]
