"""What is advised where inputs have other places, or a key lacks a field, where torch compiles in this test."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

import cachescope
from cachescope.analysis.differences import FieldChange, field_changes
from tests.analysis.key_advice import changes_advice
from tests.traced import traced

pytestmark = [pytest.mark.torch, pytest.mark.slow]
PROGRAM = Path(__file__).parents[1] / "capture" / "places_program.py"


@dataclass(frozen=True)
class Recorded:
    """What was read, and how many lookups of each call torch counted as hits."""

    scope: cachescope.Scope
    hits: dict[str, list[int]]

    def changes(self, function: str, *, before: int, after: int) -> list[FieldChange]:
        """What differs between two AOTAutograd lookups of a function."""
        lookups = self.scope.lookups
        is_of_it = (
            lookups["function"].eq(function) & lookups["cache"].eq("aotautograd") & lookups["run"].eq(0)
        )
        sets = lookups.loc[is_of_it, "detail_set"].tolist()
        return field_changes(self.scope.tables.hash_details, int(sets[before]), int(sets[after]))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    folder = tmp_path_factory.mktemp("places")
    first, _ = (traced(PROGRAM, folder, *arguments) for arguments in ([], ["fresh"]))
    return Recorded(cachescope.read(folder / "trace"), json.loads(first.splitlines()[-1]))


def test_an_input_that_changed_its_place_has_no_other_size(recorded: Recorded) -> None:
    # Checkpointing puts the input before the parameters: each place has another size, and no tensor has.
    changes = recorded.changes("layered", before=0, after=1)
    inputs = [change for change in changes if change.field.startswith("example_inputs[")]
    assert len(inputs) > 1 and sorted(str(c.before) for c in inputs) == sorted(str(c.after) for c in inputs)
    advice = changes_advice(changes) or ""
    assert "The code of the graph changed" in advice
    assert not any(words in advice for words in ("size", "dimensions", "memory format"))


def test_a_graph_that_is_not_for_the_cpu_has_no_other_number_of_threads(recorded: Recorded) -> None:
    changes = recorded.changes("on_device", before=0, after=1)
    assert {"cpp_runtime_thread_count": "gone"}.items() <= {c.field: c.kind for c in changes}.items()
    advice = changes_advice(changes) or ""
    assert "another kind of device" in advice
    assert "only if the graph may become C++ code for the CPU" in advice
    assert "OMP_NUM_THREADS" not in advice


def test_a_pass_without_uuid_is_what_takes_its_field_from_the_key(recorded: Recorded) -> None:
    (change,) = recorded.changes("passed", before=0, after=1)
    assert (change.field, change.kind) == ("pre_grad_custom_pass", "gone")
    advice = changes_advice([change]) or ""
    assert "has no uuid()" in advice and "should change only when" not in advice


def test_an_integer_that_became_symbolic_is_no_size(recorded: Recorded) -> None:
    symbolic = changes_advice(recorded.changes("scaled", before=0, after=1)) or ""
    fixed = changes_advice(recorded.changes("scaled", before=1, after=4)) or ""
    assert "An integer input" in symbolic and "symbolic now" in symbolic
    assert "An integer input" in fixed and "torch._dynamo.config.specialize_int" in fixed
    assert not any(
        "mark_dynamic" in advice or "size" in advice.replace("specialize", "") for advice in (symbolic, fixed)
    )
    # "With dynamic=True it is symbolic from the first call on": another number then finds the entry.
    assert recorded.hits["scaled"] == [0, 0, 1, 0]


def test_in_a_fresh_cache_no_variable_leads_to_the_stored_entry(recorded: Recorded) -> None:
    causes = recorded.scope.causes
    elsewhere = causes.loc[causes["kind"].eq("another directory"), "advice"].tolist()
    assert elsewhere
    for advice in elsewhere:
        assert "fresh_cache()" in advice and "of both processes to one directory" not in advice
