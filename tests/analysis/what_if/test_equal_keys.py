"""Which keys become equal without some fields: found by what differs, against the what-if keys themselves."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cachescope.analysis.what_if import key_sets
from cachescope.analysis.what_if.keys import Keys, KeyTable
from cachescope.details import HashDetails
from cachescope.keys.key_fields import Removed
from tests.analysis.what_if.test_what_if_keys import INPUT, hash_of

FIELDS = ("gm", "config", "tag", "example_inputs[0]")
SUBSETS = [frozenset(some) for n in range(len(FIELDS) + 1) for some in combinations(FIELDS, n)]
# Parts before and after whole fields: what is kept of the one must not serve for the other.
PARTS = [
    Removed(fields, {"example_inputs[0]": frozenset({"device"})})
    for fields in SUBSETS
    if "example_inputs[0]" not in fields
]
REMOVED = [*PARTS, *map(Removed, SUBSETS[::-1]), *PARTS]
# The hash of each field, None for a field that is not there; whether a text differs that is in no hash; and the cache.
keys = st.tuples(
    st.tuples(*[st.none() | st.integers(0, 2)] * len(FIELDS)),
    st.booleans(),
    st.sampled_from(["aotautograd", "fxgraph"]),
    st.sampled_from([True] * 9 + [False]),
)


def table_of(found: list[tuple[tuple[int | None, ...], bool, str, bool]]) -> KeyTable:
    store = HashDetails()
    sets = []
    for values, is_other_text, cache, has_details in found:
        lines = [f"[{hash_of(cache)}] torch_version: {is_other_text}"]
        for field, value in zip(FIELDS, values, strict=True):
            text = INPUT.format(value % 2) if value is not None and field == FIELDS[-1] else str(value)
            lines += [] if value is None else [f"[{hash_of(f'{field}{value}')}] {field}: {text}"]
        sets.append(store.add(lines)[0] if has_details else -1)
    homes = [("aotautograd", None), ("fxgraph", "inference")]
    home = np.array([homes.index(one) for _, _, cache, _ in found for one in homes if one[0] == cache])
    return KeyTable(store, Keys(homes, home, np.array(sets), lambda key: f"key {key}"))


def parts_of(names: list[object]) -> set[frozenset[int]]:
    found: dict[object, set[int]] = defaultdict(set)
    for key, name in enumerate(names):
        found[name].add(key)
    return set(map(frozenset, found.values()))


# Two inputs that differ in nothing that is printed are most often another, and a second field varies.
@pytest.mark.slow
@example([((0, config, 0, value), False, "fxgraph", True) for config, value in ((0, 0), (1, 2), (0, 2))])
@given(st.lists(keys, min_size=1, max_size=12))
def test_keys_that_become_equal_are_those_with_one_what_if_key(found: list[tuple[tuple[int | None, ...], bool, str, bool]]) -> None:  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(key_sets, "_CHUNK", 3)
        table = table_of(found)
    for removed in REMOVED:
        lanes = table.lanes(removed)
        joined = table.joined(removed)
        classes = dict(zip(joined.sets.tolist(), joined.classes.tolist(), strict=True))
        of_key = table.set_of_key.tolist()
        names: list[object] = [
            ("alone", key) if one < 0 else ("class", classes[one]) if one in classes else ("set", one)
            for key, one in enumerate(of_key)
        ]
        assert parts_of(names) == parts_of(list(map(tuple, lanes.T.tolist()))), removed
