"""What one cell held over time, by the lookups of its key: the entries, since when, until when, and their guards; made by hand."""

from typing import Any

import pytest

from cachescope.analysis.history.timeline import NEVER
from cachescope.analysis.what_if.browser_replay import ReplayCodes
from cachescope.analysis.what_if.cells import CellWalk, Stored
from cachescope.frames.recorded_rows import LookupRow
from cachescope.keys.key_schema import VERSION_FIELD
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
