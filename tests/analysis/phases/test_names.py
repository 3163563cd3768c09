"""The names of events are those of torch's sources; and of two threads that compile at once, a trace names neither."""

import ast
import json
import re
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import cachescope
from cachescope.analysis.phases.names import PHASES, REST, phase_of
from tests.analysis.phases.replay import events_of, traces_of
from tests.conftest import unpacked

# How often it is called, and what of a name is not in the source.
FILLED = {
    "compile_attempt_{attempt}": "compile_attempt_0",
    "bytecode_hooks_{idx}": "bytecode_hooks_3",
    "{name}_template_autotuning": "mm_template_autotuning",
    "{name}_template_precompiling": "bmm_template_precompiling",
    "pgo.{event_name}": "pgo.put_extra_remote_code_state",
}


def test_an_event_of_no_known_torch_is_in_no_phase() -> None:
    assert phase_of("dynamos") is None
    assert phase_of("gc\n") is None
    assert phase_of("pass." + "x" * 1_000_000) is None


@pytest.mark.parametrize(("event", "phase"), [
    ("bytecode_tracing", "Dynamo tracing"),
    ("entire_frame_compile", REST),
    ("compile_fx.<locals>.bw_compiler", "AOTAutograd"),
    ("pass.pre_grad_passes.group_batch_fusion_passes", "passes before the lookup"),
    ("pass.post_grad_passes.stable_sort", "Inductor passes"),
    ("TritonBenchmarker.benchmark_gpu", "autotuning"),
    ("Benchmarker.benchmark", "autotuning"),
    ("CUDAGraphNode.record", "CUDA graphs"),
    ("pgo.get_remote_code_state", "automatic dynamic shapes (PGO)"),
    # Of torch 2.5 alone.
    ("WrapperCodeGen.generate", "code generation"),
    ("GraphLowering.compile_to_module", "code generation"),
    ("compile_fx_inner", "keys and lookups"),
    ("_compile.compile_inner", REST),
])  # fmt: skip
def test_an_event_is_in_the_phase_that_does_it(event: str, phase: str) -> None:
    found = phase_of(event)
    assert found.name == phase


def test_a_phase_has_one_name() -> None:
    assert len({phase.name for phase in PHASES}) == len(PHASES)


@pytest.mark.torch
def test_every_name_in_the_sources_of_torch_is_in_a_phase() -> None:
    spec = find_spec("torch")
    assert spec is not None and spec.origin is not None
    names = set(_names(Path(spec.origin).parent))
    assert len(names) > 60
    assert {name for name in names if phase_of(FILLED.get(name, name)) is None} == set()


def _names(folder: Path) -> Iterator[str]:
    for part in ("_dynamo", "_inductor", "_functorch", "_higher_order_ops", "fx"):
        for path in (folder / part).rglob("*.py"):
            source = path.read_text(encoding="utf-8")
            if not re.search("dynamo_timed|log_event_start|chromium_event_timed", source):
                continue
            for node in ast.walk(ast.parse(source)):
                if isinstance(node, ast.Call) and _called(node) in (
                    "dynamo_timed",
                    "log_event_start",
                    "dynamo_timed_cudagraph",
                    "chromium_event_timed",
                ):
                    yield from _name(node)


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _name(call: ast.Call) -> Iterator[str]:
    """The name that a call gives to its event; none where it is in a variable."""
    phase = call.args[1:2] + [word.value for word in call.keywords if word.arg == "phase_name"]
    by_name = _called(call) == "dynamo_timed" and phase and isinstance(phase[-1], ast.Constant)
    given: ast.expr = phase[-1] if by_name else call.args[0] if call.args else call
    given = given.value if isinstance(given, ast.NamedExpr) else given
    if isinstance(given, ast.Constant):
        yield str(given.value)
    elif isinstance(given, ast.JoinedStr):
        yield ast.unparse(given)[2:-1]


def test_the_docs_explain_every_phase_and_what_a_hit_skips() -> None:
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "start-up.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([^|]+) \| [^|]{10,} \| (stays|skipped) \|$", page, re.MULTILINE)
    said = {name: word == "skipped" for names, word in rows for name in names.split(", ")}
    assert said == {phase.name: phase.is_skipped_by_hit for phase in PHASES} | {REST: False}


ARCHIVE = Path(__file__).parents[2] / "data" / "threads" / "2.13.0.tar.xz"
# Between the beginning of an event and what torch measures by another clock around it.
SLACK_NS = 60_000_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpacked(ARCHIVE, tmp_path_factory.mktemp("threads"))


@pytest.fixture(scope="module")
def phases(folder: Path) -> pd.DataFrame:
    scope = cachescope.read(folder / "trace")
    assert scope.phase_problems.empty
    return scope.phases


@pytest.fixture(scope="module")
def measured(folder: Path) -> Any:
    return json.loads((folder / "measured.json").read_text())


def test_a_trace_names_no_thread(folder: Path, measured: Any) -> None:
    """What lanes of threads would need: there were two, and the events have one number."""
    assert {thread for _, thread in measured["threads"]} == {"MainThread", "second"}
    (_, trace), *_ = traces_of(folder)
    assert {event["tid"] for event in events_of(trace)} == {0}


def test_compiles_at_once_last_as_long_as_torch_measured(phases: pd.DataFrame, measured: Any) -> None:
    roots = phases[phases["event"].isin(["entire_frame_compile", "entire_backward_compile"])]
    found: Counter[tuple[str, bool]] = Counter()
    for row in roots.itertuples(index=False):
        found[row.compile_id, row.event == "entire_frame_compile"] += row.time_ns
    told = {(one["compile_id"], one["is_forward"]): one["duration_us"] * 1000 for one in measured["compiles"]}
    assert found == pytest.approx(told, abs=SLACK_NS)


def test_every_event_of_threads_has_its_end(phases: pd.DataFrame) -> None:
    assert (phases["unended"] == 0).all()


def test_a_backward_graph_that_waits_takes_none_of_the_time(phases: pd.DataFrame, measured: Any) -> None:
    waits = phases[phases["event"].str.contains("entire_backward_compile|bw_compiler")]
    assert waits["self_time_ns"].sum() < SLACK_NS
    # One works after the other: the second while its function compiles, and again when the first one's backward graph is done.
    first = min(one["start_time_us"] for one in measured["compiles"])
    last = max(one["end_time_us"] for one in measured["compiles"])
    assert phases["self_time_ns"].sum() == pytest.approx((last - first) * 1000, abs=2 * SLACK_NS)
    of = {(one["compile_id"], one["is_forward"]): one for one in measured["compiles"]}
    backward, before = of["1/0", False], of["0/0", False]
    second = of["1/0", True]["duration_us"] + backward["end_time_us"] - before["end_time_us"]
    by_compile = phases.groupby("compile_id")["self_time_ns"].sum()
    assert by_compile["1/0"] == pytest.approx(second * 1000, abs=2 * SLACK_NS)
