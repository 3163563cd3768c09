"""What one cell held over time, by the lookups of its key; and the keys of a what-if, told apart as the hashes tell them apart; made by hand."""

import base64
from hashlib import blake2b, sha256
from typing import Any

import pytest

from cachescope.analysis.history.timeline import NEVER
from cachescope.analysis.key_distance import KeyDistances
from cachescope.analysis.what_if.browser_replay import ReplayCodes
from cachescope.analysis.what_if.cells import CellWalk, Key, Stored
from cachescope.analysis.what_if.keys import KeyTable, number_of
from cachescope.details import HashDetails
from cachescope.frames.recorded_rows import LookupRow
from cachescope.keys.key_schema import VERSION_FIELD, KeySchema, Removed
from tests.analysis.plain_rows import lookup_row
from tests.analysis.what_if.test_made_histories import G, here
from tests.made import Details, aot, fx, run, scope_of


def steps(text: str, **guards: str) -> list[tuple[int, LookupRow, int]]:
    """h hit, H hit that would show guards, m miss, g guard miss, each one position on; `guards` are by position."""
    found = []
    for at, word in enumerate(text.split()):
        kind, since = word[0], int(word[1:]) if word[1:] else NEVER
        outcome = {"h": "hit", "H": "hit", "m": "full_miss", "g": "guard_miss"}[kind]
        told = {"outcome": outcome, "guards_expr": guards.get(f"at{at}")}
        row = lookup_row(**told, status_detailed="hit" if kind == "H" else None)
        found.append((at, row, since))
    return found


def walked(text: str, *before: Stored, known: dict[int, str] | None = None, **guards: str) -> CellWalk:
    walk = CellWalk(before, known or {})
    walk.walk(steps(text, **guards))
    return walk


def spans(walk: CellWalk) -> list[tuple[int, int, int | None]]:
    """Since when each entry is there, which miss stored it, and when it had gone; None for never."""
    return [(one.since, one.source, None if one.gone == NEVER else one.gone) for one in walk.entries]


@pytest.mark.parametrize(("text", "entries", "differences"), [
    ("", [], []),
    ("m1 h", [(1, 0, None)], []),
    # Two misses before the first store.
    ("m2 m3 h h", [(2, 0, None), (3, 1, None)], []),
    # A miss that stored nothing.
    ("m m", [], []),
    # A hit before anything: it was there already.
    ("h h", [(0, -1, None)], []),
    ("h m2 h", [(0, -1, 1), (2, 1, None)], [(1, "gone")]),
    # A hit before the end of the compile that stored it.
    ("m5 h h", [(1, 0, None)], []),
    ("m5 m9 h m", [(2, 0, 3), (9, 1, None)], [(3, "gone")]),
    # Nothing explains it.
    ("m h", [(1, -1, None)], [(1, "came")]),
    ("m h h", [(1, -1, None)], [(1, "came")]),
    # It went, and came again.
    ("m1 m2 h", [(1, 0, 1), (2, 1, None)], [(1, "gone")]),
    ("m1 h m h", [(1, 0, 2), (3, -1, None)], [(2, "gone"), (3, "came")]),
    ("m1 m9 m h", [(1, 0, 1), (3, 1, None)], [(1, "gone")]),
    # Guards did not hold: what was there is still there.
    ("m1 g2 h", [(1, 0, None), (2, 1, None)], []),
    ("g1 h", [(0, -1, None), (1, 0, None)], []),
    ("g h", [(0, -1, None)], []),
    ("m9 g h", [(2, 0, None)], []),
])  # fmt: skip
def test_the_entries_over_time(
    text: str, entries: list[tuple[int, int, int | None]], differences: list[tuple[int, str]]
) -> None:
    walk = walked(text)
    assert spans(walk) == entries
    assert walk.differences == differences
    assert walk.has_guards == ("g" in text)


@pytest.mark.parametrize(("text", "since", "entries"), [
    ("m h", (1,), [(1, -1, None)]), ("h", (0,), [(0, -1, None)]),
    # A copied directory has the times of the copy.
    ("h", (5,), [(0, -1, None)]), ("h m", (5, 7), [(0, -1, 1), (7, -1, None)]),
    # Not so once it was looked for and was not there.
    ("m h", (5,), [(5, -1, None), (1, -1, None)]), ("m m h", (1, 2), [(1, -1, 1), (2, -1, None)]),
    ("g h", (5,), [(5, -1, None), (1, -1, None)]),
    # What was stored next came sooner than the records show, whatever comes after it.
    ("m5 h", (9,), [(9, -1, None), (1, 0, None)]),
])  # fmt: skip
def test_entries_there(text: str, since: tuple[int, ...], entries: list[tuple[int, int, int | None]]) -> None:
    walk = walked(text, *(Stored(at, -1) for at in since))
    assert spans(walk) == entries
    assert all(one.sure == one.since for one in walk.entries)


def guards_of(walk: CellWalk) -> list[Any]:
    """The guards of each entry; Ellipsis if they are not known."""
    return [... if one.guards is None else one.guards for one in walk.entries]


