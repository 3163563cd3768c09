"""What directories held, what is played into one, and which keys become equal without some fields; made by hand."""

from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cachescope.analysis.history.directory import HIT, MISS, UNKNOWN
from cachescope.analysis.history.history import History
from cachescope.analysis.history.timeline import NEVER
from cachescope.analysis.key_distance import KeyDistances
from cachescope.analysis.what_if.cells import Cell, CellWalk, Key, Stored
from cachescope.analysis.what_if.keys import KeyTable
from cachescope.analysis.what_if.replay import Replay, play
from cachescope.details import HashDetails
from cachescope.frames.recorded_rows import LookupRow
from cachescope.keys.key_fields import Removed
from tests.analysis.plain_rows import lookup_row, run_row
from tests.analysis.what_if.test_replay import row
from tests.analysis.what_if.test_what_if_keys import INPUT, hash_of
from tests.made import entry, fx, run, scope_of

# The key, the outcome, the time until the next one, and how long a compile takes.
Looked = tuple[int, str, int, int]


def replay_of(found: list[Looked]) -> Replay:
    rows: list[LookupRow] = []
    time = 10
    for at, (key, outcome, wait, taken) in enumerate(found):
        took = None if outcome == "hit" else taken
        made = row(at, 0, time, "fxgraph", f"f{key}", outcome == "hit", None, took, None)
        rows.append(replace(made, outcome=outcome, status_detailed=outcome))
        time += wait
    return Replay(History(rows, (), [run_row(0, cache_dir="dir")], HashDetails()))


def test_misses_before_the_first_store_and_hits_from_then_on_are_plain() -> None:
    """Two race for a key; later ones hit."""
    replay = replay_of([(0, "full_miss", 1, 4), (0, "full_miss", 9, 4), (0, "hit", 1, 1)])
    assert replay.columns.outcome == [MISS, MISS, HIT]
    assert replay.columns.stored_since[:2] == [2, 2]


def test_entries_of_keys_that_nobody_looked_up_are_of_no_key_that_was() -> None:
    missed = fx("f1", details={"gm": "g", "x": "1"}, at=10, took=1.0, save_error="OSError: full")
    looked = run(missed, cache_dir="/cache")
    entries = [entry("fxgraph", f"f{at}", {"gm": "g", "x": str(at)}, at=1) for at in (2, 3, 4)]
    assert scope_of(looked, entries=entries).replay.cells.differences == []
    # One of its own was there before, and it stored none itself.
    there = entry("fxgraph", "f1", {"gm": "g", "x": "1"}, at=2)
    cells = scope_of(looked, entries=[*entries, there]).replay.cells
    assert [one.position for one in cells.differences] == [0]
    # Nothing shows that it was there where all files have one time.
    there = entry("fxgraph", "f1", {"gm": "g", "x": "1"}, at=1)
    assert scope_of(looked, entries=[*entries, there]).replay.cells.differences == []


def test_entries_may_have_no_time() -> None:
    """As those in a remote cache, which were there all the time."""
    looked = run(fx("f1", details={"gm": "g"}, at=10, took=1.0), cache_dir="/cache")
    entries = [entry("fxgraph", "f2", {"gm": "g"}, at=at, name=str(at)) for at in (None, 1, None)]
    cells = scope_of(looked, entries=entries).replay.cells
    assert list(map(early_of, cells.every)) == [NEVER, 0]


def early_of(cell: Cell) -> int:
    """Since when it has an entry that no recorded miss stored."""
    return min((entry.since for entry in cell.entries if entry.source < 0), default=NEVER)


def looked_up(key: int, outcome: str, wait: int = 1, taken: int = 4) -> Looked:
    return key, outcome, wait, taken


