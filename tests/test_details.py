"""Hash details: one grammar, codes that stand for texts, a diff of hashes that has the laws of a diff, and sets kept as what differs."""

from array import array
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachescope.component_sets import ComponentSets
from cachescope.components import parse_component
from cachescope.details import HashDetails
from cachescope.keys.detail_hash import detail_hash
from tests import made

HASHES = st.text("abcdefghijklmnopqrstuvwxyz234567", min_size=51, max_size=51)
FIELDS = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}(\[[a-z0-9_.]{1,8}\])?", fullmatch=True)
COMPONENTS = st.dictionaries(FIELDS, st.tuples(HASHES, st.text(max_size=20)), min_size=1, max_size=8).map(
    lambda fields: [f"[{digest}] {field}: {value}" for field, (digest, value) in fields.items()]
)


@given(FIELDS, HASHES, st.text())
def test_a_component_is_split_at_its_first_colon(field: str, digest: str, value: str) -> None:
    detail = parse_component(f"[{digest}] {field}: {value}")
    assert (detail.field, detail.detail_hash, detail.value_text) == (field, digest, value)


@pytest.mark.slow
@given(st.text())
def test_any_text_is_a_detail_or_none(text: str) -> None:
    detail = parse_component(text)
    assert detail is None or text.startswith(f"[{detail.detail_hash}] ")


def test_a_value_may_hold_what_the_grammar_is_made_of() -> None:
    digest = "a" * 51
    detail = parse_component(f"[{digest}] inductor_config[trace.log_url]: [x]: y\n[z] w: \x00")
    assert detail.field == "inductor_config[trace.log_url]"
    assert detail.value_text == "[x]: y\n[z] w: \x00"


@pytest.mark.slow
@given(COMPONENTS)
def test_equal_sets_have_one_code_and_no_difference(components: list[str]) -> None:
    store = HashDetails()
    first, _ = store.add(components)
    again, _ = store.add(list(components))
    assert first == again
    assert first is not None
    assert store.changed_fields(first, first) == ()


def test_equal_hashes_are_equal_whatever_the_text_says() -> None:
    store = HashDetails()
    digest = "b" * 51
    one, _ = store.add([f"[{digest}] fx_kwargs[get_decomp_fn]: <function f at 0x7f01>"])
    two, _ = store.add([f"[{digest}] fx_kwargs[get_decomp_fn]: <function f at 0x7f02>"])
    assert one is not None
    assert two is not None
    assert one != two
    assert store.changed_fields(one, two) == ()


def test_hashes_that_depend_on_what_was_pickled_before_give_way_to_texts() -> None:
    """As torch 2.13 writes them once it has pickled a mesh: not even that of an empty text is its own."""
    store = HashDetails()
    mesh = "(<FakeOpaqueObject object at 0x7f0{0}>, DeviceMesh((tp=2)))"
    keys = [
        [f"[{digest * 51}] torch_version: \ufffdM", f"[{digest * 51}] x: {x}", f"[{tag}] cache_key_tag: ",
         f"[{digest * 51}] y: {mesh.format(digest)}", f"[{digest * 51}] inductor_config[z]: cpp"]
        for digest, x, tag in (("a", 1, "a" * 51), ("b", 1, "b" * 51), ("c", 2, "c" * 51), ("d", 2, detail_hash("")))
    ]  # fmt: skip
    one, other, edited, plain = (store.add(key)[0] for key in keys)
    assert one is not None and other is not None and edited is not None and plain is not None
    assert store.changed_fields(one, other) == ()
    assert store.hash_code(one, "x") == store.hash_code(other, "x") != store.hash_code(edited, "x")
    assert store.changed_fields(one, edited) == ("x",)
    # Beside a key without a mesh, texts are all there is.
    assert store.changed_fields(plain, edited) == ()
    assert store.changed_fields(plain, one) == store.changed_fields(one, plain) == ("x",)
    # Kept and read back, they stay as they are.
    kept, again = [store.components[code] for code in store.sets[one]], HashDetails()
    assert again.add(kept) == (0, []) and again.components == kept


def test_an_empty_list_is_no_set_and_rubbish_is_handed_back() -> None:
    store = HashDetails()
    assert store.add([]) == (None, [])
    assert store.add(["rubbish"]) == (None, ["rubbish"])


CODES = st.lists(st.integers(0, 40), min_size=0, max_size=24)
LETTERS = ("a", "b", "c", "d", "e")


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
DETAILS = st.lists(st.tuples(st.sampled_from(LETTERS), st.integers(0, 3)), min_size=1, max_size=9)
USUAL = st.tuples(*(st.tuples(st.just(field), st.integers(0, 1)) for field in LETTERS)).map(list)


@given(st.lists(DETAILS | USUAL, min_size=1, max_size=12))
def test_what_sets_differ_in_is_what_their_fields_say(keys: list[list[tuple[str, int]]]) -> None:
    store = HashDetails()
    sets = [store.add(component(field, value) for field, value in key)[0] for key in keys]
    numbers = [number for number in sets if number is not None]
    # Of a field that is there twice the last counts.
    plain = [dict(key) for key in keys]
    letter = {code: store.components[at][1] for at, code in enumerate(store.hash_codes.tolist())} | {-1: ""}
    for field in LETTERS:
        found = [store.hash_code(number, field) for number in numbers]
        assert [letter[-1 if code is None else code] for code in found] == [
            "" if field not in one else "abcdefghij"[one[field]] for one in plain
        ]
    for one, mine in zip(plain, numbers, strict=True):
        for other, theirs in zip(plain, numbers, strict=True):
            changed = {field for field in LETTERS if one.get(field) != other.get(field)}
            assert set(store.changed_fields(mine, theirs)) == changed


@given(
    st.lists(st.sampled_from("abcd"), unique=True, max_size=4),
    st.lists(st.sampled_from("st"), max_size=3),
    st.randoms(),
)
def test_inputs_that_are_put_in_move_no_other(tensors: list[str], symbols: list[str], random: Any) -> None:
    kept = [f"Tensor({one})" for one in tensors]
    more = [*kept]
    for at, one in enumerate(symbols):
        more.insert(random.randint(0, len(more)), f"('{one}{at}',)")
    store = HashDetails()
    named = (
        [made.component(f"example_inputs[{at}]", one) for at, one in enumerate(side)] for side in (kept, more)
    )
    before, after = (store.add([f"[{'a' * 51}] gm: code", *side])[0] for side in named)
    assert before is not None and after is not None
    added = {f"example_inputs[{more.index(one)}]" for one in more if one not in kept}
    assert set(store.changed_fields(before, after)) == added
    assert len(store.changes(after, before)) == len(symbols)
    assert all(new is None for _, _, new in store.changes(after, before))


def test_a_size_that_becomes_a_symbol_changes_its_own_input() -> None:
    store = HashDetails()
    sides = (["Tensor(4, 3)", "Tensor(3)"], ["('s0',)", "Tensor(s0, 3)", "Tensor(3)"])
    named = ([made.component(f"example_inputs[{at}]", one) for at, one in enumerate(side)] for side in sides)
    before, after = (store.add(side)[0] for side in named)
    assert before is not None and after is not None
    texts = [
        tuple(None if code is None else store.parsed(code).value_text for code in codes)  # type: ignore[union-attr]
        for _, *codes in store.changes(before, after)
    ]
    assert texts == [(None, "('s0',)"), ("Tensor(4, 3)", "Tensor(s0, 3)")]
