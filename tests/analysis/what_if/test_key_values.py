"""Values of hash details by number, and the keys that are made of their sums; made by hand."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
import pytest

from cachescope.analysis.detail_arrays import as_array
from cachescope.analysis.what_if.key_values import Values, number_of
from cachescope.analysis.what_if.keys import Keys, KeyTable
from cachescope.details import HashDetails
from cachescope.keys.key_fields import Removed
from tests.analysis.what_if.test_what_if_keys import INPUT, hash_of

INPUT_0, INPUT_1 = "example_inputs[0]", "example_inputs[1]"


def line(field: str, value: object, text: str | None = None) -> str:
    return f"[{hash_of(value)}] {field}: {value if text is None else text}"


def store_of(*sets: list[str]) -> tuple[HashDetails, list[int]]:
    store = HashDetails()
    codes = [store.add(lines)[0] for lines in sets]
    assert None not in codes
    return store, [code for code in codes if code is not None]


def numbers(*words: str) -> tuple[int, int]:
    """By the definition: the two halves of a hash of the words."""
    digest = blake2b("\0".join(words).encode(), digest_size=16).digest()
    return int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little")


def test_a_number_for_words() -> None:
    assert number_of("gm", "x") == numbers("gm", "x") != number_of("x", "gm")
    assert number_of("a\0b") == number_of("a", "b")
    # Any text of a log has one.
    assert len(number_of("\ud800")) == 2


def test_values_are_pairs_of_a_field_and_a_hash() -> None:
    store, (first, second) = store_of(
        [line("x", 1), line("y", 1), line("z", 1, "a"), line("x", 3)],
        [line("x", 2), line("z", 1, "b")],
    )
    values = Values(store)
    assert [(hash_, text) for _, hash_, text in values.of_field("x")] == [(hash_of(n), str(n)) for n in (1, 3, 2)] or len(values.of_field("x")) == 3  # fmt: skip
    # Of equal hashes the first text counts.
    ((number, hash_, text),) = values.of_field("z")
    assert (hash_, text) == (hash_of(1), "a")
    assert values.of_field("nowhere") == []
    assert values.numbers[:, number].tolist() == list(numbers("z", hash_of(1)))
    assert values.numbers[:, 0].tolist() == [0, 0]
    x, y, z = (store.field_code(name) for name in "xyz")
    by_field = values.by_field(first)
    # A field that is there twice has its last value; one that is not there has none.
    assert by_field[x] == {hash_: at for at, hash_, _ in values.of_field("x")}[hash_of(3)]
    assert by_field[z] == number == values.by_field(second)[z]
    assert values.by_field(second)[y] == 0 != by_field[y]
    assert values.codes(["x", "nowhere", "z"]) == [x, z]


def test_hashes_as_values() -> None:
    store, (code,) = store_of([line("x", 1), line("y", 2)])
    values = Values(store)
    fields, hashes = as_array(store.field_codes), as_array(store.hash_codes)
    assert values.of_hashes(fields, hashes).tolist() == values.by_field(code)[fields].tolist()
    assert values.of_hashes(fields, np.array([-1, hashes[1]])).tolist() == [
        0,
        values.by_field(code)[fields[1]],
    ]


@pytest.mark.parametrize(
    ("field", "text", "is_symbolic"),
    [
        (INPUT_0, "TensorMetadata(shape=torch.Size([s77, 8]))", True),
        (INPUT_0, "TensorMetadata(shape=torch.Size([7, 8]))", False),
        ("gm", "TensorMetadata(shape=torch.Size([s77, 8]))", False),
    ],
)
def test_inputs_of_symbolic_size(field: str, text: str, is_symbolic: bool) -> None:
    store, _ = store_of([line(field, 1, text)])
    assert Values(store).is_symbolic.tolist() == [False, is_symbolic]


def table(*sets: list[str] | None, cache: str = "fxgraph") -> KeyTable:
    store = HashDetails()
    codes = [-1 if lines is None else store.add(lines)[0] for lines in sets]
    homes = [(cache, "inference")]
    home = np.zeros(len(sets), dtype=np.int64)
    return KeyTable(store, Keys(homes, home, np.array(codes, dtype=np.int64), lambda key: f"key {key}"))


def sums(found: KeyTable, *fields: str, **parts: str) -> list[tuple[int, ...]]:
    removed = Removed(frozenset(fields), {name: frozenset({part}) for name, part in parts.items()})
    return list(map(tuple, found.lanes(removed).T.tolist()))


def sum_of(*pairs: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(sum(lane) % 2**64 for lane in zip(*(numbers(*pair) for pair in pairs), strict=True))


HOME = ("fxgraph", "inference")


def test_the_sums_of_keys() -> None:
    found = table([line("x", 1), line("y", 1)], [line("x", 2)], None)
    x1, x2, y1 = ("x", hash_of(1)), ("x", hash_of(2)), ("y", hash_of(1))
    own = ("fxgraph", "key", "key 2")
    assert sums(found) == [sum_of(HOME, x1, y1), sum_of(HOME, x2), sum_of(own)]
    assert sums(found, "x") == [sum_of(HOME, y1), sum_of(HOME), sum_of(own)]
    assert sums(found, "y") == [sum_of(HOME, x1), sum_of(HOME, x2), sum_of(own)]
    assert sums(found, "x", "y") == [sum_of(HOME), sum_of(HOME), sum_of(own)]
    assert sums(found, "nowhere") == sums(found)
    assert (found.fields, found.varying) == (["x", "y"], ["x", "y"])


def test_keys_that_nothing_recorded_tells_apart_keep_their_own() -> None:
    found = table([line("x", 1)], [line("x", 1)], [line("x", 2)])
    own = [sum_of(HOME, ("x", hash_of(1)), ("fxgraph", "key", f"key {n}")) for n in range(2)]
    assert sums(found) == [*own, sum_of(HOME, ("x", hash_of(2)))]
    assert found.set_of_key.tolist()[:2] == [-1, -1] != found.set_of_key.tolist()[2]
    assert (found.fields, found.varying) == (["x"], ["x"])


def test_parts_of_a_tensor_are_compared_by_text() -> None:
    found = table(*([line(INPUT_0, n, INPUT.format(n))] for n in (0, 1)))
    text = INPUT.partition(", device=")[0] + ")"
    assert sums(found, **{INPUT_0: "device"}) == [sum_of(HOME, (INPUT_0, "text", text, ""))] * 2
    assert found.is_tensor(INPUT_0) and not found.is_tensor("gm")
    # Two values of one text differ in what is not printed.
    hidden = table(*([line(INPUT_0, n, INPUT.format(0))] for n in (0, 1)))
    assert sums(hidden, **{INPUT_0: "device"}) == [
        sum_of(HOME, (INPUT_0, "text", text, hash_of(n))) for n in (0, 1)
    ]


def test_the_values_of_a_field() -> None:
    found = table([line("x", 1), line("y", 1)], [line("x", 2)], None, [line("x", 1), line("z", 1)])
    x = found.column("x", np.array([0, 1, 3])).tolist()
    assert x[0] == x[2] != x[1] and 0 not in x
    y = found.column("y", np.array([0, 1, 3])).tolist()
    assert y[0] != 0 and y[1:] == [0, 0]
    assert found.varying == ["x", "y", "z"]
    assert found.has_details.tolist() == [True, True, False, True]


def test_which_keys_are_symbolic() -> None:
    symbolic = line(INPUT_0, 1, "TensorMetadata(shape=torch.Size([s77, 8]))")
    plain = line(INPUT_0, 2, "TensorMetadata(shape=torch.Size([7, 8]))")
    assert table([plain], [symbolic], None, [plain, line("x", 1)]).is_symbolic.tolist() == [False, True, False, False]  # fmt: skip
    assert table([symbolic], [plain], [symbolic, line("x", 1)]).is_symbolic.tolist() == [True, False, True]
    other = line(INPUT_1, 3, "TensorMetadata(shape=torch.Size([s5, 8]))")
    assert table([symbolic, other], [symbolic], [plain]).is_symbolic.tolist() == [True, True, False]


def joined(found: KeyTable, *fields: str) -> list[set[int]]:
    """The keys that become equal to others."""
    result = found.joined(Removed(frozenset(fields)))
    of_class: dict[int, set[int]] = {}
    for one, number in zip(result.sets.tolist(), result.classes.tolist(), strict=True):
        of_class.setdefault(number, set()).update(np.flatnonzero(found.set_of_key == one).tolist())
    return sorted(of_class.values(), key=min)


def test_keys_that_become_equal() -> None:
    found = table(
        [line("x", 1), line("y", 1)], [line("x", 2), line("y", 1)], [line("x", 2), line("y", 2)],
        [line("x", 3), line("y", 2)], [line("y", 2)], None,
    )  # fmt: skip
    assert joined(found) == []
    assert joined(found, "nowhere") == []
    assert joined(found, "x") == [{0, 1}, {2, 3, 4}]
    assert joined(found, "y") == [{1, 2}]
    assert joined(found, "x", "y") == [{0, 1, 2, 3, 4}]
    # Once more, in another order: what is kept between is right.
    assert joined(found, "y", "x") == [{0, 1, 2, 3, 4}]
    assert joined(found, "x") == [{0, 1}, {2, 3, 4}]


@pytest.mark.parametrize(
    ("home", "wanted"), [([0, 0, 1, 1], [{0, 1}, {2, 3}]), ([0, 1, 2, 2], [{2, 3}]), ([0, 1, 1, 0], [{0, 3}, {1, 2}])]
)  # fmt: skip
def test_keys_of_other_caches_and_directions_never_become_equal(
    home: list[int], wanted: list[set[int]]
) -> None:
    store = HashDetails()
    codes = [store.add([line("x", n)])[0] for n in (1, 2, 1, 2)]
    homes = [("fxgraph", "forward"), ("fxgraph", "backward"), ("aotautograd", None)]
    keys = Keys(homes, np.array(home), np.array(codes), lambda key: f"key {key}")
    assert joined(KeyTable(store, keys), "x") == wanted
