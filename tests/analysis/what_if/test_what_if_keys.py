"""What-if keys: sums of the details that count, told apart as the hashes tell them apart."""

import base64
from hashlib import blake2b, sha256

import pytest

from cachescope.analysis.key_distance import KeyDistances
from cachescope.analysis.what_if.cells import Key
from cachescope.analysis.what_if.keys import KeyTable, number_of
from cachescope.details import HashDetails
from cachescope.keys.key_schema import KeySchema, Removed

INPUT = "TensorMetadata(dtype=torch.float32, shape=torch.Size([8]), device=device(type='cuda', index={}))"


def hash_of(text: object) -> str:
    return base64.b32encode(sha256(str(text).encode()).digest()).decode().lower()[:51]


def table_of(
    *keys: dict[str, tuple[object, str]], cache: str = "fxgraph", direction: str | None = "inference"
) -> KeyTable:
    """A table of keys; a field is (what its hash is made of, its text)."""
    store = HashDetails()
    sets = [store.add([f"[{hash_of(h)}] {f}: {text}" for f, (h, text) in key.items()])[0] for key in keys]
    return KeyTable(KeyDistances(store), [Key(cache, direction, f"f{n}", one) for n, one in enumerate(sets)])


def names(table: KeyTable, *without: str) -> list[str]:
    return table.names(KeySchema(without=without).removed(table.fields, table.is_tensor))


def name_of(*pairs: tuple[str, ...]) -> str:
    """By its definition: a sum in two lanes of a hash of each."""
    digests = [blake2b("\0".join(pair).encode(), digest_size=16).digest() for pair in pairs]
    lanes = [sum(int.from_bytes(d[at : at + 8], "little") for d in digests) % 2**64 for at in (0, 8)]
    return f"w{lanes[0]:016x}{lanes[1]:016x}"


HOME = ("fxgraph", "inference")
X1, X2, Y1 = ("x", hash_of(1)), ("x", hash_of(2)), ("y", hash_of(1))


def test_a_key_is_the_same_on_every_machine() -> None:
    """By its definition: the cache and direction, and each field with its hash; of one that is there twice the last."""
    store = HashDetails()
    lines = [f"[{hash_of(3)}] x: 3", f"[{hash_of(1)}] y: 1", f"[{hash_of(1)}] x: 1"], [f"[{hash_of(2)}] x: 2"]
    one, other = (store.add(some)[0] for some in lines)
    made = [Key(*HOME, "f1", one), Key(*HOME, "f2", other), Key(*HOME, "f3", None)]
    table = KeyTable(KeyDistances(store), made)
    own = name_of(("fxgraph", "key", "f3"))
    assert names(table) == [name_of(HOME, X1, Y1), name_of(HOME, X2), own]
    assert names(table, "x") == [name_of(HOME, Y1), name_of(HOME), own]
    assert names(table, "x", "y") == [name_of(HOME), name_of(HOME), own]
    assert table.names(Removed(frozenset({"nowhere"}))) == names(table)
    assert (table.fields, table.varying) == (["x", "y"], ["x", "y"])


def test_any_text_of_a_log_has_a_number() -> None:
    assert number_of("\ud800") > 0
    assert number_of("gm", "x") != number_of("x", "gm")


def test_hashes_decide_and_not_texts() -> None:
    same_text = names(table_of({"x": (1, "at 0x7f")}, {"x": (2, "at 0x7f")}))
    assert same_text[0] != same_text[1]
    sides = {"x": (1, "at 0x7f"), "y": (1, "")}, {"x": (1, "at 0x55"), "y": (2, "")}
    store_texts = names(table_of(*sides), "y")
    assert len(set(store_texts)) == 1


def test_a_missing_field_is_not_one_of_any_value() -> None:
    table = table_of({"x": (1, "a")}, {"x": (1, "a"), "y": (None, "None")})
    assert len(set(names(table))) == 2
    assert len(set(names(table, "y"))) == 1
    assert table.varying == ["y"]


def test_caches_and_directions_never_meet() -> None:
    store = HashDetails()
    code, _ = store.add([f"[{hash_of(1)}] gm: g"])
    homes = [("fxgraph", "forward"), ("fxgraph", "backward"), ("aotautograd", None)]
    table = KeyTable(KeyDistances(store), [Key(*home, f"f{at}", code) for at, home in enumerate(homes)])
    assert len(set(names(table, "gm"))) == 3
    assert table.joined(Removed(frozenset({"gm"}))) == []


@pytest.mark.parametrize("lines", [
    pytest.param(["gm: g", "x: at 0x7f"], id="equal lines"),
    pytest.param(["x: at 0x7f", "gm: g"], id="in another order"),
    pytest.param(["gm: g", "x: at 0x55"], id="another text for the same hash"),
])  # fmt: skip
def test_keys_that_differ_where_no_field_does_stay_apart(lines: list[str]) -> None:
    store = HashDetails()
    sets = [
        store.add([f"[{hash_of(line.split(':')[0])}] {line}" for line in some])[0]
        for some in (["gm: g", "x: at 0x7f"], lines)
    ]
    table = KeyTable(KeyDistances(store), [Key(*HOME, f"f{n}", code) for n, code in enumerate(sets)])
    assert len(set(names(table))) == len(set(names(table, "gm"))) == 2
    assert table.can_join == set()
    assert table.joined(Removed(frozenset({"gm"}))) == []


def test_a_key_without_details_is_what_it_is() -> None:
    store = HashDetails()
    code, _ = store.add([f"[{hash_of(1)}] gm: g"])
    made = [Key("fxgraph", None, "f1", code), Key("fxgraph", None, "f2", None)]
    table = KeyTable(KeyDistances(store), made)
    assert table.with_details == [0]
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
        named = names(table, *without)
        assert list(map(set, table.joined(removed))) == wanted
        assert len(set(named)) == len(values) - sum(len(keys) - 1 for keys in wanted)


def test_equal_texts_with_other_hashes_hide_a_difference_and_stay_apart() -> None:
    table = table_of(*({"example_inputs[0]": (n, INPUT.format(0))} for n in range(2)))
    assert len(set(names(table, "example_inputs[*].device"))) == 2


def test_removing_all_fields_of_a_name_is_removing_each() -> None:
    fields = [f"inductor_config[{n}]" for n in range(40)]
    one = {f: (f, "") for f in fields} | {"gm": (1, "")}
    two = {f: (f + "x", "") if n % 2 else (f, "") for n, f in enumerate(fields)} | {"gm": (1, "")}
    table = table_of(one, two)
    assert table.names(Removed(frozenset(fields))) == [name_of(HOME, ("gm", hash_of(1)))] * 2
    assert len(set(names(table, "inductor_configs"))) == len(set(names(table, "inductor_config"))) == 1
    assert len(set(names(table, "inductor_config[0]"))) == 2


def test_the_values_of_a_field() -> None:
    table = table_of({"x": (1, ""), "y": (1, "")}, {"x": (2, "")}, {"x": (1, ""), "z": (1, "")})
    first, second, third = table.column("x")
    assert first == third != second and 0 not in (first, second)
    assert [value == 0 for value in table.column("y")] == [False, True, True]
    assert table.varying == ["x", "y", "z"]
