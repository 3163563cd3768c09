"""Sets kept as what differs from one like them are the sets that were added."""

from __future__ import annotations

from array import array

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachescope.component_sets import ComponentSets
from cachescope.details import HashDetails

CODES = st.lists(st.integers(0, 40), min_size=0, max_size=24)
FIELDS = ("a", "b", "c", "d", "e")


def as_bytes(codes: list[int]) -> bytes:
    return array("i", codes).tobytes()


@given(st.lists(CODES, max_size=40))
def test_what_was_added_is_there_and_equal_ones_have_one_number(added: list[list[int]]) -> None:
    sets = ComponentSets()
    numbers = [sets.add(as_bytes(codes)) for codes in added]
    assert [sets[number].tolist() for number in numbers] == added
    assert len(sets) == len({tuple(codes) for codes in added})
    assert [sets.add(as_bytes(codes)) for codes in added] == numbers
    assert [own.tolist() for own in sets[1:]] == [sets[n].tolist() for n in range(1, len(sets))]


def test_the_keys_of_one_fleet_are_kept_as_what_they_differ_in() -> None:
    sets, codes = ComponentSets(), np.arange(640, dtype=np.int32)
    for number in range(2_000):
        codes[number % 30] = 1_000 + number
        sets.add(codes.tobytes())
    places = [len(sets.parts(number)[1]) for number in range(2_000)]
    assert max(places) == 30


@pytest.mark.parametrize("length", [1, 7, 640])
def test_sets_that_are_like_no_other_are_kept_too(length: int) -> None:
    sets = ComponentSets()
    every = [list(range(n * length, (n + 1) * length)) for n in range(30)]
    numbers = [sets.add(as_bytes(codes)) for codes in every]
    assert numbers == list(range(30))
    assert [sets[number].tolist() for number in numbers] == every
    assert [sets.add(as_bytes(codes)) for codes in every] == numbers


def component(field: str, value: int) -> str:
    return f"[{'abcdefghij'[value] * 51}] {field}: {value}"


# Fields in any order, absent, or there twice: a hostile log holds all of it.
DETAILS = st.lists(st.tuples(st.sampled_from(FIELDS), st.integers(0, 3)), min_size=1, max_size=9)
USUAL = st.tuples(*(st.tuples(st.just(field), st.integers(0, 1)) for field in FIELDS)).map(list)


@given(st.lists(DETAILS | USUAL, min_size=1, max_size=12))
def test_what_sets_differ_in_is_what_their_fields_say(keys: list[list[tuple[str, int]]]) -> None:
    store = HashDetails()
    sets = [store.add(component(field, value) for field, value in key)[0] for key in keys]
    numbers = [number for number in sets if number is not None]
    # Of a field that is there twice the last counts.
    plain = [dict(key) for key in keys]
    letter = {code: store.components[at][1] for at, code in enumerate(store.hash_codes.tolist())} | {-1: ""}
    for field in FIELDS:
        found = [store.hash_code(number, field) for number in numbers]
        assert [letter[-1 if code is None else code] for code in found] == [
            "" if field not in one else "abcdefghij"[one[field]] for one in plain
        ]
    for one, mine in zip(plain, numbers, strict=True):
        for other, theirs in zip(plain, numbers, strict=True):
            changed = {field for field in FIELDS if one.get(field) != other.get(field)}
            assert set(store.changed_fields(mine, theirs)) == changed
