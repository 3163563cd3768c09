"""File names of the caching package equal torch's, and where a name does not follow from values, that is said."""

import ast
import hashlib
import importlib
import json
import os
import pickle
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachescope.errors import CachescopeError
from cachescope.keys import UnsupportedValueError
from cachescope.keys.caching_key import caching_names, memoizer_keys, pickled_name, with_isolation_key
from tests.conftest import Directory

KEY = "0123456789abcdef" * 2
MIXED = "1, 1.0 and True share the name of the one that came first in the process"
SHARED = "equal objects give another name when they are one object"


def recorded(folder: Path) -> Iterator[tuple[Any, str]]:
    """The key objects that torch 2.10.0 stored, and the names that it gave them."""
    for step in json.loads((folder / "provenance.json").read_text())["steps"]:
        for stored in step["truth"].get("stored", []):
            yield ast.literal_eval(stored["key"]), os.path.basename(stored["path"])


def test_every_recorded_name_of_torch_2_10_is_recomputed(directory: Directory) -> None:
    found = list(recorded(directory("caching_2.10.0")))
    assert len(found) > 20
    for ((callee, params), isolation_key), name in found:
        names = caching_names(callee, params, isolation_key)
        assert names.name == name
        assert names.doubt == (MIXED if callee == "mixed" else None)
        pickled = pickle.dumps(((callee, params), isolation_key), 4)
        assert pickled_name(with_isolation_key(pickled, KEY)) == caching_names(callee, params, KEY).name


def torchs_name(key: object, protocol: int = 4) -> str:
    return hashlib.sha256(pickle.dumps(key, protocol)).hexdigest()[:32]


def test_one_object_and_two_equal_ones_have_two_names_and_both_are_given() -> None:
    text = "".join(["a", "bc"])
    twice, apart = (text, text), (text, "".join(["a", "bc"]))
    assert twice == apart
    same, other = (torchs_name((("fn", (args, {})), KEY)) for args in (twice, apart))
    assert same != other
    for args in (twice, apart):
        names = caching_names("fn", (args, {}), KEY)
        assert {names.name, *names.others} >= {same, other}
        assert names.doubt == SHARED
    assert caching_names("fn", (twice, {}), KEY).name == same
    assert caching_names("fn", (apart, {}), KEY).name == other


def test_a_function_named_as_its_parameter_is_shared_too() -> None:
    assert caching_names("name", (("".join(["na", "me"]),), {}), KEY).doubt == SHARED


@pytest.mark.parametrize("params", [((1, True), {}), ("encoded", 1.5), ["encoded", 1], {"encoded": 1}])
def test_what_cannot_be_hashed_or_has_no_twin_has_one_name(params: object) -> None:
    names = caching_names("fn", params, KEY)
    assert (names.name, names.others, names.doubt) == (torchs_name((("fn", params), KEY)), (), None)


NAMES = st.text(max_size=3)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.binary(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.tuples(inner, inner) | st.dictionaries(NAMES, inner, max_size=3)
    ),
    max_leaves=8,
)


@given(params=PLAIN, callee=st.text(max_size=4))
def test_the_name_of_these_very_objects_is_always_torchs(params: object, callee: str) -> None:
    names = caching_names(callee, params, KEY)
    assert names.name == torchs_name(((callee, params), KEY))
    # Read back, nothing is shared that was not: either the name is the same, or it is one of the others, or doubted.
    again = caching_names(callee, pickle.loads(pickle.dumps(params)), KEY)
    assert again.name == names.name or (names.doubt and again.doubt)


@given(params=PLAIN)
def test_a_pickled_key_is_rekeyed_byte_for_byte(params: object) -> None:
    old, new = (pickle.dumps((("fn", params), key), 4) for key in (KEY, "f" * 32))
    assert with_isolation_key(old, "f" * 32) == new


def test_other_bytes_are_no_pickled_key() -> None:
    with pytest.raises(CachescopeError, match="not a pickled key"):
        with_isolation_key(pickle.dumps((("fn", 1), "short")), KEY)


@pytest.mark.parametrize("params", [{1, 2}, Ellipsis, (len,), [range(3)]])
def test_what_is_not_plain_has_no_name(params: object) -> None:
    with pytest.raises(UnsupportedValueError, match="only plain values"):
        caching_names("fn", params, KEY)


@pytest.fixture(scope="module")
def interfaces(cache_root: Path) -> ModuleType:
    return importlib.import_module("torch._inductor.runtime.caching.interfaces")


