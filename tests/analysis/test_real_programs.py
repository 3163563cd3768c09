"""What is said of inputs, of keys that lack a field, and of graphs within graphs, where torch compiles in this test."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import cachescope
from cachescope.analysis.differences import FieldChange, field_change, field_changes
from cachescope.details import HashDetails
from tests.analysis.key_advice import changes_advice
from tests.traced import traced

pytestmark = [pytest.mark.torch, pytest.mark.slow]
PROGRAMS = Path(__file__).parents[1] / "capture"


@pytest.fixture(scope="module")
def scope(tmp_path_factory: pytest.TempPathFactory) -> cachescope.Scope:
    folder = tmp_path_factory.mktemp("inputs")
    traced(PROGRAMS / "inputs_program.py", folder)
    return cachescope.read(folder / "trace")


def test_a_wider_layer_is_a_change_of_the_model(scope: cachescope.Scope) -> None:
    advised = scope.causes[["fields", "advice"]].itertuples(index=False)
    wider = [advice for fields, advice in advised if "example_inputs[3]" in fields]
    assert wider
    for advice in wider:
        assert "A parameter or buffer has another size" in advice
        assert "Pad it" not in advice and "mark_dynamic" not in advice


def test_in_eval_mode_inputs_are_gone_and_no_other_is_to_be_cast(scope: cachescope.Scope) -> None:
    # BatchNorm counts its batches in training alone; the inputs behind that are compared with what they were.
    of_autograd = scope.lookups[scope.lookups["cache"].eq("aotautograd")]
    training, evaluating = of_autograd["detail_set"].iloc[2:4]
    changes = field_changes(scope.tables.hash_details, int(training), int(evaluating))
    kinds = {change.field: change.kind for change in changes}
    assert kinds == {"aot_config": "value", "gm": "graph", "example_inputs[1]": "gone"}
    advice = changes_advice(changes) or ""
    assert "The code of the graph changed" in advice
    assert not any(words in advice for words in ("cast it", "another size", "detach()", "memory format"))


def test_a_subclass_is_not_taken_for_a_constant(scope: cachescope.Scope) -> None:
    lookups = scope.lookups
    of_autograd = lookups[lookups["function"].eq("double") & lookups["cache"].eq("aotautograd")]
    plain, subclass = (scope.hash_details(lookup=one).set_index("field") for one in of_autograd["lookup"])
    before, after = (details.loc["example_inputs[0]"] for details in (plain, subclass))
    # torch hashes the tensors within, and prints the metadata alone.
    assert before["detail_hash"] != after["detail_hash"]
    assert before["value_text"] == after["value_text"]
    change = field_change("example_inputs[0]", before["value_text"], after["value_text"])
    assert "what a tensor subclass holds" in change.summary


@dataclass(frozen=True)
class Recorded:
    """What was read, and how many lookups of each call torch counted as hits."""

    scope: cachescope.Scope
    hits: dict[str, list[int]]

    def changes(self, function: str, *, before: int, after: int) -> list[FieldChange]:
        lookups = self.scope.lookups
        of_function = lookups["function"].eq(function) & lookups["cache"].eq("aotautograd")
        is_of_it = of_function & lookups["run"].eq(0)
        sets = lookups.loc[is_of_it, "detail_set"].tolist()
        return field_changes(self.scope.tables.hash_details, int(sets[before]), int(sets[after]))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    folder = tmp_path_factory.mktemp("places")
    first, _ = (traced(PROGRAMS / "places_program.py", folder, *arguments) for arguments in ([], ["fresh"]))
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
    texts = [advice.replace("specialize", "") for advice in (symbolic, fixed)]
    assert not any("mark_dynamic" in text or "size" in text for text in texts)
    # "With dynamic=True it is symbolic from the first call on": another number then finds the entry.
    assert recorded.hits["scaled"] == [0, 0, 1, 0]


def test_in_a_fresh_cache_no_variable_leads_to_the_stored_entry(recorded: Recorded) -> None:
    causes = recorded.scope.causes
    elsewhere = causes.loc[causes["kind"].eq("another directory"), "advice"].tolist()
    assert elsewhere
    for advice in elsewhere:
        assert "fresh_cache()" in advice and "in every process" not in advice


@pytest.fixture(scope="module")
def forms(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two processes with one cache, the second with another form of each function; the cache is kept as the first left it."""
    folder = tmp_path_factory.mktemp("forms")
    traced(PROGRAMS / "forms_program.py", folder)
    shutil.copytree(folder / "cache", folder / "before")
    traced(PROGRAMS / "forms_program.py", folder, "changed")
    return folder


