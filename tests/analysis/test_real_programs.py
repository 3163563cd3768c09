"""What is said of inputs, of keys that lack a field, of graphs within graphs, and of functions that are compiled again, where torch compiles in this test."""

import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

import cachescope
from cachescope.analysis.differences import FieldChange, field_change, field_changes
from cachescope.details import HashDetails
from tests.analysis.verdicts.test_advice import changes_advice
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
        for function, cause in zip(misses["function"], misses["cause"], strict=True)
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


PROGRAM = Path(__file__).parents[1] / "capture" / "recompiles_program.py"
# What torch logs with TORCH_LOGS=recompiles: the guard that each earlier compile failed.
TOLD = re.compile(
    r"\[(?P<compile>\d+/\d+)\] \[__recompiles\] Recompiling function (?P<function>\S+) in \S+/(?P<file>[^/]+:\d+)\n"
    r"(?P<guards>(?:.*\[__recompiles\]  .*\n)+)"
)
GUARD = re.compile(r"\[__recompiles\]     - (?P<before>\d+/\d+): (?P<guard>.*?) *(?:  .*| # .*| \(HINT.*)?\n")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(PROGRAM, tmp_path_factory.mktemp("recompiles"))


def compiled(program: Path, folder: Path) -> Path:
    (folder / "counted.json").write_text(traced(program, folder).splitlines()[-1])
    return folder


@pytest.fixture(scope="module")
def told(folder: Path) -> dict[str, re.Match[str]]:
    return told_in(folder)


def told_in(folder: Path) -> dict[str, re.Match[str]]:
    """What torch itself says of each recompile, by its compile id."""
    return {match["compile"]: match for match in TOLD.finditer((folder / "log").read_text())}


@pytest.fixture(scope="module", params=["trace", "log"])
def recompiling(request: pytest.FixtureRequest, folder: Path) -> cachescope.Scope:
    return cachescope.read(folder / request.param)


def recompiled(recompiling: cachescope.Scope) -> pd.DataFrame:
    found = recompiling.misses.merge(recompiling.lookups[["lookup", "compile_id", "cache"]], on="lookup")
    return found[found["kind"].str.startswith("compiled again: ")]


def test_misses_of_recompiles_say_what_torch_says(
    recompiling: cachescope.Scope, told: dict[str, re.Match[str]]
) -> None:
    assert agreeing(recompiling, told) >= 20 and len(told) >= 11


def test_programs_after_those_of_torch_itself_say_what_torch_says(tmp_path: Path) -> None:
    folder = compiled(PROGRAM.with_name("public_recompiles_program.py"), tmp_path)
    told = told_in(folder)
    assert len({one["function"] for one in told.values()}) == 10
    for kind in ("trace", "log"):
        recompiling = cachescope.read(folder / kind)
        # The last of a function is beyond the limit, and was not compiled.
        assert agreeing(recompiling, told) >= 2 * (len(told) - 1)
        torch_counts_as_many_misses(recompiling, folder)
        titles = [row for row in recompiling.causes["summary"] if row.startswith("compiled again: ")]
        assert {title.split()[2] for title in titles} == {one["function"] for one in told.values()}


def agreeing(recompiling: cachescope.Scope, told: dict[str, re.Match[str]]) -> int:
    """How many misses of recompiles there are; each says the guard, the function and the line that torch says."""
    missed = recompiling.lookups[recompiling.lookups["outcome"].eq("full_miss")]
    again = missed[~missed["compile_id"].str.endswith("/0")]
    found = recompiled(recompiling)
    assert set(found["lookup"]) == set(again["lookup"])
    for row in found.itertuples():
        by_torch = told[row.compile_id.partition("_")[0]]
        guards = GUARD.findall(by_torch["guards"])
        sentences = [f"a guard of compile {before} failed: {guard}" for before, guard in guards]
        assert any(map(row.reason.startswith, sentences))
        assert f"{by_torch['function']} ({by_torch['file']})" in row.kind
        assert row.evidence == "recorded"
    return len(again)


