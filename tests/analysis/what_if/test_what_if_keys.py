"""What-if keys: sums of the details that count, told apart as the hashes tell them apart."""

from __future__ import annotations

import base64
from hashlib import blake2b, sha256

import numpy as np
import pytest

from cachescope.analysis.what_if.keys import Keys, KeyTable, what_if_key
from cachescope.details import HashDetails
from cachescope.keys.key_fields import Removed
from cachescope.keys.key_schema import KeySchema

INPUT = "TensorMetadata(dtype=torch.float32, shape=torch.Size([8]), device=device(type='cuda', index={}))"


def hash_of(text: object) -> str:
    return base64.b32encode(sha256(str(text).encode()).digest()).decode().lower()[:51]


Key = tuple[str, str, str | None, int | None]
"""The cache, the key, the direction and the set of details."""


def keyed(store: HashDetails, *keys: Key) -> KeyTable:
    homes = list(dict.fromkeys((cache, direction) for cache, _, direction, _ in keys))
    home = np.array([homes.index((cache, direction)) for cache, _, direction, _ in keys])
    sets = np.array([-1 if code is None else code for *_, code in keys])
    return KeyTable(store, Keys(homes, home, sets, lambda at: keys[at][1]))


def table_of(
    *keys: dict[str, tuple[object, str]], cache: str = "fxgraph", direction: str | None = "inference"
) -> KeyTable:
    """A table of keys; a field is (what its hash is made of, its text)."""
    store = HashDetails()
    sets = [store.add([f"[{hash_of(h)}] {f}: {text}" for f, (h, text) in key.items()])[0] for key in keys]
    return keyed(store, *((cache, f"f{n}", direction, code) for n, code in enumerate(sets)))


def names(table: KeyTable, *without: str) -> list[str]:
    removed = KeySchema(without=without).removed(table.fields, table.is_tensor)
    lanes = table.lanes(removed)
    return [what_if_key(lanes, key) for key in range(len(table.keys))]


def test_a_key_is_the_same_on_every_machine() -> None:
    """By its definition: the cache and direction, and each field with its hash, summed in two lanes."""
    (name,) = names(table_of({"gm": (1, "g"), "x": (2, "t")}))
    words = (["fxgraph", "inference"], ["gm", hash_of(1)], ["x", hash_of(2)])
    digests = [blake2b("\0".join(pair).encode(), digest_size=16).digest() for pair in words]
    lanes = [sum(int.from_bytes(d[at : at + 8], "little") for d in digests) % 2**64 for at in (0, 8)]
    assert name == f"w{lanes[0]:016x}{lanes[1]:016x}"


def test_hashes_decide_and_not_texts() -> None:
    same_text = names(table_of({"x": (1, "at 0x7f")}, {"x": (2, "at 0x7f")}))
    assert same_text[0] != same_text[1]
    store_texts = names(
        table_of({"x": (1, "at 0x7f"), "y": (1, "")}, {"x": (1, "at 0x55"), "y": (2, "")}), "y"
    )
    assert len(set(store_texts)) == 1


def test_a_missing_field_is_not_one_of_any_value() -> None:
    table = table_of({"x": (1, "a")}, {"x": (1, "a"), "y": (None, "None")})
    assert len(set(names(table))) == 2
    assert len(set(names(table, "y"))) == 1
    assert table.varying == ["y"]


def test_caches_and_directions_never_meet() -> None:
    store = HashDetails()
    code, _ = store.add([f"[{hash_of(1)}] gm: g"])
    table = keyed(
        store,
        ("fxgraph", "f1", "forward", code),
        ("fxgraph", "f2", "backward", code),
        ("aotautograd", "a1", None, code),
    )
    assert len(set(names(table, "gm"))) == 3


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(["gm: g", "x: at 0x7f"], id="equal lines"),
        pytest.param(["x: at 0x7f", "gm: g"], id="in another order"),
        pytest.param(["gm: g", "x: at 0x55"], id="another text for the same hash"),
    ],
)
def test_keys_that_differ_where_no_field_does_stay_apart(lines: list[str]) -> None:
    store = HashDetails()
    sets = [
        store.add([f"[{hash_of(line.split(':')[0])}] {line}" for line in some])[0]
        for some in (["gm: g", "x: at 0x7f"], lines)
    ]
    table = keyed(store, *(("fxgraph", f"f{n}", "inference", code) for n, code in enumerate(sets)))
    assert len(set(names(table))) == len(set(names(table, "gm"))) == 2
    assert table.set_of_key.tolist() == [-1, -1]


def test_a_key_without_details_is_what_it_is() -> None:
    store = HashDetails()
    code, _ = store.add([f"[{hash_of(1)}] gm: g"])
    table = keyed(store, ("fxgraph", "f1", None, code), ("fxgraph", "f2", None, None))
    assert table.has_details.tolist() == [True, False]
    assert names(table)[1] == names(table, "gm")[1]
    assert len(set(names(table, "gm"))) == 2


def test_parts_are_told_apart_by_text() -> None:
    table = table_of(*({"example_inputs[0]": (n, INPUT.format(n))} for n in range(2)))
    assert len(set(names(table))) == len(set(names(table, "example_inputs[*].dtype"))) == 2
    assert len(set(names(table, "example_inputs[*].device"))) == 1


def test_what_becomes_equal_is_what_has_one_what_if_key() -> None:
    """Whatever was asked before: without parts of a field, without the whole of it, and with it."""
    other = INPUT.replace("[8]", "[9]")
    values = [(INPUT.format(0), 1), (INPUT.format(1), 2), (other.format(2), 3), (INPUT.format(3), 1)]
    table = table_of(*({"example_inputs[0]": (text, text), "x": (x, "")} for text, x in values))
    for without, wanted in (
        (("x", "example_inputs[*].device"), [{0, 1, 3}]),
        (("x", "example_inputs[0]"), [{0, 1, 2, 3}]),
        (("x", "example_inputs[*].device"), [{0, 1, 3}]),
        (("x",), []),
        (("example_inputs[*].device",), [{0, 3}]),
    ):
        removed = KeySchema(without=without).removed(table.fields, table.is_tensor)
        joined, named = table.joined(removed), names(table, *without)
        classes = np.unique(joined.classes)
        key_of = table.set_of_key.tolist()
        found = [
            {key_of.index(one) for one in joined.sets[joined.classes == each].tolist()} for each in classes
        ]
        assert found == wanted
        assert len(set(named)) == len(values) - sum(len(keys) - 1 for keys in wanted)


def test_equal_texts_with_other_hashes_hide_a_difference_and_stay_apart() -> None:
    table = table_of(*({"example_inputs[0]": (n, INPUT.format(0))} for n in range(2)))
    assert len(set(names(table, "example_inputs[*].device"))) == 2


def test_removing_all_fields_of_a_name_is_removing_each() -> None:
    """Sums of whole names are kept; they must be what single subtractions give."""
    fields = [f"inductor_config[{n}]" for n in range(40)]
    one = {f: (f, "") for f in fields} | {"gm": (1, "")}
    two = {f: (f + "x", "") if n % 2 else (f, "") for n, f in enumerate(fields)} | {"gm": (1, "")}
    table = table_of(one, two)
    each = table.lanes(Removed(frozenset(fields[:20]))) - table.lanes(Removed())
    each += table.lanes(Removed(frozenset(fields[20:])))
    assert (table.lanes(Removed(frozenset(fields))) == each).all()
    assert len(set(names(table, "inductor_configs"))) == len(set(names(table, "inductor_config"))) == 1
    assert len(set(names(table, "inductor_config[0]"))) == 2
