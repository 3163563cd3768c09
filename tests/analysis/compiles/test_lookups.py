"""The lookups of each compile, in recordings: against torch's counters, and the code that both were made for."""

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import cachescope
from cachescope.analysis.compiles.frames import with_lookups
from cachescope.columns import rows_of
from cachescope.frames.compile_rows import CompileRow
from cachescope.frames.recorded_rows import LookupRow
from cachescope.report.compiled import blocks
from cachescope.report.why_missed import summary_text
from tests.conftest import Recording
from tests.truth import processes

# With backward graphs that are compiled later, several compiles of a function, a reset of compile ids, compiles that fail.
SCENARIOS = (
    "training", "recompiles", "recompiles_dynamic", "dynamic_guards", "in_process", "failed_backward",
    "bypass_custom_pass",
)  # fmt: skip
QUICK = {("2.13.0", "training"), ("2.13.0", "recompiles")}
VERSIONS = ("2.6.0", "2.10.0", "2.13.0", "2.15.0")
RECORDED = [
    pytest.param(version, name, marks=() if (version, name) in QUICK else pytest.mark.slow)
    for version in VERSIONS
    for name in SCENARIOS
    if (Path(__file__).parents[2] / "data" / "recordings" / version / f"{name}.tar.xz").exists()
]


@pytest.mark.parametrize(("version", "name"), RECORDED)
def test_each_lookup_is_in_one_compile_of_its_code(version: str, name: str, recording: Recording) -> None:
    scope = cachescope.read(recording(version, name) / "trace")
    lookups, compiles = scope.lookups, scope.compiles
    of_compiles = compiles.explode("lookups").dropna(subset="lookups")
    assert sorted(of_compiles["lookups"]) == lookups["lookup"].tolist() != []
    both = of_compiles.merge(lookups, left_on="lookups", right_on="lookup", suffixes=("", "_of_lookup"))
    for column in ("run", "segment", "function", "file", "line"):
        assert both[column].equals(both[f"{column}_of_lookup"]), column
    assert both["compile_id"].tolist() == both["compile_id_of_lookup"].str.split("_").str[0].tolist()
    # What has no operator goes to no compiler.
    assert (both["operators"][both["kind"] != "backward"].dropna() > 0).all()
    compiled_later = both["kind"] == "backward"
    assert (both["direction"][compiled_later] == "backward").all()
    backward = compiles[compiles["kind"] == "backward"][["run", "compile_id", "segment"]]
    has_backward = set(backward.itertuples(index=False, name=None))
    backward = both[both["direction"] == "backward"]
    names = backward[["run", "compile_id", "segment"]].itertuples(index=False, name=None)
    assert [name in has_backward for name in names] == (backward["kind"] == "backward").tolist()


@pytest.mark.parametrize(
    ("version", "name"),
    [one for one in RECORDED if one.values[1] in ("training", "recompiles", "dynamic_guards")],
)
def test_counts_are_torchs_counters(version: str, name: str, recording: Recording) -> None:
    folder = recording(version, name)
    steps = processes(folder, version, name)
    scope = cachescope.read(folder / "trace")
    pids = scope.runs.set_index("pid")["run"]
    assert len(steps) > 1
    for step in steps:
        of_run = scope.compiles[scope.compiles["run"] == pids[step["pid"]]]
        counted = step["counted"]
        # An entry of AOTAutograd brings its FX graphs.
        assert of_run["hits"].sum() == counted["aotautograd hit"] + counted["fxgraph hit"]
        told = of_run.explode("lookups").merge(scope.lookups, left_on="lookups", right_on="lookup")
        missed = (told["cache"] == "aotautograd") & told["outcome"].isin(["full_miss", "guard_miss"])
        assert missed.sum() == counted["aotautograd miss"]
        assert of_run[["hits", "full_misses", "guard_misses", "bypasses"]].sum().sum() == len(told)


_NO_OPERATOR = """
import sys
import torch
from torch._dynamo.utils import counters

def no_operator(x, y):
    print("a graph break")
    return y, x

def with_one(x, y):
    return no_operator(x + 1, y)

one, other = torch.ones(4), torch.ones(8)
for name in sys.argv[1:]:
    torch.compile(globals()[name])(one, other)
print(counters["stats"]["unique_graphs"])
"""


def run_with_trace(program: str, trace: Path, *arguments: str, **variables: str) -> str:
    """What a program prints in its last line, which is recorded with real torch."""
    cache = str(trace.parent / "cache")
    environment = os.environ | {"TORCH_TRACE": str(trace), "TORCHINDUCTOR_CACHE_DIR": cache}
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, env=environment | variables, capture_output=True, text=True, check=True)
    return done.stdout.split("\n")[-2]


@pytest.mark.torch
def test_without_an_operator_there_is_nothing_to_look_up(tmp_path: Path) -> None:
    """torch's own count of graphs is the truth; of a log that is cut before its first graph nothing of the kind is said."""

    def said(*functions: str) -> tuple[str, Path]:
        trace = tmp_path / "_".join(functions)
        assert run_with_trace(_NO_OPERATOR, trace, *functions) == str(len(functions) - 1)
        (log,) = trace.iterdir()
        return summary_text(cachescope.read(log)), log

    none, log = said("no_operator")
    assert re.search(r"found no operator to compile in \d frames\. Graph breaks: .*<string>:7: ", none)
    # Its cache directory is empty.
    (tmp_path / "empty").mkdir()
    assert summary_text(cachescope.read(log, tmp_path / "empty")).startswith(none.partition(" (")[0])
    some, log = said("no_operator", "with_one")
    assert "no lookup" not in some
    whole = log.read_bytes()
    log.write_bytes(whole[: whole.index(b'"dynamo_output_graph"')])
    cut = summary_text(cachescope.read(log))
    assert "no lookup is recorded in 1 run" in cut and "no operator" not in cut


