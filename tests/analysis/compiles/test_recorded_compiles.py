"""Compiles that were recorded and their lookups, against what torch's counters, torch's own log and Python say of them."""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import cachescope
from cachescope.analysis.compiles.frames import value_before, with_lookups
from cachescope.columns import rows_of
from cachescope.frames.compile_rows import CompileRow
from cachescope.frames.recorded_rows import LookupRow
from cachescope.report.compiled import blocks
from cachescope.report.why_missed import summary_text
from cachescope.scope import Scope
from tests import conftest
from tests.conftest import Recording
from tests.truth import processes

_DATA = Path(__file__).parents[2] / "data"
OF_2_4 = _DATA / "compiles" / "2.4.1.tar.xz"
RECORDED = sorted({*(_DATA / "compiles").glob("*.tar.xz")} - {OF_2_4})
_RECOMPILE = re.compile(r"\[(\d+/\d+)\] \[__recompiles\] Recompiling function (\S+) in (.*):(\d+)$")
_GUARD = re.compile(r"\[(\d+/\d+)\] \[__recompiles\]     - (\d+/\d+: .*)$")
_SYMBOL = re.compile(r"\[(\d+/\d+)\] create_symbol (\w+) = (\S+) for (\S+) (\[[^\]]*\]) .*:(\d+) in (\w+) \(")


class Recorded(NamedTuple):
    """A scope of one trace, and what torch and Python say."""

    scope: Scope
    log: str
    counters: dict[str, dict[str, int]]
    places: list[list[Any]]


def unpacked(archive: Path, folder: Path) -> Recorded:
    return of_folder(conftest.unpacked(archive, folder))


def of_folder(folder: Path) -> Recorded:
    facts = json.loads((folder / "facts.json").read_text())
    log = (folder / "torch.log").read_text()
    return Recorded(cachescope.read(folder / "trace"), log, facts["counters"], facts["places"])


@pytest.fixture(scope="module", params=RECORDED, ids=lambda path: path.name.removesuffix(".tar.xz"))
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return unpacked(request.param, tmp_path_factory.mktemp("compiles"))


def check_counts(recorded: Recorded) -> None:
    """``frames``, ``graph_break`` and ``resumes`` of torch._dynamo.utils.counters."""
    compiles, counters = recorded.scope.compiles, recorded.counters
    kinds = Counter(compiles["kind"])
    assert recorded.scope.compile_problems.empty
    assert len(compiles) - kinds["backward"] == counters["frames"]["total"]
    assert len(compiles) - kinds["backward"] - kinds["limit"] == counters["frames"]["ok"]
    assert compiles["graph_breaks"].map(len).sum() == sum(counters["graph_break"].values()) > 0
    # 2.6 does not count them.
    assert kinds["resume"] == sum(counters.get("resumes", {"": 2}).values())
    assert kinds["backward"] == kinds["limit"] == 1
    assert compiles["time_taken_ns"].notna().all()


def check_recompiles(recorded: Recorded) -> None:
    """Each recompile with its place and its guards, as torch prints them with TORCH_LOGS=recompiles."""
    found = filter(None, map(_RECOMPILE.search, recorded.log.split("\n")))
    said = {match[1]: match.groups()[1:] for match in found}
    guards: dict[str, list[str]] = {compile_id: [] for compile_id in said}
    for match in map(_GUARD.search, recorded.log.split("\n")):
        if match:
            guards[match[1]].append(" ".join(match[2].split()))
    found = recorded.scope.compiles
    found = found[found["kind"].isin(["recompile", "limit"])]
    assert len(said) > 10
    assert found["compile_id"].tolist() == list(said)
    for row in found.itertuples():
        assert (row.function, row.file, str(row.line)) == said[row.compile_id]
        assert list(row.recompile_reasons) == guards[row.compile_id]


def check_symbols(recorded: Recorded) -> None:
    """Each symbol, as torch prints it with TORCH_LOGS=dynamic."""
    said = [match.groups() for match in map(_SYMBOL.search, recorded.log.split("\n")) if match]
    columns = ["compile_id", "symbol", "value", "source", "range", "line", "function"]
    found = recorded.scope.symbols[columns].astype(str)
    assert len(said) > 2
    assert list(found.itertuples(index=False, name=None)) == said
    named = recorded.scope.compiles.explode("symbols").dropna(subset="symbols")
    assert list(zip(named["compile_id"], named["symbols"], strict=True)) == [one[:2] for one in said]


def test_a_value_that_became_a_symbol_has_the_one_before(recorded: Recorded) -> None:
    """By hand, from the calls in compile_programs.py: 3 then 5 rows, 2 then 3, 4 then 12 rows; a flag of 1 that became 2."""
    symbols = recorded.scope.symbols
    found = list(zip(symbols["source"], symbols["changed_from"], symbols["value"], strict=True))
    wanted = {("L['x'].size()[0]", "3", "5"), ("L['n']", "2", "3"), ("L['x'].size()[0]", "4", "12")}
    assert set(found) - {("L['self'].flag", "1", "2")} == wanted


def check_places(recorded: Recorded) -> None:
    """The first compile of each function, against its code object."""
    first = recorded.scope.compiles
    first = first[first["kind"] == "first"]
    assert first[["function", "file", "line"]].to_numpy().tolist() == recorded.places
    # Compile ids began again with the last one.
    assert (first["compile_id"].iloc[-1], first["segment"].iloc[-1]) == ("0/0", 2)


CHECKS = (check_counts, check_recompiles, check_symbols, check_places)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_compiles_are_what_torch_and_python_say(check: Any, recorded: Recorded) -> None:
    check(recorded)