def test_another_form_of_a_function_is_one_cause(forms: Path) -> None:
    scope = cachescope.read(forms / "trace")
    lookups = scope.lookups[scope.lookups["run"].eq(1)]
    assert set(lookups["outcome"]) == {"full_miss"}
    misses = scope.misses.merge(lookups[["lookup", "function"]], on="lookup")
    causes = scope.causes.set_index("cause").loc[misses["cause"].unique()]
    # Checkpointing leaves one call in the graph above; what is wider is so with gradients and without.
    for _, of_function in misses.groupby("function"):
        assert of_function["cause"].nunique() == 1, of_function.to_string()
    of = {
        function: causes.loc[cause]
        for function, cause in misses[["function", "cause"]].itertuples(index=False)
    }
    assert of["cast"]["fields"] == ("autocast_state[cpu]",)
    assert "the same operators more or less often" in of["layered"]["advice"]
    assert "environment" not in f"{of['layered']['advice']} {of['cast']['advice']}"
    assert not causes["kind"].str.startswith("compiled again").any()


def test_after_a_reset_a_backward_graph_is_of_the_function_of_its_forward_graph(forms: Path) -> None:
    compiles = cachescope.read(forms / "trace").compiles
    own = compiles[compiles["run"].eq(0) & compiles["function"].isin(["late", "after"])]
    assert own[["function", "kind", "compile_id"]].to_numpy().tolist() == [
        ["late", "first", "0/0"], ["after", "first", "0/0"], ["late", "backward", "0/0"],
    ]  # fmt: skip


def test_what_an_entry_was_made_for_is_not_told_as_a_guard(forms: Path) -> None:
    second = max((forms / "trace").iterdir(), key=lambda file: file.stat().st_mtime)
    scope = cachescope.read(forms / "before", second)
    of_function = scope.lookups.loc[scope.lookups["function"].eq("product"), "lookup"]
    misses = scope.misses[scope.misses["lookup"].isin(of_function)]
    assert set(misses["kind"]) == {"", "not known"} and len(misses) == 5


def details_of(factor: float) -> list[str]:
    """What torch writes of a graph that calls another one, as flex attention calls its score_mod."""
    import torch
    from torch._functorch._aot_autograd.autograd_cache import AOTAutogradCachePickler

    inner = torch.fx.symbolic_trace(lambda x: x * factor)
    graph = torch.fx.Graph()
    graph.output(graph.call_module("score_mod_0", (graph.placeholder("x"),)))
    module = torch.fx.GraphModule({"score_mod_0": inner}, graph)
    key: Any = SimpleNamespace(gm=module)
    lines: list[str] = AOTAutogradCachePickler(module).debug_lines(key)
    return lines


def test_a_graph_within_is_named_where_the_printed_code_is_equal() -> None:
    pytest.importorskip("torch")
    details = HashDetails()
    before, after = (details.add(details_of(factor))[0] for factor in (0.5, 0.25))
    assert before is not None and after is not None
    (change,) = field_changes(details, before, after)
    assert (change.field, change.before, change.diff) == ("gm", change.after, "")
    said = "the printed code is equal: the code within score_mod_0, a captured tensor"
    assert change.summary.startswith(said)
    assert "the graphs within it" in (changes_advice([change]) or "")
