"""Why lookups that a pre-flight predicts would miss, where the directory shows it: rows made by hand in, reasons out."""

from dataclasses import replace
from typing import Any

import pytest

from cachescope.analysis.history.history import History
from cachescope.analysis.verdicts.judging import guards_would_fail, judge_predicted
from cachescope.analysis.verdicts.misses import VerdictsSoFar, Why
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.recorded_rows import LookupRow
from tests.analysis.plain_rows import entry_row, history_of
from tests.analysis.what_if.test_replay import row

TOLD = "its entry in /cache is damaged"


def lookup(at: int = 0, cache: str = "fxgraph", key: str = "f1", **told: Any) -> LookupRow:
    return replace(row(at, 0, at, cache, key, False, None, None, None), **{"prediction": TOLD, **told})


def entry(cache: str, key: str, status: str = "ok", damage: str | None = None) -> EntryRow:
    return entry_row(0, cache, key, "/cache", "/cache/e", 1, status, damage)


DAMAGED = entry("fxgraph", "f1", "damaged", "truncated at 4 bytes")


def judged(history: History, *said: tuple[int, Why]) -> VerdictsSoFar:
    found = VerdictsSoFar(len(history.lookups))
    for at, why in said:
        found.record(at, why)
    judge_predicted(history, found)
    return found


@pytest.mark.parametrize(("made", "entries", "kind"), [
    (lookup(), [DAMAGED], "damaged"),
    (lookup(), [entry("fxgraph", "f1"), DAMAGED], "damaged"),
    # torch found the AOTAutograd entry, and not the graph that it points to.
    (lookup(cache="aotautograd", key="a1", status_detailed="hit"), [], "graph entry"),
    (lookup(status_detailed="miss"), [DAMAGED], "damaged"),
    # Nothing lies there, or what torch may load; nothing of it under another key, or in another cache.
    (lookup(), [], None),
    (lookup(), [entry("fxgraph", "f1")], None),
    (lookup(), [entry("fxgraph", "f1", "damaged", None)], None),
    (lookup(), [entry("fxgraph", "f1", "damaged", "content hash differs from the name")], None),
    (lookup(), [entry("fxgraph", "f1", "unreadable", "truncated")], None),
    (lookup(), [entry("fxgraph", "f2", "damaged", "empty file")], None),
    (lookup(), [entry("aotautograd", "f1", "damaged", "empty file")], None),
    # A lookup that was made, one that would not miss, and one whose guards would fail.
    (lookup(prediction=None), [DAMAGED], None),
    (lookup(outcome="hit"), [DAMAGED], None),
    (lookup(outcome="unknown"), [DAMAGED], None),
    (lookup(outcome="guard_miss"), [DAMAGED], None),
], ids=range(15))  # fmt: skip
def test_what_the_directory_shows(made: LookupRow, entries: list[EntryRow], kind: str | None) -> None:
    found = judged(history_of([made], entries=entries))
    if kind is None:
        assert found.why == [None]
        return
    why = "predicted: the directory shows it as it is now"
    assert found.why == [Why("entry_unavailable", TOLD, "inferred", why, kind=kind)]
    # It is compared with nothing: no lookup was made before.
    assert found.baseline == [None]


def test_each_lookup_has_its_own_reason_and_keeps_one_that_it_has() -> None:
    rows = [
        lookup(0, key="f2"),
        lookup(1),
        lookup(2, prediction="other"),
        lookup(3),
        lookup(4, prediction=""),
    ]
    before = Why("disabled", "its caches are off", "recorded", "")
    found = judged(history_of(rows, entries=[DAMAGED]), (3, before))
    reasons = [None if why is None else why.reason for why in found.why]
    assert reasons == [None, TOLD, "other", "its caches are off", ""]


def test_guards_that_would_fail() -> None:
    found = guards_would_fail("f1", "no guards hold")
    wanted = ("guard_failed", "no guards hold", "inferred", "f1")
    assert (found.verdict, found.reason, found.evidence, found.kind) == wanted
    assert found.evidence_text.startswith("predicted: the guards of the entries were evaluated")
