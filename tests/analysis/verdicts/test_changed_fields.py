"""The fields that changed between two sets of hash details, of many pairs at once: sets in, worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from cachescope.analysis.history.places_by_group import NONE
from cachescope.analysis.verdicts.changed_fields import ChangedFields, changed_fields, in_chunks
from cachescope.details import HashDetails
from tests.made import component

# A letter for each field and one for its value, in the order in which torch prints them. Those of one length that differ
# in a quarter at most have one base.
SETS = {
    "base": "a1b1c1d1e1f1g1h1",
    "b": "a1b2c1d1e1f1g1h1",
    "also b": "a1b3c1d1e1f1g1h1",
    "a and h": "a2b1c1d1e1f1g1h2",
    "other base": "a9b9c9d9e9f1g1h1",
    "other base, c": "a9b9c8d9e9f1g1h1",
    "shorter": "a1b1c1d1e1f1g1",
    "h renamed": "a1b1c1d1e1f1g1x1",
    "g twice": "a1b1c1d1e1f1g1g2",
    "two exchanged": "a1b1c1d1e1f1h1g1",
}

Change = tuple[str, str | None, str | None]
CASES: list[tuple[str, str, list[Change]]] = [
    ("base", "base", []),
    ("base", "b", [("b", "1", "2")]),
    ("b", "base", [("b", "2", "1")]),
    ("b", "also b", [("b", "2", "3")]),
    ("b", "a and h", [("a", "1", "2"), ("b", "2", "1"), ("h", "1", "2")]),
    ("other base", "other base, c", [("c", "9", "8")]),
    ("base", "other base", [(field, "1", "9") for field in "abcde"]),
    ("b", "other base", [("a", "1", "9"), ("b", "2", "9"), *((field, "1", "9") for field in "cde")]),
    ("base", "shorter", [("h", "1", None)]),
    ("shorter", "base", [("h", None, "1")]),
    ("base", "h renamed", [("x", None, "1"), ("h", "1", None)]),
    ("b", "h renamed", [("b", "2", "1"), ("x", None, "1"), ("h", "1", None)]),
    ("h renamed", "h renamed", []),
    ("base", "two exchanged", []),
    # Of a field that is there twice the last counts.
    ("base", "g twice", [("g", "1", "2"), ("h", "1", None)]),
]


@pytest.fixture(scope="module")
def store() -> tuple[HashDetails, dict[str, int]]:
    details = HashDetails()
    codes = {}
    for name, letters in SETS.items():
        fields = zip(letters[::2], letters[1::2], strict=True)
        code, _ = details.add(component(field, value) for field, value in fields)
        assert code is not None
        codes[name] = code
    return details, codes


def listed(details: HashDetails, found: ChangedFields, number: int) -> list[Change]:
    """What changed in one pair, in words."""

    def value(code: int) -> str | None:
        return None if code == NONE else details.components[code].rpartition(": ")[2]

    here = range(*found.starts[number : number + 2].tolist())
    assert found.pair[here].tolist() == [number] * len(here)
    names = [details.fields[code] for code in found.field[here].tolist()]
    return list(
        zip(names, map(value, found.old[here].tolist()), map(value, found.new[here].tolist()), strict=True)
    )


@pytest.mark.parametrize(("before", "after", "wanted"), CASES)
def test_of_one_pair(
    before: str, after: str, wanted: list[Change], store: tuple[HashDetails, dict[str, int]]
) -> None:
    details, codes = store
    found = changed_fields(details, np.array([codes[before]]), np.array([codes[after]]))
    assert listed(details, found, 0) == wanted


@pytest.mark.parametrize("step", [1, -1])
def test_of_all_pairs_at_once(step: int, store: tuple[HashDetails, dict[str, int]]) -> None:
    details, codes = store
    cases = CASES[::step]
    before, after = (np.array([codes[case[side]] for case in cases]) for side in (0, 1))
    found = changed_fields(details, before, after)
    assert [listed(details, found, number) for number in range(len(cases))] == [case[2] for case in cases]
    for (codes_of, alone), (_, _, wanted) in zip(found.fields(), cases, strict=True):
        names = [details.fields[code] for code in np.frombuffer(codes_of, dtype=np.int32).tolist()]
        assert names == [field for field, _, _ in wanted]
        if len(wanted) != 1:
            assert alone == (NONE, NONE)
        else:
            texts = [None if code == NONE else details.components[code].rpartition(": ")[2] for code in alone]
            assert texts == [*wanted[0][1:]]


def test_of_no_pair(store: tuple[HashDetails, dict[str, int]]) -> None:
    none = np.zeros(0, dtype=np.int64)
    found = changed_fields(store[0], none, none)
    assert (found.starts.tolist(), list(found.fields()), len(found.pair)) == ([0], [], 0)


def test_pairs_of_which_something_holds_in_each_field(store: tuple[HashDetails, dict[str, int]]) -> None:
    details, codes = store
    pairs = [("base", "b"), ("base", "base"), ("b", "a and h"), ("base", "a and h"), ("also b", "base")]
    before, after = (np.array([codes[pair[side]] for pair in pairs]) for side in (0, 1))
    found = changed_fields(details, before, after)
    is_b = found.field == details.field_code("b")
    # Where nothing changed there is no field of which it holds.
    assert found.where_all(is_b).tolist() == [True, False, False, False, True]
    assert found.where_all(~is_b).tolist() == [False, False, False, True, False]
    assert found.where_all(np.ones(len(is_b), dtype=bool)).tolist() == [True, False, True, True, True]


def test_columns_are_taken_in_pieces_that_stand_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cachescope.analysis.verdicts.changed_fields._AT_ONCE", 2)
    pieces = in_chunks(np.arange(5), np.arange(5) * 10)
    assert [[one.tolist() for one in piece] for piece in pieces] == [
        [[0, 1], [0, 10]],
        [[2, 3], [20, 30]],
        [[4], [40]],
    ]
    assert list(in_chunks(np.arange(0))) == []
