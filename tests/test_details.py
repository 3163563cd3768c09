"""Hash details: one grammar, codes that stand for texts, and a diff of hashes that has the laws of a diff."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachescope.components import parse_component
from cachescope.details import HashDetails

HASHES = st.text("abcdefghijklmnopqrstuvwxyz234567", min_size=51, max_size=51)
FIELDS = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}(\[[a-z0-9_.]{1,8}\])?", fullmatch=True)
COMPONENTS = st.dictionaries(FIELDS, st.tuples(HASHES, st.text(max_size=20)), min_size=1, max_size=8).map(
    lambda fields: [f"[{digest}] {field}: {value}" for field, (digest, value) in fields.items()]
)


@given(FIELDS, HASHES, st.text())
def test_a_component_is_split_at_its_first_colon(field: str, digest: str, value: str) -> None:
    detail = parse_component(f"[{digest}] {field}: {value}")
    assert detail is not None
    assert (detail.field, detail.detail_hash, detail.value_text) == (field, digest, value)


@pytest.mark.slow
@given(st.text())
def test_any_text_is_a_detail_or_none(text: str) -> None:
    detail = parse_component(text)
    assert detail is None or text.startswith(f"[{detail.detail_hash}] ")


def test_a_value_may_hold_what_the_grammar_is_made_of() -> None:
    digest = "a" * 51
    detail = parse_component(f"[{digest}] inductor_config[trace.log_url]: [x]: y\n[z] w: \x00")
    assert detail is not None
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


def test_an_empty_list_is_no_set_and_rubbish_is_handed_back() -> None:
    store = HashDetails()
    assert store.add([]) == (None, [])
    assert store.add(["rubbish"]) == (None, ["rubbish"])