def test_a_function_with_a_guard_is_one_cause(
    recompiling: cachescope.Scope, told: dict[str, re.Match[str]]
) -> None:
    functions = Counter(one["function"] for one in told.values())
    once = [one for one in told.values() if functions[one["function"]] == 1]
    assert len(once) >= 8
    causes = recompiling.causes.set_index("kind")
    found = recompiled(recompiling)
    for one in once:
        start = f"compiled again: {one['function']} ({one['file']}): "
        (kind,) = [kind for kind in causes.index if kind.startswith(start)]
        ((_, guard),) = GUARD.findall(one["guards"])
        assert guard.startswith(kind.removeprefix(start).partition(" …")[0])
        # The AOTAutograd lookup and the graph below it are told together.
        assert causes.loc[kind, "misses"] == found["compile_id"].eq(one["compile"]).sum() >= 2
        assert causes.loc[kind, "roots"] == 1


def test_torch_counts_as_many_misses(recompiling: cachescope.Scope, folder: Path) -> None:
    torch_counts_as_many_misses(recompiling, folder)


def torch_counts_as_many_misses(recompiling: cachescope.Scope, folder: Path) -> None:
    counted = json.loads((folder / "counted.json").read_text())
    found = Counter(recompiling.lookups[recompiling.lookups["outcome"].eq("full_miss")]["cache"])
    assert found["fxgraph"] == counted["inductor"]["fxgraph_cache_miss"]
    assert found["aotautograd"] == counted["aot_autograd"]["autograd_cache_miss"]


def changes_of(recompiling: cachescope.Scope, function: str) -> dict[str, FieldChange]:
    lookups = recompiling.lookups
    is_it = lookups["function"].eq(function) & lookups["compile_id"].str.endswith("/1")
    (lookup,) = lookups[is_it & lookups["cache"].eq("fxgraph")]["lookup"]
    return {change.field: change for change in recompiling.changes(int(lookup))}


def test_a_symbol_that_is_put_in_moves_no_input(folder: Path) -> None:
    recompiling = cachescope.read(folder / "trace")
    changes = changes_of(recompiling, "by_size")
    assert set(changes) == {"gm", "example_inputs[0]", "example_inputs[1]"}
    # The size is an input of its own, before the tensor.
    assert changes["example_inputs[0]"].kind == "new" and "('s" in changes["example_inputs[0]"].summary
    (shape, *_) = changes["example_inputs[1]"].parts
    assert shape[:2] == ("shape", "torch.Size([4, 3])")
    (dtype, *_) = changes_of(recompiling, "by_dtype")["example_inputs[0]"].parts
    assert dtype == ("dtype", "torch.float32", "torch.float64")
    assert set(changes_of(recompiling, "by_dtype")) <= {"gm", "example_inputs[0]"}
    assert set(changes_of(recompiling, "by_global")) == {"gm"}


def test_what_is_no_longer_compiled_is_named(folder: Path) -> None:
    recompiling = cachescope.read(folder / "trace")
    (failed,) = recompiling.runs["failed_compiles"].iloc[0]
    place = r"by_too_many_sizes \(\S+recompiles_program\.py:\d+\)"
    assert re.fullmatch(rf"{place}: .*recompile limit exceeded", failed)
    command = [sys.executable, "-m", "cachescope", "explain", folder / "trace"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "compiles failed" in done.stdout and "recompile limit exceeded" in done.stdout


def test_where_another_process_had_equal_inputs_no_guard_is_to_blame(tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    for folder, option in ((before, "on"), (after, "off")):
        folder.mkdir()
        # The second process calls it in the other order: its compile ids are others.
        dtypes = ("float32", "float64") if option == "on" else ("float64", "float32")
        traced(PROGRAM.with_name("two_dtypes_program.py"), folder, option, *dtypes)
    for sources in ((before / "trace", after / "trace"), (after / "trace", before / "cache")):
        recompiling = cachescope.read(*sources)
        missed = recompiling.misses.merge(recompiling.lookups[["lookup", "cache", "run"]], on="lookup")
        of_graphs = missed[missed["run"].eq(missed["run"].max()) & missed["cache"].eq("fxgraph")]
        assert len(of_graphs) == 2
        assert set(of_graphs["changed"]) == {("inductor_config[epilogue_fusion]",)}
