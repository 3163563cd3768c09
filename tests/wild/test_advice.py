"""Every sentence that says what to do, followed with a real torch: its counters show the miss, and then the hit."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import cachescope
from cachescope.analysis.differences import FieldChange, field_changes
from cachescope.analysis.verdicts.causes import AdviceFacts, cause_advice
from cachescope.terms import LOGGERS
from tests.capture.preflights import environment
from tests.programs import ran

pytestmark = [pytest.mark.torch, pytest.mark.sweep]
ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "tests" / "capture" / "advice_program.py"

# What is said where each thing was changed: the words that the steps of the case then follow.
SAID = {
    "dtype": "cast it to one dtype before the compiled call",
    "stride": "bring it to one memory format before the compiled call, with tensor.contiguous(",
    "requires_grad": "pass tensor.detach()",
    "shape": "Pad it to one size, or compile with dynamic=True or torch._dynamo.mark_dynamic(tensor, dim)",
    "shape_marked": "torch._dynamo.mark_dynamic(tensor, dim): one entry then serves many sizes",
    "fixed_size": "With dynamic=True or torch._dynamo.mark_dynamic(tensor, dim) it is symbolic from the first call on",
    "renamed": "A renamed argument or attribute is enough",
    "renamed_local": "Only names in the code of the graph changed",
    "other_graph": "The graph calls the same operators more or less often than before",
    "option": 'Set by options={"epilogue_fusion": …} of torch.compile',
    "config": "by torch._inductor.config.epilogue_fusion; keep it equal in every process",
    "mode": 'mode="max-autotune-no-cudagraphs"',
    "deterministic": "torch.use_deterministic_algorithms(…)",
    "precision": "torch.set_float32_matmul_precision(…)",
    "tag": "Use one tag for processes that should share",
    "functorch": "The options that differ are shown where cachescope itself recorded or predicted both sides",
    "grad_mode": "Set by torch.no_grad(), torch.inference_mode() or torch.set_grad_enabled(…)",
    "autocast": "Set by torch.autocast(…)",
    "default_dtype": "Set by torch.set_default_dtype(…)",
    "threads": "torch.set_num_threads(…) (2.13 and later); set it explicitly",
    "provenance": "switching debugging on changes the key",
    "pass": "a uuid() should change only when its pass does",
    "precompile": "puts a random name into the key",
    "learning_rate": "lr=torch.tensor(…) is passed to the step",
}
# What only AOTAutograd hashes: the FX graph is found.
OF_AUTOGRAD_ALONE = {"renamed", "renamed_local", "functorch", "grad_mode", "precompile"}
# Advice that goes with no changed field, by the verdict and kind of the miss (or the word in torch's reason).
OF_STORED = {
    "other_directory": (
        "entry_unavailable",
        "another directory",
        "to it in every process, or copy the cache there",
    ),
    "deleted": ("entry_unavailable", "graph entry", "prune and copy aotautograd/ and fxgraph/ together"),
    "damaged": ("entry_unavailable", "damaged", "Delete the files under that key"),
    "not_saved": ("entry_unavailable", "not saved", "must be allowed to write there"),
    "custom_pass": ("bypassed", "Unsupported post grad custom pass", "whose uuid() returns something"),
    "freezing": ("bypassed", "mkldnn tensors unpickleable", "Leave torch._inductor.config.freezing off"),
    "fx_off": ("bypassed", "FX graph cache is not enabled", "Leave the FX graph cache on"),
    "force_disabled": ("disabled", "", "torch.compiler.config.force_disable_caches"),
    "guards": ("guard_failed", "", "call it once with a size of each range"),
}


@dataclass(frozen=True)
class Step:
    """One step of the program: torch's counters, and the hash details of its AOTAutograd lookup."""

    case: str
    label: str
    counters: dict[str, int]
    detail_set: int | None = None

    @property
    def is_hit(self) -> bool:
        return self.counters["aot_hit"] == 1 and not self.counters["aot_miss"] + self.counters["fx_miss"]

    @property
    def is_miss(self) -> bool:
        return self.counters["aot_miss"] == 1 and not self.counters["aot_hit"]


