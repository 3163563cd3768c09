"""The hash of one plain hash detail equals the one torch's pickler gives; and what is said of a printed setting is what was pickled."""

import enum
import importlib
import pickle
import sys
from collections import OrderedDict
from types import ModuleType
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachescope.analysis.differences import tensor_parts
from cachescope.errors import CachescopeError
from cachescope.keys import UnsupportedValueError, detail_hash
from cachescope.keys.input_hash import module_of_format
from cachescope.keys.printed_values import FLAG, NUMBER, shown_settings
from tests.conftest import Recording
from tests.readings import read_once

NUMBERS = st.integers() | st.integers(-(2**300), 2**300) | st.floats()
TEXTS = st.text() | st.sampled_from(["\ud800", "a\udfff"]) | st.binary()
NAMES = st.text() | st.integers() | st.tuples(st.text())
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(NAMES, inner),
)


class Point(NamedTuple):
    """A subclass of a plain type."""

    x: int


class Colour(enum.IntEnum):
    """An enum, which is an int."""

    RED = 1


@pytest.fixture(scope="session")
def pickler(codecache: ModuleType) -> Any:
    """Return torch's own pickler."""
    torch = importlib.import_module("torch")
    graph = torch.fx.GraphModule({}, torch.fx.Graph())
    return codecache.FxGraphCachePickler(graph)


@given(value=VALUES)
def test_detail_hash_is_torchs(pickler: Any, value: object) -> None:
    assert detail_hash(value, pickle.DEFAULT_PROTOCOL) == pickler.get_hash(value)


@pytest.mark.parametrize("size", [65_534, 65_535, 65_536, 65_537, 200_000])
@pytest.mark.parametrize("unit", ["x", "é", b"x"])
def test_values_around_the_size_of_a_pickle_frame(pickler: Any, unit: str | bytes, size: int) -> None:
    value = ["before", unit * size, "after"]
    assert detail_hash(value) == pickler.get_hash(value)


@pytest.mark.parametrize("length", [0, 1, 2, 3, 4, 255, 256, 1000, 1001, 2001])
def test_containers_around_the_size_of_a_pickle_batch(pickler: Any, length: int) -> None:
    for value in ([7] * length, (7,) * length, dict.fromkeys(range(length))):
        assert detail_hash(value) == pickler.get_hash(value)


def test_values_that_occur_twice_or_deep_are_torchs(pickler: Any) -> None:
    part = ["shared"]
    assert detail_hash([part, part]) == detail_hash([["shared"], ["shared"]])
    deep: object = "bottom"
    for _ in range(100):
        deep = [deep]
    for value in ([part, part], deep):
        assert detail_hash(value) == pickler.get_hash(value)


@pytest.mark.parametrize(
    ("value", "start"),
    [(True, "cev5uo2j"), (False, "esstihe2"), (None, "tquy2we2"), ("", "v3hzzlv4"), ([], "h25wqx6v"), ({}, "4bryyl4a")],
)  # fmt: skip
def test_known_hashes(value: object, start: str) -> None:
    assert detail_hash(value).startswith(start)
    # Those of Python 3.14 are others.
    assert detail_hash(True, protocol=5).startswith("kkapzzb6")


def test_values_that_compare_equal_may_differ() -> None:
    assert len({detail_hash(value) for value in (1, 1.0, True, "1", b"1", [1], (1,))}) == 7
    assert detail_hash({"a": 1, "b": 2}) != detail_hash({"b": 2, "a": 1})


@pytest.mark.parametrize(
    "value",
    [{1}, frozenset(), bytearray(b"x"), 1j, object(), len, int, Point(1), Colour.RED, OrderedDict(), ...],
    ids=lambda value: type(value).__name__,
)
def test_other_types_are_refused_wherever_they_stand(value: object) -> None:
    for whole in (value, [value], {"key": (0, value)}):
        with pytest.raises(UnsupportedValueError, match="as torch would") as caught:
            detail_hash(whole)
        assert isinstance(caught.value, TypeError)


