"""What one cell held over time, by the lookups of its key: the entries, since when, until when, and their guards; made by hand."""

from typing import Any

import pytest

from cachescope.analysis.history.timeline import NEVER
from cachescope.analysis.what_if.cells import CellWalk, Stored
from cachescope.frames.recorded_rows import LookupRow
from tests.analysis.plain_rows import lookup_row


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