@pytest.mark.parametrize(("text", "told", "wanted", "has_guards"), [
    # A hit shows those of its entry, a guard miss those of one that did not fit.
    ("m1 h", {"at1": "a"}, ["a"], True),
    ("m1 g", {"at1": "a"}, ["a"], True),
    # Shows none: it has none, if a hit would show them.
    ("m1 H", {}, [""], False),
    ("m1 h", {}, [...], False),
    ("m1 g", {}, [...], True),
    ("h", {"at0": "a"}, ["a"], True),
    # Of two it may be either; of which one is known it is the other.
    ("m2 m2 h", {"at2": "a"}, [..., ...], True),
    ("m1 h g3 h", {"at1": "a", "at3": "b"}, ["a", "b"], True),
    ("m1 h g3 h", {"at1": "a", "at3": "a"}, ["a", ...], True),
    ("m1 h g3 h h", {"at1": "a", "at3": "a", "at4": "b"}, ["a", "b"], True),
    ("m1 H g3 H", {"at3": "b"}, ["", "b"], True),
    ("m1 h g3 H", {"at1": "a"}, ["a", ""], True),
    # Of what has gone it says nothing.
    ("m1 m2 h", {"at2": "a"}, [..., "a"], True),
    # A miss that shows guards where nothing is there yet.
    ("m1", {"at0": "a"}, [...], True),
])  # fmt: skip
def test_guards_of_lookups(text: str, told: dict[str, str], wanted: list[Any], has_guards: bool) -> None:
    walk = walked(text, **told)
    assert (guards_of(walk), walk.has_guards) == (wanted, has_guards)


def test_guards_that_a_directory_shows() -> None:
    assert guards_of(walked("m2 m2 h", known={0: "a", 1: ""})) == ["a", ""]
    assert guards_of(walked("m2 m2 h", known={1: "b"}, at2="a")) == ["a", "b"]
    assert guards_of(walked("m2 m2 h", known={1: "a"}, at2="a")) == [..., "a"]
    assert guards_of(walked("h h", Stored(0, -1, NEVER, "a"), at1="b")) == ["a"]


FUSES = "inductor_config[epilogue_fusion]"
OLD = "{'device': {'name': 'cpu'}, 'runtime': {'cuda': '12.4'}, 'version': {'triton': '3.1'}}"
NEW = OLD.replace("12.4", "12.6").replace("3.1", "3.2")


def forms(*details: Details) -> dict[str, tuple[tuple[str, ...], int]]:
    runs = [here(fx(f"f{at}", details={**G, **one}, at=10 * at, took=1.0)) for at, one in enumerate(details)]
    codes = ReplayCodes.of(scope_of(*runs).replay)
    return {form.name: (tuple(codes.fields[at] for at in form.fields), form.part) for form in codes.forms}


def test_a_form_has_its_varying_fields_and_no_part() -> None:
    assert forms({FUSES: "True"}, {FUSES: "False"}) == {"inductor_configs": ((FUSES,), 0)}
    # What varies in no form makes none.
    assert forms({"x": "1"}, {"x": "2"}) == forms({FUSES: "True"}, {FUSES: "True"}) == {}


def test_the_shared_field_has_values_without_the_parts_of_any_of_its_forms_but_all() -> None:
    details = ({**G, VERSION_FIELD: version} for version in (OLD, NEW))
    runs = [here(fx(f"f{at}", details=told, at=10 * at, took=1.0)) for at, told in enumerate(details)]
    codes = ReplayCodes.of(scope_of(*runs).replay)
    parts = [form.part for form in codes.forms if form.part]
    assert codes.parted is not None
    assert codes.fields[codes.parted.field] == VERSION_FIELD
    assert sorted(codes.parted.values) == list(range(1, sum(parts)))


def test_forms_that_share_a_field_have_a_bit_each() -> None:
    found = forms({FUSES: "True", VERSION_FIELD: OLD}, {FUSES: "False", VERSION_FIELD: NEW})
    assert found.pop("inductor_configs") == ((FUSES,), 0)
    assert {fields for fields, _ in found.values()} == {()}
    assert sorted(part for _, part in found.values()) == [1 << at for at in range(len(found))]
    assert len(found) > 1


def test_misses_have_their_aotautograd_lookup_and_when_they_stored() -> None:
    scope = scope_of(
        here(aot("a1", details=G, at=0), fx("f1", details=G, at=1, took=2.0)),
        here(fx("f1", "hit", details=G, at=10, guards_expr="s > 4")),
        here(fx("f2", details={**G, "x": "2"}, at=20, took=3.0, save_error="OSError: full")),
        here(fx("f3", details=None, at=30, took=4.0)),
    )
    codes = ReplayCodes.of(scope.replay)
    misses = codes.misses
    assert misses.at == [0, 1, 3, 4]
    # A key without hash details can become equal to no other: it has no cell there.
    assert misses.cell == [0, 1, 2, -1]
    assert len(codes.cells.home) == 3
    assert misses.aot == [-1, 0, -1, -1]
    assert misses.is_open == [False, False, False, True]
    # By the position of the first lookup that could find it, the second of these misses.
    events = codes.events
    assert (events.at[1], events.cell[1], events.source[1], events.more[1]) == (2, 1, 1, 1)
    # What could not be saved is not there, nor what nobody can find under another key.
    assert (events.source, events.guards) == ([0, 1], [0, 1])


def test_values_are_numbered_within_a_cache_and_a_directory_the_most_frequent_first() -> None:
    made = [("/cache", 0, ("11", "21", "22")), ("/other", 10, ("11", "31"))]
    runs = []
    for cache_dir, start, keys in made:
        values = enumerate(keys, start)
        lookups = [fx(f"f{x}{y}", details={**G, "x": x, "y": y}, at=at, took=1.0) for at, (x, y) in values]
        runs.append(run(*lookups, cache_dir=cache_dir))
    codes = ReplayCodes.of(scope_of(*runs).replay)
    values = dict(zip(codes.fields, codes.values, strict=True))
    assert values == {"x": [1, 0, 0, 0, 1], "y": [0, 0, 1, 0, 0]}
    home = codes.cells.home
    assert home[0] == home[1] == home[2] != home[3] == home[4]
    assert codes.parted is None


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
