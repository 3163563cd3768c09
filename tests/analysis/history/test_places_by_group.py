"""Numbers for values and pairs of them, and places by group: small columns in, worked out by hand."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import pytest

from cachescope.analysis.history.places_by_group import (
    NONE,
    Grouped,
    Numbers,
    firsts,
    numbered,
    paired,
    same_before,
)


def column(*numbers: int) -> Numbers:
    return np.array(numbers, dtype=np.int64)


@pytest.mark.parametrize(
    ("values", "numbers"),
    [
        ([], []),
        (["b", "a", "b"], [0, 1, 0]),
        (["b", None, "a", None], [0, NONE, 1, NONE]),
        ([(1, 2), (1, 3), (1, 2)], [0, 1, 0]),
        (column(7, NONE, 7, 3), [0, 1, 0, 2]),
    ],
)
def test_equal_values_have_one_number(values: list[Hashable] | Numbers, numbers: list[int]) -> None:
    assert numbered(values).tolist() == numbers


@pytest.mark.parametrize(
    ("first", "second", "numbers"),
    [
        ([], [], []),
        ([0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 2, 3]),
        ([0, NONE, 0], [5, 5, 5], [0, NONE, 0]),
        # A second of -1 is a value; it is neither the greatest of the pair before nor 0 of the same.
        ([0, 1, 0, 1], [2, NONE, NONE, 2], [0, 1, 2, 3]),
        ([0, 1, 0, 1], [0, NONE, NONE, 0], [0, 1, 2, 3]),
        ([0, 0, 1], [NONE, NONE, NONE], [0, 0, 1]),
    ],
)
def test_a_pair_has_a_number_of_its_own(first: list[int], second: list[int], numbers: list[int]) -> None:
    assert paired(column(*first), column(*second)).tolist() == numbers


@pytest.mark.parametrize(
    ("numbers", "places"), [([], []), ([0, 1, 0, 1], [0, 1]), ([1, 1, 0], [2, 0]), ([2, 0, 1, 0], [1, 2, 0])]
)
def test_the_first_place_of_each_number(numbers: list[int], places: list[int]) -> None:
    assert firsts(column(*numbers)).tolist() == places


@pytest.mark.parametrize(
    ("numbers", "before"),
    [
        ([], []),
        ([5], [NONE]),
        ([5, 5, 5], [NONE, 0, 1]),
        ([5, 3, 5, 3, 5], [NONE, NONE, 0, 1, 2]),
        ([1, 2, 3], [NONE, NONE, NONE]),
    ],
)
def test_the_latest_place_before_with_the_same_number(numbers: list[int], before: list[int]) -> None:
    assert same_before(column(*numbers)).tolist() == before


# Groups 0 and 2 have places, 1 has none, and the places 1 and 6 are of no group.
GROUPED = Grouped(column(2, NONE, 0, 2, 0, 2, NONE))


@pytest.mark.parametrize(
    ("group", "places"), [(0, [2, 4]), (1, []), (2, [0, 3, 5]), (3, []), (9, []), (NONE, []), (-3, [])]
)
def test_the_places_of_a_group(group: int, places: list[int]) -> None:
    assert GROUPED.of(group).tolist() == places


@pytest.mark.parametrize(
    ("group", "place", "places"),
    [(2, 0, []), (2, 3, [0]), (2, 4, [0, 3]), (2, 9, [0, 3, 5]), (NONE, 9, []), (1, 9, [])],
)
def test_the_places_of_a_group_before_a_place(group: int, place: int, places: list[int]) -> None:
    assert GROUPED.before(group, place).tolist() == places


def test_the_first_place_of_each_group() -> None:
    assert GROUPED.first(column(2, 0, 2)).tolist() == [0, 2, 0]


@pytest.mark.parametrize(
    ("groups", "counts"),
    [
        # Of its own group, of another, of one that has no place, of none, and of one that is beyond them all.
        ([2, 2, 2, 2, 2, 2, 2], [0, 1, 1, 1, 2, 2, 3]),
        ([0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 1, 1, 2, 2]),
        ([1, 1, 1, 1, 1, 1, 1], [0, 0, 0, 0, 0, 0, 0]),
        ([NONE, NONE, NONE, NONE, NONE, NONE, NONE], [0, 0, 0, 0, 0, 0, 0]),
        ([3, 4, 3, 4, 3, 4, 3], [0, 0, 0, 0, 0, 0, 0]),
        ([0, 2, NONE, 0, 2, 7, 2], [0, 1, 0, 1, 2, 0, 3]),
    ],
)
def test_how_many_places_of_a_group_come_before_each(groups: list[int], counts: list[int]) -> None:
    assert GROUPED.how_many_before(column(*groups)).tolist() == counts


@pytest.mark.parametrize(
    ("group", "values", "greatest"),
    [
        ([], [], []),
        ([NONE, NONE], [1, 2], [NONE, NONE]),
        ([0, 0, 0], [0, 0, 0], [NONE, NONE, NONE]),
        ([0, 0, 0, 0], [0, 1, 1, 0], [NONE, 0, 0, 1]),
        ([0, 0, 0, 0], [3, 1, 2, 3], [NONE, 3, 3, 2]),
        ([0, 0, 0, 0], [3, 3, 1, 3], [NONE, NONE, 3, 1]),
        ([0, 1, 0, 1, NONE, 0], [2, 5, 4, 1, 9, 4], [NONE, NONE, 2, 5, NONE, 2]),
        # The first of the next group has nothing before it, whatever the group before has.
        ([0, 0, 1, 1], [9, 8, 0, 0], [NONE, 9, NONE, NONE]),
    ],
)
def test_the_greatest_other_value_of_the_group_before_each(
    group: list[int], values: list[int], greatest: list[int]
) -> None:
    assert Grouped(column(*group)).greatest_other_before(column(*values)).tolist() == greatest
