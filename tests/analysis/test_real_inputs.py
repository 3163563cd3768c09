"""What is said of inputs that changed, where torch compiles in this test."""

from __future__ import annotations

from pathlib import Path

import pytest

import cachescope
from cachescope.analysis.differences import field_change, field_changes
from tests.analysis.key_advice import changes_advice
from tests.traced import traced

pytestmark = [pytest.mark.torch, pytest.mark.slow]
PROGRAM = Path(__file__).parents[1] / "capture" / "inputs_program.py"


@pytest.fixture(scope="module")
def scope(tmp_path_factory: pytest.TempPathFactory) -> cachescope.Scope:
    folder = tmp_path_factory.mktemp("inputs")
    traced(PROGRAM, folder)
    return cachescope.read(folder / "trace")


def test_a_wider_layer_is_a_change_of_the_model(scope: cachescope.Scope) -> None:
    wider = [
        advice
        for fields, advice in scope.causes[["fields", "advice"]].itertuples(index=False)
        if "example_inputs[3]" in fields
    ]
    assert wider
    for advice in wider:
        assert "A parameter or buffer has another size" in advice
        assert "Pad it" not in advice and "mark_dynamic" not in advice


def test_in_eval_mode_inputs_are_gone_and_no_other_is_to_be_cast(scope: cachescope.Scope) -> None:
    # BatchNorm counts its batches in training alone; the buffers behind that input take its number.
    of_autograd = scope.lookups[scope.lookups["cache"].eq("aotautograd")]
    training, evaluating = of_autograd["detail_set"].iloc[2:4]
    changes = field_changes(scope.tables.hash_details, int(training), int(evaluating))
    kinds = {change.field: change.kind for change in changes}
    assert kinds["example_inputs[5]"] == "gone" and kinds["gm"] == "graph"
    assert "dtype" in {name for change in changes for name, _, _ in change.parts}
    advice = changes_advice(changes) or ""
    assert "The code of the graph changed" in advice
    assert not any(words in advice for words in ("cast it", "another size", "detach()", "memory format"))


def test_a_subclass_is_not_taken_for_a_constant(scope: cachescope.Scope) -> None:
    lookups = scope.lookups
    of_autograd = lookups[lookups["function"].eq("double") & lookups["cache"].eq("aotautograd")]
    plain, subclass = of_autograd["lookup"]
    before, after = (
        scope.hash_details(lookup=lookup).set_index("field").loc["example_inputs[0]"]
        for lookup in (plain, subclass)
    )
    # torch hashes the tensors within, and prints the metadata alone.
    assert before["detail_hash"] != after["detail_hash"]
    assert before["value_text"] == after["value_text"]
    change = field_change("example_inputs[0]", before["value_text"], after["value_text"])
    assert "what a tensor subclass holds" in change.summary