@pytest.mark.parametrize(("found", "early", "gone"), [
    # Hits alone: each was there before.
    ([looked_up(0, "hit"), looked_up(1, "hit")], [0, 0], []),
    ([looked_up(0, "hit"), looked_up(1, "hit"), looked_up(0, "hit"), looked_up(1, "hit")], [0, 0], []),
    ([looked_up(0, "full_miss"), looked_up(1, "full_miss")], [NEVER, NEVER], []),
    # A hit at once when it is stored, and one before that, which shows that it was stored sooner.
    ([looked_up(0, "full_miss", 5), looked_up(0, "hit"), looked_up(1, "hit")], [NEVER, 0], []),
    ([looked_up(0, "full_miss", 3), looked_up(0, "hit"), looked_up(1, "hit")], [NEVER, 0], []),
    # A miss of what is there already, and one before it is.
    ([looked_up(0, "full_miss", 5), looked_up(0, "full_miss")], [NEVER], [0]),
    ([looked_up(0, "full_miss", 4), looked_up(0, "full_miss")], [NEVER], []),
    # A hit before any miss; and one after a miss that had not stored yet.
    ([looked_up(0, "hit"), looked_up(0, "full_miss")], [0], [0]),
    ([looked_up(1, "hit"), looked_up(0, "full_miss"), looked_up(0, "hit"), looked_up(0, "full_miss")], [0, NEVER], [1]),
], ids=range(9))  # fmt: skip
def test_what_was_there_before_and_what_went(found: list[Looked], early: list[int], gone: list[int]) -> None:
    cells = replay_of(found).cells.every
    assert list(map(early_of, cells)) == early
    assert [at for at, cell in enumerate(cells) if any(event.more < 0 for event in cell.events)] == gone


CELLS = 3
guards = st.sampled_from([None, "", "a", "b"])


@dataclass(frozen=True)
class Miss:
    """One miss, and what it stored."""

    cell: int
    is_nested: bool
    stored_after: int | None
    guards: str | None
    stays: int


@dataclass(frozen=True)
class Entry:
    cell: int
    since: int
    gone: int
    source: int
    guards: str | None


misses = st.lists(
    st.builds(
        Miss, cell=st.integers(0, CELLS - 1), is_nested=st.sampled_from([False] * 5 + [True]),
        stored_after=st.none() | st.integers(1, 6), guards=guards, stays=st.integers(1, 8),
    ),
    max_size=20,
)  # fmt: skip
outside = st.lists(
    st.builds(
        Entry, cell=st.integers(0, CELLS - 1), since=st.integers(0, 20), gone=st.just(NEVER),
        source=st.just(-1), guards=guards,
    ),
    max_size=3,
)  # fmt: skip


def entries_of(found: list[Miss], before: list[Entry], *, is_removed: bool) -> list[Entry]:
    stored = [
        Entry(m.cell, at + m.stored_after, at + m.stored_after + m.stays if is_removed and m.stays < 8 else NEVER, at, m.guards)
        for at, m in enumerate(found)
        if m.stored_after is not None and not m.is_nested
    ]  # fmt: skip
    return [*before, *stored]


def slow(found: list[Miss], entries: list[Entry]) -> list[int]:
    after: list[int] = []
    for at, miss in enumerate(found):
        others = [entry for entry in entries if entry.cell != miss.cell and entry.since <= at < entry.gone]
        own = miss.guards if miss.stored_after is not None else None
        exist = [e for e in others if e.source < 0 or after[e.source] == MISS]
        if miss.is_nested or any(e.guards is not None and e.guards in ("", own) for e in exist):
            after.append(HIT)
        else:
            may_exist = any(e.source < 0 or after[e.source] != HIT for e in others)
            after.append(UNKNOWN if may_exist else MISS)
    return after


def played(found: list[Miss], entries: list[Entry]) -> list[int]:
    cells = [Cell(number, 0) for number in range(CELLS)]
    for e in entries:
        stored = Stored(e.since, e.source, e.gone, e.guards)
        cells[e.cell].entries.append(stored)
        cells[e.cell].events += stored.events(e.cell)
    for at, m in enumerate(found):
        cells[m.cell].misses.append(at)
    after = [HIT if m.is_nested else MISS for m in found]
    play(cells, after)
    return after


def miss(cell: int, after: int | None, guards: str | None = "", stays: int = 8) -> Miss:
    return Miss(cell, False, after, guards, stays)


# The second entry of the first cell has no guards, and was stored before another cell had any.
@example([miss(0, 1, None), miss(0, 1), miss(1, None), miss(1, None)], [], False)
# Gone just when it is looked for.
@example([miss(0, 1, stays=1), miss(1, None), miss(1, None)], [], True)
@given(misses, outside, st.booleans())
def test_what_is_found_is_what_lay_there(found: list[Miss], before: list[Entry], is_removed: bool) -> None:
    entries = entries_of(found, before, is_removed=is_removed)
    assert played(found, entries) == slow(found, entries)


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
    assert spans(walked(text, *(Stored(at, -1) for at in since))) == entries


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
