"""Sums that are equal, told by both of their lanes; made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from cachescope.analysis.what_if.equal_sets import EqualSets, numbered
from cachescope.analysis.what_if.members import Members


def lanes(*columns: tuple[int, int]) -> np.ndarray:
    return np.array(columns, dtype=np.uint64).reshape(-1, 2).T


@pytest.mark.parametrize(
    ("columns", "codes", "first"),
    [
        ([], [], []),
        ([(5, 1), (5, 1)], [0, 0], [0]),
        ([(5, 1), (6, 1), (5, 1)], [0, 1, 0], [0, 1]),
        # One lane alone does not make them equal.
        ([(5, 1), (5, 2), (6, 1), (5, 1), (5, 2)], [0, 1, 2, 0, 1], [0, 1, 2]),
        ([(5, 1), (6, 1)], [0, 1], [0, 1]),
        ([(5, 5), (5, 6)], [0, 1], [0, 1]),
    ],
)
def test_equal_columns_have_one_number(
    columns: list[tuple[int, int]], codes: list[int], first: list[int]
) -> None:
    found, places = numbered(lanes(*columns))
    assert (found.tolist(), places.tolist()) == (codes, first)


def refined(
    sums: list[tuple[int, int]], *moved: dict[int, tuple[int, int]], leader: list[int] | None = None
) -> list[int]:
    """The leader of each set, if each of some fields is taken off some sets; by how much of their sums."""
    of_fields = [(np.array(list(some), dtype=np.int64), lanes(*some.values())) for some in moved]
    leaders = np.array(range(len(sums)) if leader is None else leader, dtype=np.int64)
    return EqualSets(lanes(*sums), leaders).refined(of_fields).leader.tolist()


@pytest.mark.parametrize(
    ("sums", "moved", "leaders"),
    [
        ([(1, 1), (2, 2)], [], [0, 1]),
        # One that has another value becomes one that has the usual one, or another of its kind.
        ([(1, 1), (4, 5)], [{1: (3, 4)}], [0, 0]),
        ([(1, 1), (4, 5)], [{1: (3, 3)}], [0, 1]),
        ([(1, 1), (4, 5)], [{1: (2, 4)}], [0, 1]),
        ([(1, 1), (4, 5), (7, 7)], [{1: (1, 1), 2: (4, 3)}], [0, 1, 1]),
        ([(9, 9), (4, 5), (7, 8), (1, 1)], [{1: (3, 4), 2: (6, 7)}], [0, 3, 3, 3]),
        # Two fields, of which it has both.
        ([(1, 1), (7, 7)], [{1: (2, 2)}, {1: (4, 4)}], [0, 0]),
        ([(1, 1), (7, 7), (3, 3)], [{1: (2, 2)}, {1: (4, 4), 2: (2, 2)}], [0, 0, 0]),
    ],
)
def test_sets_become_equal(
    sums: list[tuple[int, int]], moved: list[dict[int, tuple[int, int]]], leaders: list[int]
) -> None:
    assert refined(sums, *moved) == leaders


def test_what_was_equal_stays_so() -> None:
    """The second and the third were equal before; one stands for both."""
    assert refined([(1, 1), (4, 4), (4, 4)], {1: (3, 3), 2: (3, 3)}, leader=[0, 1, 1]) == [0, 0, 0]
    first = EqualSets(lanes((1, 1), (4, 4), (9, 9)), np.arange(3))
    then = first.refined([(np.array([1]), lanes((3, 3)))])
    assert then.refined([(np.array([2]), lanes((8, 8)))]).leader.tolist() == [0, 0, 0]
    assert first.leader.tolist() == [0, 1, 2]


def test_places_of_numbers() -> None:
    members = Members(np.array([10, 11, 12, 13, 14]), np.array([2, 0, 2, 0, 4]), 6)
    places, which = members.of(np.array([2, 1, 0, 2, 4, 5]))
    assert places.tolist() == [10, 12, 11, 13, 10, 12, 14]
    assert which.tolist() == [0, 0, 2, 2, 3, 3, 4]
    assert [part.tolist() for part in members.of(np.array([], dtype=np.int64))] == [[], []]