def run(folder: Path, cache: Path, *arguments: str, **variables: str) -> list[Step]:
    """Run a group of cases; what torch counted in each step."""
    folder.mkdir(parents=True)
    results = folder / "results.json"
    traced = {"TORCH_TRACE": str(folder / "trace"), "TORCH_LOGS": LOGGERS}
    own = environment(cache, OMP_NUM_THREADS="1", **traced, **variables)
    ran([sys.executable, PROGRAM, results, *arguments], own)
    rows = json.loads(results.read_text(encoding="utf-8"))
    return [Step(row.pop("case"), row.pop("step"), row) for row in rows]


@dataclass(frozen=True)
class Recorded:
    """All steps by case, the fields that changed from the first step to the one that missed, and the file of what was compiled."""

    steps: dict[str, list[Step]]
    changes: dict[str, tuple[FieldChange, ...]]
    files: dict[str, str]


def _by_case(steps: list[Step]) -> dict[str, list[Step]]:
    found: dict[str, list[Step]] = {}
    for step in steps:
        found.setdefault(step.case, []).append(step)
    return found


def _with_changes(folder: Path, steps: list[Step]) -> Recorded:
    scope = cachescope.read(folder / "trace")
    looked_up = scope.lookups[scope.lookups["cache"] == "aotautograd"]
    sets = iter(looked_up[["detail_set", "file"]].itertuples(index=False))
    first: dict[str, int] = {}
    files: dict[str, str] = {}
    changes: dict[str, tuple[FieldChange, ...]] = {}
    for step in steps:
        assert sum(step.counters[name] for name in ("aot_hit", "aot_miss", "aot_bypass")) == 1, step
        detail_set, files[step.case] = next(sets)
        if step.label == "cold":
            first.setdefault(step.case, detail_set)
        elif step.label == "changed":
            found = field_changes(scope.tables.hash_details, first[step.case], detail_set)
            changes.setdefault(step.case, tuple(found))
    assert next(sets, None) is None
    return Recorded(_by_case(steps), changes, files)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Both groups of cases at a time, in a process each."""
    folder = tmp_path_factory.mktemp("advice")
    with ThreadPoolExecutor(2) as pool:
        groups = {
            group: pool.submit(run, folder / group, folder / f"cache-{group}", group)
            for group in ("fields", "stored")
        }
        steps = {group: future.result() for group, future in groups.items()}
    return {
        "fields": _with_changes(folder / "fields", steps["fields"]),
        "stored": Recorded(_by_case(steps["stored"]), {}, {}),
        "reasons": set(cachescope.read(folder / "stored" / "trace").lookups["bypass_reason"].dropna()),
    }


def assert_followed(steps: list[Step]) -> None:
    """Cold and changed steps miss, bypassed ones look nothing up, and all that follow the advice hit."""
    assert {step.label for step in steps} >= {"cold", "followed"}
    for step in steps:
        if step.label == "followed":
            assert step.is_hit, step
        elif step.label == "bypassed":
            assert not step.is_hit and not step.is_miss, step
        else:
            assert step.is_miss, step


@pytest.mark.parametrize("case", SAID)
def test_advice_on_a_changed_field_brings_the_hit(recorded: dict[str, Any], case: str) -> None:
    found = recorded["fields"]
    assert_followed(found.steps[case])
    missed = next(step for step in found.steps[case] if step.label == "changed")
    were_graphs_found = missed.counters["fx_hit"] == 1 and not missed.counters["fx_miss"]
    assert were_graphs_found == (case in OF_AUTOGRAD_ALONE)
    told = {"graphs_below": "equal" if were_graphs_found else "", "file": found.files[case]}
    facts = AdviceFacts("key_changed", changes=found.changes[case], **told)
    advice = cause_advice(facts) or ""
    assert SAID[case] in advice
    assert ("FX graphs below were found" in advice) == were_graphs_found
    # Padding and dynamic shapes are for sizes alone.
    assert ("Pad" in advice) == case.startswith("shape")
    assert ("dynamic=True" in advice) == (case in ("shape", "shape_marked", "fixed_size"))


def test_every_case_of_fields_is_checked(recorded: dict[str, Any]) -> None:
    assert set(recorded["fields"].steps) == set(SAID)


@pytest.mark.parametrize("case", OF_STORED)
def test_advice_on_what_is_not_there_brings_the_hit(recorded: dict[str, Any], case: str) -> None:
    assert_followed(recorded["stored"].steps[case])
    verdict, kind, said = OF_STORED[case]
    assert verdict != "bypassed" or kind in recorded["reasons"]
    facts = AdviceFacts(verdict, kind, cache="fxgraph", bypass_reason=kind if verdict == "bypassed" else None)
    assert said in (cause_advice(facts) or "")


def test_outside_of_fresh_cache_it_is_found(recorded: dict[str, Any]) -> None:
    assert_followed(recorded["stored"].steps["fresh_cache"])
    inside = AdviceFacts("entry_unavailable", "deleted", cache_dir="/tmp/tmpab12_3xy")
    advice = cause_advice(inside) or ""
    assert "compile outside of it" in advice
    for elsewhere in ("/tmp/torchinductor_me", "/data/cache", None):
        facts = AdviceFacts("entry_unavailable", "deleted", cache_dir=elsewhere)
        assert "fresh_cache" not in (cause_advice(facts) or "")


def test_an_entry_of_a_training_graph_is_stored_with_its_backward_graph(recorded: dict[str, Any]) -> None:
    assert_followed(recorded["stored"].steps["no_backward"])
    reason = "the entry of a training graph is written with its backward graph, which was not compiled"
    advice = cause_advice(AdviceFacts("entry_unavailable", "never stored", reason)) or ""
    assert advice.startswith("Call backward() once")


def test_variables_and_the_order_of_sets_are_kept_by_the_environment(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    options = {"TORCHINDUCTOR_COORDINATE_DESCENT_TUNING": "1", "TORCH_COMPILE_CACHE_KEY_TAG": "other"}
    steps: dict[str, list[Step]] = {}
    for number, (label, variables) in enumerate(
        [
            ("cold", {"PYTHONHASHSEED": "1"}),
            ("changed", {"PYTHONHASHSEED": "2", **options}),
            ("changed", {"PYTHONHASHSEED": "2"}),
            ("followed", {"PYTHONHASHSEED": "1"}),
        ]
    ):
        for step in run(tmp_path / str(number), cache, "environment", label, **variables):
            steps.setdefault(step.case, []).append(step)
    # Another seed alone changes nothing but the order of the set.
    assert [step.is_hit for step in steps["variables"]] == [False, False, True, True]
    assert [step.is_hit for step in steps["set"]] == [False, False, False, True]
    first, third = (_set_of(cachescope.read(tmp_path / number / "trace")) for number in "02")
    change = FieldChange("inductor_config[aot_inductor.metadata]", "value", first, third, "")
    advice = cause_advice(AdviceFacts("key_changed", changes=(change,)))
    assert "PYTHONHASHSEED to one value" in (advice or "")


def test_what_a_recompile_says_spares_it(tmp_path: Path) -> None:
    program = ROOT / "tests" / "capture" / "recompile_program.py"

    def graphs(way: str, trace: Path | None = None) -> dict[str, int]:
        traced = {} if trace is None else {"TORCH_TRACE": str(trace)}
        variables = environment(tmp_path / way.replace(" ", "_"), **traced)
        return json.loads(ran([sys.executable, program, way], variables).stdout)  # type: ignore[no-any-return]

    assert graphs("as it is", tmp_path / "trace") == {"sized": 2, "scaled": 2}
    causes = cachescope.read(tmp_path / "trace").causes
    said = {title.split()[2]: advice for title, advice in causes[["summary", "advice"]].dropna().to_numpy()}
    assert "With dynamic=True or torch._dynamo.mark_dynamic(x, 0) it is symbolic" in said["sized"]
    assert "With dynamic=True, or as a tensor, it is one" in said["scaled"]
    assert graphs("dynamic") == graphs("passed") == {"sized": 1, "scaled": 1}


def _set_of(scope: cachescope.Scope) -> str:
    """The option that holds a set, as torch printed it for the second compile."""
    lookup = scope.lookups.loc[scope.lookups["cache"] == "aotautograd", "lookup"].tolist()[1]
    texts = scope.hash_details(lookup=lookup).set_index("field")["value_text"]
    return str(texts["inductor_config[aot_inductor.metadata]"])
