"""Which keys become equal without some fields: found by what differs, against the what-if keys themselves."""

from itertools import combinations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cachescope.analysis.key_distance import KeyDistances
from cachescope.analysis.what_if.keys import KeyTable
from cachescope.analysis.what_if.replay_columns import Key
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
    made = []
    for at, (values, is_other_text, cache, has_details) in enumerate(found):
        lines = [f"[{hash_of(cache)}] torch_version: {is_other_text}"]
        for field, value in zip(FIELDS, values, strict=True):
            text = INPUT.format(value % 2) if value is not None and field == FIELDS[-1] else str(value)
            lines += [] if value is None else [f"[{hash_of(f'{field}{value}')}] {field}: {text}"]
        detail_set = store.add(lines)[0] if has_details else None
        made.append(Key(cache, None, f"key {at}", detail_set))
    return KeyTable(KeyDistances(store), made)


# Two inputs that differ in nothing that is printed are most often another, and a second field varies.
@pytest.mark.slow
@example([((0, config, 0, value), False, "fxgraph", True) for config, value in ((0, 0), (1, 2), (0, 2))])
@given(st.lists(keys, min_size=1, max_size=12))
def test_keys_that_become_equal_are_those_with_one_what_if_key(found: list[tuple[tuple[int | None, ...], bool, str, bool]]) -> None:  # fmt: skip
    table = table_of(found)
    for removed in REMOVED:
        names = table.names(removed)
        by_name = {name: {at for at, one in enumerate(names) if one == name} for name in names}
        several = [keys for keys in by_name.values() if len(keys) > 1]
        assert sorted(map(set, table.joined(removed)), key=min) == sorted(several, key=min), removed
