"""The pane Compare: what a pick in the list of runs does, and that what is shown stays when more is read."""

import re
from typing import Any

import pytest

import cachescope
from cachescope.analysis.differences import FieldChange
from cachescope.errors import CachescopeError
from cachescope.report.blocks import Table
from cachescope.report.explanation import change_blocks
from cachescope.scope import Scope
from cachescope.views.compare import Compare
from cachescope.views.state import State
from tests.made import fx, run, scope_of
from tests.views.test_explorer import opened

pytestmark = pytest.mark.slow  # whole explorers are built


@pytest.fixture
def pane(tour: Scope) -> Any:
    return opened(tour.explore(), "Compare")


def picked(pane: Compare, side: str, *runs: int, added: bool = False) -> None:
    pane.picker.picked = [side, list(runs), added, len(pane.picker.picked)]


def test_what_is_picked_is_compared(pane: Compare, tour: Scope) -> None:
    assert pane.picker.sides == [[4], [5]] and "8 regressed" in repr(pane)
    picked(pane, "A", 1)
    picked(pane, "B", 2)
    assert pane._state.compared == ((1,), (2,)) and "100 % → 75 %" in pane.headline.value
    assert [cells[0] for cells in pane.table.rows] == ["Regressed"] * 2 + ["Same"] * 6
    assert "torch.tanh" in pane.differences.value
    assert eval(pane.query, {"scope": tour}).equals(pane.frame())


def test_several_runs_are_a_side(pane: Compare) -> None:
    picked(pane, "A", 1, added=True)
    assert pane.picker.sides == [[4, 1], [5]] and "2 runs → 1 run" in pane.headline.value
    assert pane.table.rows[0][4:6] == ["hit ×2", "full_miss"]


def test_a_run_of_the_other_side_changes_sides(pane: Compare) -> None:
    picked(pane, "A", 5)
    assert pane.picker.sides == [[5], [4]]
    # What is later is no longer the side after.
    assert "A hits more" not in str(pane.changes.options) and "B hits more 8" in str(pane.changes.options)


@pytest.mark.parametrize("sent", [[], ["C", [0], False, 1], ["A", [99], False, 1], ["A", 0, False, 1]])
def test_the_page_could_send_anything(sent: list[Any], pane: Compare) -> None:
    pane.picker.picked = sent
    assert pane.picker.sides == [[4], [5]] and pane._state.error == ""


def test_a_row_opens_why(pane: Compare, tour: Scope) -> None:
    picked(pane, "A", 1)
    picked(pane, "B", 2)
    pane.changes.value = "regressed"
    assert pane.table.total == 2 and pane._state.change == "regressed"
    pane.table.chosen = [pane.table.ids[0], 0]
    assert pane._state.pane == "Why"
    assert [*tour.lookups.set_index("lookup").loc[pane._state.lookup, ["run", "outcome"]]] == [2, "full_miss"]


def test_the_ranks_of_a_job_are_behind_its_row() -> None:
    pane = cachescope.read(cachescope.sample("four_ranks")).compare_view()
    jobs = [row for row in pane.picker.rows if row["job"] is None]
    assert [row["cells"][:2] for row in jobs] == [["4 ranks", "all"]] * 2
    assert [row["runs"] for row in jobs] == pane.picker.sides[::-1]
    assert len(pane.picker.rows) == 10
    assert "Each rank is compared with the same rank." in pane.said.value


def test_two_ranks_of_a_job_are_named_as_two_sides() -> None:
    pane = cachescope.read(cachescope.sample("four_ranks")).compare_view()
    job = pane.picker.sides[1]
    picked(pane, "B", job[1])
    picked(pane, "A", job[0])
    at = [head["name"] for head in pane.table.columns].index("ranks")
    assert {row[at] for row in pane.table.rows} == {"0 → 1"}


def test_runs_by_number_and_another_recording(tour: Scope) -> None:
    assert tour.compare_view(0, [1, 2]).picker.sides == [[0], [1, 2]]
    pane = tour.compare_view(cachescope.read(cachescope.sample("training")))
    sources = pane.scope.runs.set_index("run")["source"]
    for side, name in zip(pane.picker.sides, ("training", "tour"), strict=True):
        assert {name in sources[run] for run in side} == {True}
    with pytest.raises(CachescopeError, match="the same runs"):
        tour.compare_view(tour)


def test_one_run_has_nothing_beside_it() -> None:
    explorer = scope_of(run(fx("fone", at=0))).explore()
    assert "Only one run" in opened(explorer, "Compare").children[0].value
    assert explorer.frame().equals(explorer.scope.lookups) and explorer.query == "scope.lookups"


def test_a_state_that_names_no_run_says_so(tour: Scope) -> None:
    explorer = tour.explore()
    explorer.state.pane = "Compare"
    explorer.state.compared = ((0,), (99,))
    assert "no run 99" in explorer.state.error
    assert repr(Compare(tour, State(compared=((0,), (1,))))) == "Compare(0 regressed, 8 fixed of 8)"


def changed(*changes: FieldChange) -> tuple[tuple[object, ...], ...]:
    (found,) = (block for block in change_blocks(changes, "scope") if isinstance(block, Table))
    return found.rows


def test_fields_that_changed_alike_share_a_row() -> None:
    fields = [f"example_inputs[{at}]" for at in range(5)]
    parts = (("dtype", "torch.float32", "torch.bfloat16"),)
    alike = [FieldChange(name, "tensor", None, None, "dtype", parts) for name in fields]
    assert changed(*alike, FieldChange("a", "value", "1", "2", "1 -> 2")) == (
        (f"{', '.join(fields[:3])} and 2 more", "dtype", "dtype = torch.float32", "dtype = torch.bfloat16"),
        ("a", "1 -> 2", "1", "2"),
    )


def test_fields_known_by_hashes_alone_do_not_share_a_row() -> None:
    opaque = [FieldChange(name, "opaque", "<bytes>", "<bytes>", "another value") for name in "ab"]
    assert [row[1] for row in changed(*opaque)] == ["another value"] * 2


def test_phases_too_short_to_see_have_no_row(pane: Compare) -> None:
    assert "C++ compiler" in pane.side_by_side.value
    for row in pane.side_by_side.value.split("<tr>"):
        cells = re.findall("<td[^>]*>(.*?)</td>", row)
        assert not cells or not set(cells[1:4:2]) <= {"0 ms", "–"}


def test_rows_name_options_without_what_all_of_them_share(pane: Compare) -> None:
    picked(pane, "A", 2)
    picked(pane, "B", 3)
    assert {row[-1] for row in pane.table.rows} >= {"epilogue_fusion"}
