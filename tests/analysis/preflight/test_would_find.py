"""How a lookup that a pre-flight predicts would end, by what lies under its key; made by hand."""

from typing import Any

import pytest

from cachescope.analysis.preflight.would_find import Candidate, PredictedOutcome, found_under
from cachescope.readers.logs.notes import LookupNote

SMALL, LARGE = "L['t0'] < 8", "L['t0'] > 8"
ONE = Candidate("one")
HOLDS, FAILS, OPEN = (Candidate("one", guards=guards) for guards in (SMALL, LARGE, "L['t1'] < 8"))
NOT_RECORDED = Candidate("one", are_guards_known=False)
DAMAGED = Candidate("one", "no", "it is damaged")
UNREAD = Candidate("one", "maybe", "it was not read")


def found(*candidates: Candidate, note: LookupNote | None = None) -> PredictedOutcome:
    return found_under(candidates, note or LookupNote(sizes=(4,)), "in /cache")


@pytest.mark.parametrize(("candidates", "outcome", "why", "guards"), [
    ([], "full_miss", "no entry under this key in /cache", None),
    ([ONE], "hit", "one", None),
    ([HOLDS], "hit", "one; its guards hold for t0 = 4: L['t0'] < 8", SMALL),
    ([FAILS], "guard_miss", "1 entry under this key in /cache, and no guards hold for t0 = 4: L['t0'] > 8", LARGE),
    ([FAILS, Candidate("two", guards="L['t0'] > 9")], "guard_miss",
     "2 entries under this key in /cache, and no guards hold for t0 = 4: L['t0'] > 9", "L['t0'] > 9"),
    ([NOT_RECORDED], "unknown",
     "one: whether its guards hold for these sizes is not known: they are not recorded", None),
    ([OPEN], "unknown", "one: whether its guards hold for these sizes is not known: L['t1'] < 8", None),
    ([DAMAGED], "full_miss", "one is under this key, but it is damaged", None),
    ([DAMAGED, Candidate("two", "no", "it is foreign")], "full_miss", "one is under this key, but it is damaged",
     None),
    ([UNREAD], "unknown", "one: it was not read", None),
    # What would fail is no matter, whether it is there or not.
    ([Candidate("one", "maybe", "it was not read", LARGE)], "guard_miss", None, LARGE),
    ([Candidate("one", "no", "it is damaged", LARGE)], "full_miss", None, None),
    # One that fits is found beside any others; one that may fit leaves a miss open.
    ([DAMAGED, FAILS, UNREAD, OPEN, HOLDS], "hit", None, SMALL),
    ([DAMAGED, FAILS, OPEN], "unknown", None, None),
    ([DAMAGED, FAILS], "guard_miss", None, LARGE),
])  # fmt: skip
def test_how_it_ends(candidates: list[Candidate], outcome: str, why: str | None, guards: str | None) -> None:
    made = found(*candidates)
    assert (made.outcome, made.guards) == (outcome, guards)
    assert why is None or made.why == why
    # torch's finer word is the outcome itself, where it is known.
    assert made.status == (None if outcome == "unknown" else outcome)
    assert made.candidate is (candidates[-1] if outcome == "hit" else None)


def test_where_torch_skips_guards_the_first_entry_is_found() -> None:
    made = found(FAILS, HOLDS, note=LookupNote(sizes=(4,), skips_guards=True))
    assert (made.outcome, made.candidate) == ("hit", FAILS)


@pytest.mark.parametrize(
    ("sizes", "words"), [((4, None), "t0 = 4, t1 = ?"), ((4, 9), "t0 = 4, t1 = 9"), ((), "no sizes")]
)
def test_sizes_are_said(sizes: tuple[float | None, ...], words: str) -> None:
    assert found(HOLDS, note=LookupNote(sizes=sizes)).why == f"one; its guards hold for {words}: L['t0'] < 8"


def entry(*graphs: tuple[str, str | None], **told: Any) -> Candidate:
    return Candidate("the entry", graphs=graphs, **told)


GUARDED = Candidate("graph", guards=SMALL)
STORED = {"f1": [Candidate("graph")], "f2": [GUARDED], "f3": [DAMAGED], "f4": [UNREAD], "f5": [UNREAD, ONE]}


@pytest.mark.parametrize(("graphs", "outcome", "looked_up"), [
    ([], "hit", ()),
    ([("f1", "")], "hit", (("f1", True),)),
    ([("f1", ""), ("f2", SMALL)], "hit", (("f1", True), ("f2", True))),
    # Any of the key, where the entry does not name the guards of its graphs.
    ([("f1", None), ("f2", None)], "hit", (("f1", True), ("f2", True))),
    ([("f5", None)], "hit", (("f5", True),)),
    # Of other guards is another graph.
    ([("f2", LARGE)], "full_miss", (("f2", False),)),
    ([("f2", "")], "full_miss", (("f2", False),)),
    ([("f1", SMALL)], "full_miss", (("f1", False),)),
    # No graph is looked up after one that is gone.
    ([("f1", ""), ("f9", ""), ("f2", SMALL)], "full_miss", (("f1", True), ("f9", False))),
    ([("f3", "")], "full_miss", (("f3", False),)),
    ([("f4", "")], "unknown", ()),
    ([("f4", SMALL)], "full_miss", (("f4", False),)),
])  # fmt: skip
def test_an_aotautograd_entry_is_of_use_with_its_graphs_alone(
    graphs: list[tuple[str, str | None]], outcome: str, looked_up: tuple[tuple[str, bool], ...]
) -> None:
    one = entry(*graphs)
    made = found_under([one], LookupNote(), "in /cache", lambda cache, key: STORED.get(key, []))
    assert (made.outcome, made.graphs) == (outcome, looked_up)
    # To torch, the entry itself was found even if a graph of it was not.
    assert (made.status, made.candidate) == ((None, None) if outcome == "unknown" else ("hit", one))


@pytest.mark.parametrize(("key", "why"), [
    ("f123456789", "the entry fits, but the FX entry f1234567… that it points to is not there"),
    ("f3", "the entry fits, but the FX entry f3… that it points to cannot be loaded"),
    ("f4", "the entry points to the FX entry f4…, which may not load: it was not read"),
])  # fmt: skip
def test_what_is_wrong_with_a_graph_is_said(key: str, why: str) -> None:
    one = [entry((key, None))]
    assert found_under(one, LookupNote(), "in /cache", lambda cache, key: STORED.get(key, [])).why == why


def test_graphs_are_looked_for_among_fx_entries() -> None:
    asked = []

    def under(cache: str, key: str) -> list[Candidate]:
        asked.append((cache, key))
        return [ONE]

    note = LookupNote(sizes=(4,))
    stored = [entry(("f1", None), guards=LARGE), entry(("f2", None), guards=SMALL)]
    made = found_under(stored, note, "", under)
    assert (made.outcome, made.guards, asked) == ("hit", SMALL, [("fxgraph", "f2")])


@pytest.mark.parametrize(("second", "outcome", "key"), [("f2", "hit", "f1"), ("f9", "unknown", None)])
def test_of_several_that_fit_any_may_be_taken(second: str, outcome: str, key: str | None) -> None:
    """It is no matter which where all end in the same way."""
    several = [entry(("f1", None)), entry((second, None))]
    made = found_under(several, LookupNote(), "in /cache", lambda cache, key: STORED.get(key, []))
    assert made.outcome == outcome
    assert made.candidate is (several[0] if key else None)