def test_nesting_without_end_is_refused() -> None:
    cycle: list[object] = []
    cycle.append(cycle)
    deep: object = None
    for _ in range(100_000):
        deep = (deep,)
    for value in (cycle, deep):
        with pytest.raises(UnsupportedValueError, match="cannot pickle"):
            detail_hash(value)


@pytest.mark.parametrize("protocol", [-1, 0, 2, 3, 6])
def test_a_protocol_torch_never_uses_is_refused(protocol: int) -> None:
    with pytest.raises(CachescopeError, match="protocol"):
        detail_hash(None, protocol=protocol)


_TEXTS = st.text(st.characters(codec="ascii"), max_size=12)
_VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**31), 2**31 - 1), st.floats(), _TEXTS,
    st.lists(_TEXTS, max_size=3),
)  # fmt: skip


def printed(settings: dict[str, object], most: int = 1024) -> str:
    """As torch prints it: decoded with replacement, and cut."""
    text = pickle.dumps(settings, protocol=2).decode(errors="replace")
    return text if len(text) <= most else f"{text[:most]}..."


@given(st.dictionaries(_TEXTS, _VALUES, max_size=40), st.integers(20, 1024))
def test_whatever_is_read_was_pickled(settings: dict[str, object], most: int) -> None:
    for name, text in shown_settings(printed(settings, most)).items():
        value = settings[name]
        if text == FLAG:
            assert isinstance(value, bool)
        elif text == NUMBER:
            assert isinstance(value, int | float)
        else:
            assert text == repr(value)


@given(st.text(max_size=60))
def test_any_text_is_read_without_an_error(text: str) -> None:
    shown_settings(text)
    shown_settings(f"\ufffd\x02}}q\x00({text}")


def test_a_real_config_is_read_up_to_where_torch_cut_it(recording: Recording) -> None:
    scope = read_once(recording("2.13.0", "autograd_config"))
    details = scope.hash_details(lookup=0).set_index("field")
    found = shown_settings(details.loc["autograd_config", "value_text"])
    assert found["enable_remote_autograd_cache"] == "None"
    assert found["functionalize_rng_ops"] == FLAG
    # 1000 has a byte from 128 on.
    assert found["max_dist_from_bw"] == NUMBER
    assert "activation_memory_budget" not in found


@pytest.mark.parametrize("module", ["torch._utils", "__mp_main__"])
def test_where_pickle_found_the_memory_format_of_an_input(
    module: str, pickler: Any, codecache: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = importlib.import_module("torch")
    if module == "__mp_main__":
        main = ModuleType(module)
        main.torch = torch  # type: ignore[attr-defined]
        behind = {name: sys.modules.pop(name) for name in list(sys.modules) if name != "sys"}
        monkeypatch.setitem(sys.modules, module, main)
        sys.modules.update({name: one for name, one in behind.items() if name != module})
    fake = importlib.import_module("torch._subclasses").FakeTensorMode()
    made = [torch.empty(sizes) for sizes in ((), (3,), (300, 70000), (2, 3, 4, 5))]
    made += [torch.empty(2, 3, dtype=torch.int8, requires_grad=False), torch.empty(2, requires_grad=True)]
    made += [torch.empty(2, 3, 4, 5).to(memory_format=torch.channels_last), torch.empty(2, device="meta")]
    for tensor in map(fake.from_tensor, made):
        printed = str(codecache.extract_tensor_metadata_for_cache_key(tensor))
        parts = tensor_parts(printed)
        assert module_of_format(parts, pickler.get_hash(tensor)) == module, printed
        assert module_of_format(parts | {"is_conj": "True"}, pickler.get_hash(tensor)) is None


@pytest.mark.parametrize(
    "value", ["torch.Size([[1]])", "{[]: 1}", "(" * 500, "x", "'" + "x" * 300 + "'", "device(type='')"]
)
def test_other_metadata_have_no_hash(value: str) -> None:
    more = {"memory_format": "torch.contiguous_format", "shape": value, "x" * 300: "1"}
    assert module_of_format(more, "a") is None
    assert module_of_format({"memory_format": "torch.contiguous_format", "shape": value}, "a") is None
