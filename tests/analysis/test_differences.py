"""What changed in one field, on what torch really printed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cachescope
from cachescope.analysis.differences import FieldChange, field_change

Recording = Callable[[str, str], Path]


def changes_of(folder: Path, run: int, cache: str) -> dict[str, FieldChange]:
    scope = cachescope.read(folder / "trace")
    lookups = scope.lookups
    (lookup,) = lookups[(lookups["run"] == run) & (lookups["cache"] == cache)]["lookup"]
    return {change.field: change for change in scope.changes(int(lookup))}


@pytest.mark.parametrize(
    ("run", "field", "parts"),
    [
        (1, "example_inputs[0]", {"shape"}),
        (2, "example_inputs[1]", {"dtype"}),
        (2, "example_inputs[0]", {"dtype"}),
        (3, "example_inputs[0]", {"stride"}),
    ],
)
def test_the_part_of_the_tensor_that_changed_is_named(
    run: int, field: str, parts: set[str], recording: Recording
) -> None:
    # Batch size, then dtype, then a transposed input. The first run is nearest to each of them: the run before differs
    # in what it had changed as well.
    change = changes_of(recording("2.13.0", "inputs"), run, "fxgraph")[field]
    assert change.kind == "tensor"
    assert parts <= {name for name, _, _ in change.parts} <= parts | {"memory_format"}


def test_a_config_is_told_as_old_and_new_value(recording: Recording) -> None:
    changes = changes_of(recording("2.13.0", "config_flip"), 1, "fxgraph")
    assert changes["inductor_config[epilogue_fusion]"].summary == "True -> False"


def test_a_graph_is_told_as_a_unified_diff(recording: Recording) -> None:
    diff = changes_of(recording("2.13.0", "graph_relu_tanh"), 1, "fxgraph")["gm"].diff
    assert "-    relu = torch.ops.aten.relu.default(mm);  mm = None" in diff
    assert "+    tanh = torch.ops.aten.tanh.default(mm);  mm = None" in diff


def test_a_constant_is_visible_in_the_diff(recording: Recording) -> None:
    diff = changes_of(recording("2.13.0", "graph_constant"), 1, "aotautograd")["gm"].diff
    assert "1.0" in diff
    assert "2.0" in diff


def test_a_captured_tensor_leaves_the_printed_graph_equal_and_says_so(recording: Recording) -> None:
    change = changes_of(recording("2.13.0", "captured_tensor"), 1, "fxgraph")["gm"]
    assert change.diff == ""
    assert "printed code is equal" in change.summary


def test_bytes_are_called_opaque(recording: Recording) -> None:
    change = changes_of(recording("2.13.0", "autograd_config"), 1, "aotautograd")["autograd_config"]
    assert change.kind == "opaque"
    assert field_change("torch_version", "<bytes>", "<bytes>").kind == "opaque"


def test_a_field_that_is_new_or_gone_says_so() -> None:
    assert field_change("default_dtype", None, "torch.float32").kind == "new"
    assert field_change("default_dtype", "torch.float32", None).kind == "gone"


def test_equal_texts_with_other_hashes_are_not_shown_as_a_change_of_value() -> None:
    change = field_change("x", "<f at 0x7f0000001>", "<f at 0x7f0000002>")
    assert change.kind == "opaque"
    assert "hashes differ" in change.summary


@settings(max_examples=30)
@given(st.text(), st.text())
def test_any_two_texts_give_one_line(before: str, after: str) -> None:
    change = field_change("inductor_config[x]", before, after)
    assert "\n" not in change.summary
    assert len(change.summary) < 1000


LONG = "a" * 400


@pytest.mark.parametrize(
    ("before", "after", "summary"),
    [
        ("1", "2", "1 -> 2"),
        ("", "2", "(empty) -> 2"),
        ("1", "", "1 -> (empty)"),
        ("a  b\nc", "d", "a b c -> d"),
    ],
)
def test_short_values_are_told_whole(before: str, after: str, summary: str) -> None:
    assert field_change("x", before, after).summary == summary


def test_of_long_values_the_place_is_told_where_they_differ() -> None:
    summary = field_change("x", LONG + "one" + LONG, LONG + "two" + LONG).summary
    old, new = summary.split(" -> ")
    assert "one" in old and "two" in new
    assert old.startswith("…a") and old.endswith("a…") and len(old) < 200
    # At the beginning and at the end nothing is left out.
    old, _ = field_change("x", "one" + LONG, "two" + LONG).summary.split(" -> ")
    assert old.startswith("onea") and old.endswith("a…")
    old, _ = field_change("x", LONG + "one", LONG + "two").summary.split(" -> ")
    assert old.startswith("…a") and old.endswith("aone")
