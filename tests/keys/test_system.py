"""The system hash equals torch's, on this machine and on random system objects."""

from __future__ import annotations

from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachescope.keys import UnsupportedValueError, system_hash

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def test_this_machines_hash_is_torchs(codecache: ModuleType) -> None:
    system = codecache.CacheBase.get_system()
    assert system_hash(system) == system["hash"]


@given(info=st.dictionaries(st.text().filter("hash".__ne__), JSON))
def test_system_hash_is_torchs(codecache: ModuleType, info: dict[str, object]) -> None:
    expected = codecache.SYSTEM_CACHE_KEY_STRATEGY.key_from_json(info)
    assert system_hash(info) == expected
    assert system_hash({**info, "hash": "of the file"}) == expected


@pytest.mark.parametrize(
    ("info", "expected"),
    [
        # Through 2.14 without CUDA or ROCm: seen as a file name in real runs.
        ({}, "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"),
        # 2.15 without GPU and without Triton.
        (
            {"version": {"triton": None}},
            "4d71a6a7e300fb651da44571af59c1992acc2ea91253eb66404e06e319ced7e8",
        ),
    ],
)
def test_known_system_hashes(info: dict[str, object], expected: str) -> None:
    assert system_hash(info) == expected


def test_a_value_json_cannot_hold_is_named() -> None:
    with pytest.raises(UnsupportedValueError, match=r"device\[name\]") as caught:
        system_hash({"device": {"name": b"bytes"}})
    assert caught.value.path == "device[name]"