@given(
    args=st.lists(PLAIN, max_size=3),
    kwargs=st.dictionaries(st.text(min_size=1, max_size=3), PLAIN, max_size=2),
)
def test_memoizer_keys_are_torchs(
    interfaces: ModuleType, args: list[object], kwargs: dict[str, object]
) -> None:
    make_key = interfaces._BaseMemoizer._make_key
    plain = make_key(None, *args, **kwargs)
    assert plain in memoizer_keys({"args": tuple(args), "kwargs": kwargs}, pickle.DEFAULT_PROTOCOL)
    encoded = make_key(lambda *args, **kwargs: {"op": args, "with": kwargs}, *args, **kwargs)
    assert memoizer_keys({"op": tuple(args), "with": kwargs}, pickle.DEFAULT_PROTOCOL) == (encoded,)


def names_of(params: object) -> set[str]:
    names = caching_names("fn", params, KEY)
    assert names.name not in names.others
    return {names.name, *names.others}


def torchs_names(*variants: object) -> set[str]:
    return {torchs_name((("fn", one), KEY)) for one in variants}


@pytest.mark.parametrize(("params", "twins"), [
    # An int equals a float, 0 and 1 a bool as well, and 0 minus zero too.
    # torch 2.10 pickles through an lru_cache, where they are one.
    (("e", 7), [("e", 7), ("e", 7.0)]),
    (("e", 7.0), [("e", 7), ("e", 7.0)]),
    (("e", 1), [("e", 1), ("e", 1.0), ("e", True)]),
    (("e", False), [("e", 0), ("e", 0.0), ("e", False), ("e", -0.0)]),
    (("e", (2, 3)), [("e", (a, b)) for a in (2, 2.0) for b in (3, 3.0)]),
    (("e", 2, 0.5), [("e", 2, 0.5), ("e", 2.0, 0.5)]),
    (("e", 2, 2j), [("e", 2, 2j), ("e", 2.0, 2j)]),
    # A complex number without an imaginary part equals others, which nobody tries.
    (("e", 2 + 0j), [("e", 2 + 0j)]),
    # Beyond 2**53 a float may be another number.
    (("e", 2**53), [("e", 2**53)]),
    (("e", 2**53 - 1), [("e", 2**53 - 1), ("e", float(2**53 - 1))]),
    (("e", 2, 3, 4, 5), [("e", *four) for four in product((2, 2.0), (3, 3.0), (4, 4.0), (5, 5.0))]),
    # More numbers are not tried.
    (("e", 2, 3, 4, 5, 6), [("e", 2, 3, 4, 5, 6)]),
])  # fmt: skip
def test_equal_numbers_are_all_tried(params: object, twins: list[object]) -> None:
    assert names_of(params) == torchs_names(*twins)
    assert caching_names("fn", params, KEY).doubt == MIXED


@pytest.mark.parametrize("number", [0.5, 2j, float("inf"), float("nan")])
def test_a_number_that_equals_no_other_has_one_name(number: float | complex) -> None:
    names = caching_names("fn", ("e", number), KEY)
    assert (names.others, names.doubt) == ((), None)


@pytest.mark.parametrize(("params", "is_shared"), [
    (("ab", "ab"), True), ((b"ab", b"ab"), True), (((1.5, None), (1.5, None)), True),
    ((["ab", {"k": "ab"}],), True), (({"ab": "ab"},), True), (("ab", "ba"), False),
    # The interpreter has one object for each of these.
    (("a", "a"), False), (("", ""), False), (("ab", b"ab"), False), (([], []), False),
])  # fmt: skip
def test_equal_objects_may_be_one(params: object, is_shared: bool) -> None:
    assert caching_names("fn", (params, {}), KEY).doubt == (SHARED if is_shared else None)


def test_both_doubts_are_said() -> None:
    assert caching_names("fn", ("ab", "ab", 1), KEY).doubt == f"{SHARED}; {MIXED}"


def test_the_protocol_of_later_python() -> None:
    key = (("fn", ((1,), {})), KEY)
    assert caching_names("fn", ((1,), {}), KEY, protocol=5).name == torchs_name(key, 5)


@pytest.mark.parametrize(("encoded", "tried"), [
    ({"op": 1}, [{"op": 1}]),
    ({"args": (1,), "kwargs": {}}, [{"args": (1,), "kwargs": {}}, ((1,), {})]),
    ({"kwargs": {}, "args": (1,)}, [{"kwargs": {}, "args": (1,)}]),
    ([("args", 1)], [[("args", 1)]]),
])  # fmt: skip
def test_the_keys_of_a_memoizer(encoded: object, tried: list[object]) -> None:
    assert memoizer_keys(encoded) == tuple(torchs_name(one) for one in tried)
    assert memoizer_keys(encoded, 5) == tuple(torchs_name(one, 5) for one in tried)