def test_compiles_of_torch_2_4_have_their_functions(tmp_path: Path) -> None:
    """No stack of it has the code that is compiled. It records no reasons, no symbols, no graph breaks, and the limit not at all."""
    recorded = unpacked(OF_2_4, tmp_path)
    check_places(recorded)
    compiles = recorded.scope.compiles
    assert len(compiles) == recorded.counters["frames"]["ok"]
    again = compiles[compiles["kind"] == "recompile"]
    said = {match.groups() for match in map(_RECOMPILE.search, recorded.log.split("\n")) if match}
    names = again[["compile_id", "function", "file", "line"]].astype(str)
    (limit,) = said - set(names.itertuples(index=False, name=None))
    assert limit[1] == "limited" and len(names) == len(said) - 1


def lines_of(*texts: str) -> list[int]:
    """The lines of the program that hold some texts, each the first."""
    program = (RECORDED[0].parents[1] / "compile_programs.py").read_text().split("\n")
    return [next(number for number, line in enumerate(program, 1) if text in line) for text in texts]


def test_graph_breaks_have_their_place_and_their_reason(recorded: Recorded) -> None:
    broken = recorded.scope.compiles.explode("graph_breaks").dropna(subset="graph_breaks")
    where = [text.split(": ", 1) for text in broken["graph_breaks"]]
    file = recorded.places[0][1]
    assert [place for place, _ in where] == [f"{file}:{line}" for line in lines_of("print(", "graph_break()")]
    reasons = [line for text in recorded.counters["graph_break"] for line in text.split("\n")]
    # torch 2.6 names the kind of the exception in the trace alone.
    texts = [reason.removeprefix("Unsupported: ") for _, reason in where]
    assert all(any(text == line.strip() for line in reasons) for text in texts)
    assert broken["restarts"].map(len).tolist() == [1, 1]


def test_a_guard_that_fails_with_one_value_after_another_is_one_row(recorded: Recorded) -> None:
    rows = recorded.scope.recompiles
    limited = rows[rows["function"] == "limited"]
    assert limited[["compiles", "limits"]].to_numpy().tolist() == [[7, 1]]
    assert limited["guard"].str.endswith(" == …").all()
    compiles = recorded.scope.compiles
    of_rows = compiles[compiles["kind"].isin(["recompile", "limit"])]
    assert rows["compiles"].sum() + rows["limits"].sum() == len(of_rows)
    assert rows["time_taken_ns"].sum() == of_rows["time_taken_ns"].sum()
    assert rows["time_taken_ns"].is_monotonic_decreasing
    assert len(rows) == 8
    assert "GLOBAL_STATE changed: grad_mode" in set(rows["guard"])


@pytest.mark.torch
def test_compiles_of_a_process_that_runs_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(_DATA)
    from record_kind import compiles as record_into

    recorded = of_folder(record_into(tmp_path))
    for check in CHECKS:
        check(recorded)


SIZE = "tensor 'x' size mismatch at index 1. expected 3, actual 5"


@pytest.mark.parametrize(("source", "value", "reasons", "before"), [
    ("L['x'].size()[1]", "5", [f"0/0: {SIZE}"], "3"),
    ("L['x'].size()[1]", "5", [f"0/0: {SIZE} # return x # a.py:3 in f"], "3"),
    ("L['self']._modules['x'].weight.size()[0]", "5",
     ["2/0: tensor 'self._modules['x'].weight' size mismatch at index 0. expected 4, actual 5"], "4"),
    ("L['f']", "2.5", ["0/0: L['f'] == 1.5"], "1.5"),
    ("L['n']", "-3", ["0/1: len(layers) == 2", "0/0: n == -2 # return x * n"], "-2"),
    ("L['self'].flag", "2", ["0/0: self.flag == 1 # return (HINT: an attribute)"], "1"),
    # Another size, another input, the same number by chance, or nothing of it.
    ("L['x'].size()[0]", "5", [f"0/0: {SIZE}"], None),
    ("L['y'].size()[1]", "5", [f"0/0: {SIZE}"], None),
    ("L['x'].size()[1]", "6", [f"0/0: {SIZE}"], None),
    ("L['n']", "2", ["0/0: n == 2"], None),
    ("L['n']", "2", ["0/0: m.n == 3"], None),
    ("L['n']", "2", ["0/0: text == '3'", "GLOBAL_STATE changed: grad_mode", ""], None),
    (None, "2", ["0/0: n == 3"], None),
    ("L['n']", None, ["0/0: n == 3"], None),
    ("L['n']", "2", [], None),
])  # fmt: skip
def test_value_before(source: str | None, value: str | None, reasons: list[str], before: str | None) -> None:
    assert value_before(source, value, reasons) == before


# With backward graphs that are compiled later, several compiles of a function, a reset of compile ids, compiles that fail.
SCENARIOS = (
    "training", "recompiles", "recompiles_dynamic", "dynamic_guards", "in_process", "failed_backward",
    "bypass_custom_pass",
)  # fmt: skip
QUICK = {("2.13.0", "training"), ("2.13.0", "recompiles")}
VERSIONS = ("2.6.0", "2.10.0", "2.13.0", "2.15.0")
WITH_LOOKUPS = [
    pytest.param(version, name, marks=() if (version, name) in QUICK else pytest.mark.slow)
    for version in VERSIONS
    for name in SCENARIOS
    if (Path(__file__).parents[2] / "data" / "recordings" / version / f"{name}.tar.xz").exists()
]


@pytest.mark.parametrize(("version", "name"), WITH_LOOKUPS)
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
    [one for one in WITH_LOOKUPS if one.values[1] in ("training", "recompiles", "dynamic_guards")],
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
    told = {"segment": segment, "time": time, "is_backward": is_backward}
    return replace(one, lookup=0, run=0, compile_id="0/0_1", **told)


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
