"""How misses are judged, and the frames that it becomes; made by hand."""

from typing import Any

import pytest

from tests.made import CODE, Details, Made, aot, entry, fx, miss_rows, run, scope_of

G: Details = {"gm": CODE, "x": "1"}
SYMBOLIC: Details = {**G, "example_inputs[0]": "TensorMetadata(shape=torch.Size([s7, 8]))"}
HERE = {"cache_dir": "/cache"}


def test_only_misses_have_changes() -> None:
    """Before, between and after them, hits have none."""
    outcomes = ("hit", "full_miss", "hit", "full_miss", "hit")
    made = [
        fx(f"f{at}", outcome, {**G, "x": str(at)}, at=at, took=0.1) for at, outcome in enumerate(outcomes)
    ]
    scope = scope_of(run(*made))
    changes = [[change.summary for change in scope.changes(lookup)] for lookup in range(len(made))]
    assert changes == [[], ["0 -> 1"], [], ["2 -> 3"], []]


def test_guard_misses_that_follow_are_settled_in_rows_of_their_own() -> None:
    told: dict[str, Any] = {"details": SYMBOLIC, "took": 1.0, "entry_path": "/cache/fxgraph/1/f1/e"}
    scope = scope_of(run(fx("f1", at=0, **told), **HERE), run(fx("f1", at=9, **told), **HERE))
    assert [row.outcome for row in scope.settled.rows] == ["full_miss", "guard_miss"]
    assert [row.outcome for row in scope.tables.lookups.rows] == ["full_miss"] * 2
    alone = scope_of(run(fx("f1", at=0, **told), **HERE))
    assert [row.outcome for row in alone.settled.rows] == ["full_miss"]


@pytest.mark.parametrize(("reason", "kind"), [
    ("no", "no"), ("op 12 of 0xAB34", "op … of …"), ("  first 1 \nsecond", "first …"),
    (None, "torch gave no reason"), ("", "torch gave no reason"),
])  # fmt: skip
def test_the_kind_of_a_bypass_is_its_reason_without_the_single_case(reason: str | None, kind: str) -> None:
    (row,) = miss_rows(scope_of(run(fx(None, "bypass", at=0, bypass_reason=reason))))
    assert (row["verdict"], row["kind"].strip(), row["evidence"]) == ("bypassed", kind, "recorded")
    assert row["reason"].startswith("torch did not cache it: ")


def guarded(*lookups: Made, **told: Any) -> str:
    """Of the last, the guards that did not hold."""
    row = miss_rows(scope_of(run(*lookups), **told))[-1]
    assert row["verdict"] == "guard_failed"
    return str(row["reason"]).partition("held: ")[2]


def test_guards_are_its_own_then_those_of_entries_then_those_of_lookups_before() -> None:
    missed = fx("f1", "guard_miss", G, at=9, guards_expr="own", compile_id="9/0")
    before = [
        fx("f1", "hit", G, at=1, guards_expr="shown"),
        fx("f2", "hit", G, at=2, guards_expr="of another", compile_id="1/0"),
    ]
    entries = [
        entry("fxgraph", "f1", G, guards_expr="stored"),
        entry("fxgraph", "f1", G, guards_expr="shown", name="other"),
        entry("fxgraph", "f1", G, guards_expr="", name="none"),
        entry("fxgraph", "f2", G, guards_expr="of f2"),
        entry("aotautograd", "f1", G, guards_expr="of aot"),
    ]
    assert guarded(missed) == "own"
    assert guarded(*before, missed) == "own; shown"
    assert guarded(*before, missed, entries=entries) == "own; stored; shown"
    untold = fx("f1", "guard_miss", G, at=9, compile_id="9/0")
    assert guarded(untold) == "not recorded"
    assert guarded(untold, entries=entries) == "stored; shown"


NEEDED = "The FX graphs below were found"


@pytest.mark.parametrize(("graphs", "is_said"), [
    ([], False),
    ([fx("f2", "hit", G, at=11)], True),
    ([fx("f2", "hit", G, at=11), fx("f3", "hit", G, at=12)], True),
    ([fx("f2", "hit", G, at=11), fx("f3", "unknown", G, at=12)], False),
    ([fx("f2", "unknown", G, at=11)], False),
])  # fmt: skip
def test_advice_on_an_autograd_key_says_if_its_graphs_were_found(graphs: list[Made], is_said: bool) -> None:
    changed = aot("a2", details={**G, "aot_config": "2"}, at=10)
    scope = scope_of(run(aot("a1", details={**G, "aot_config": "1"}, at=0)), run(changed, *graphs))
    (advice,) = scope.causes.loc[scope.causes["verdict"] == "key_changed", "advice"]
    assert advice.startswith(NEEDED) is is_said
    assert "What AOTAutograd knows of the arguments" in advice


def test_advice_says_whether_lines_are_lost() -> None:
    for is_cut, said in ((True, "Lines of the log are lost"), (False, "TORCH_LOGS")):
        scope = scope_of(
            run(fx("f1", details=G, at=0)), run(fx("f2", details=None, at=9, is_details_cut=is_cut))
        )
        (advice,) = scope.causes.loc[scope.causes["verdict"] == "details_not_recorded", "advice"]
        assert said in advice


def test_a_miss_without_a_key_had_no_entry() -> None:
    (row,) = miss_rows(
        scope_of(run(fx(None, details=G, at=9, load_error="EOFError: Ran out of input"), **HERE))
    )
    assert row["verdict"] == "first_lookup"