_BACKEND = """
import sys
import torch
import torch._inductor.metrics
from torch._dynamo.utils import counters

@torch.compile(backend=sys.argv[1])
def forward(x):
    return torch.relu(x) * 2

forward(torch.ones(4, requires_grad=True)).sum().backward()
print(counters["stats"]["unique_graphs"], torch._inductor.metrics.generated_kernel_count > 0)
"""


@pytest.mark.torch
@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_what_compiled_without_a_lookup_is_told(tmp_path: Path, backend: str) -> None:
    """Whether Inductor compiled is in torch's own count of kernels. Before torch 2.6, no record tells that caching is off: here they are taken out."""
    printed = run_with_trace(_BACKEND, tmp_path / "trace", backend, TORCHINDUCTOR_FORCE_DISABLE_CACHES="1")
    (log,) = (tmp_path / "trace").iterdir()
    recorded, count = re.subn(rb'\n\t*"cache_state": "disabled",?', b"", log.read_bytes())
    log.write_bytes(recorded)
    said = summary_text(cachescope.read(log))
    if backend == "inductor":
        assert printed == "1 True" and count
        assert "Inductor compiled 1 frame without a lookup: caching was off" in said
    else:
        assert printed == "1 False" and not count
        assert "a backend that asks none of torch's caches compiled 1 frame" in said
    # A record that is lost may be one of Inductor, or of a lookup.
    log.write_bytes(recorded.replace(b"chromium_event", b"chromium_evnt\xff", 1)[:-40])
    said = summary_text(cachescope.read(log))
    assert "its log is damaged or cut, so that some may be lost; or caching was off" in said


_PRECOMPILED = """
import torch
from torch._dynamo.utils import counters

torch._dynamo.config.caching_precompile = True

def forward(x):
    return torch.relu(x) * 2

torch.compile(forward)(torch.ones(4))
torch.compiler.save_cache_artifacts()
print(counters["dynamo_cache"]["dynamo_cache_hit"], counters["stats"]["unique_graphs"])
"""


@pytest.mark.torch
def test_what_a_package_brought_is_called_loaded(tmp_path: Path) -> None:
    """Torch counts packages that it found, and graphs that it made."""
    for name, counted in (("cold", "0 1"), ("warm", "1 0")):
        trace = tmp_path / name
        assert run_with_trace(_PRECOMPILED, trace) == counted
    said = summary_text(cachescope.read(trace))
    assert "graphs were loaded from a package, which asks no cache" in said
    assert "1 loaded from a package, not compiled" in str(blocks(cachescope.read(trace), 10, ""))


def row(kind: str, segment: int = 1, start: int | None = None, taken: int | None = None) -> CompileRow:
    return CompileRow(0, "0/0", segment, kind, None, None, None, start, taken, (), (), (), (), None)


def lookup(segment: int = 1, time: int | None = None, is_backward: bool | None = False) -> LookupRow:
    """A lookup made by hand, in compile 0/0."""
    (one,) = rows_of(cachescope.read(cachescope.sample("config_flip")).lookups[:1], LookupRow)
    return replace(
        one, lookup=0, run=0, compile_id="0/0_1", segment=segment, time=time, is_backward=is_backward
    )


@pytest.mark.parametrize(("compiles", "of_lookup", "place"), [
    # A log that has lost whether the graph is a backward graph: the time may tell.
    ([row("first", 1, 10, 5), row("backward", 1, 20, 5)], lookup(time=12, is_backward=None), 0),
    ([row("first", 1, 10, 5), row("backward", 1, 20, 5)], lookup(is_backward=None), None),
    ([row("first", 1, 10, 5), row("backward", 1, 20, 5)], lookup(is_backward=True), 1),
    ([row("first", 1, 10, 5)], lookup(is_backward=True), 0),
    ([row("first")], lookup(is_backward=None), 0),
    ([row("backward")], lookup(is_backward=False), None),
    # Only a text log has it: of several compiles with one id the time alone tells.
    ([row("first", 1, 10, 5), row("first", 2, 20, 5)], lookup(segment=0, time=21), 1),
    ([row("first", 1, 10, 5), row("first", 2, 20, 5)], lookup(segment=0, time=17), None),
    ([row("first", 1)], lookup(segment=0, time=17), None),
    ([row("first", 2)], lookup(segment=1), None),
])  # fmt: skip
def test_a_lookup_belongs_to_the_one_compile_that_it_can_be_of(
    compiles: list[CompileRow], of_lookup: LookupRow, place: int | None
) -> None:
    found = with_lookups(compiles, [of_lookup])
    assert [at for at, one in enumerate(found) if one.lookups] == ([] if place is None else [place])
    assert [one.hits is None for one in found] == [not one.lookups for one in found]
