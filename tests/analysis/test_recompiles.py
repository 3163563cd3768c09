"""Functions that real torch compiles again in one process: each cause names the guard that torch says failed, the function and its line."""

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

import cachescope
from cachescope.analysis.differences import FieldChange
from tests.traced import traced

pytestmark = [pytest.mark.torch, pytest.mark.slow]
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
def scope(request: pytest.FixtureRequest, folder: Path) -> cachescope.Scope:
    return cachescope.read(folder / request.param)


def recompiled(scope: cachescope.Scope) -> pd.DataFrame:
    found = scope.misses.merge(scope.lookups[["lookup", "compile_id", "cache"]], on="lookup")
    return found[found["kind"].str.startswith("compiled again: ")]


def test_misses_of_recompiles_say_what_torch_says(
    scope: cachescope.Scope, told: dict[str, re.Match[str]]
) -> None:
    assert agreeing(scope, told) >= 20 and len(told) >= 11


def test_programs_after_those_of_torch_itself_say_what_torch_says(tmp_path: Path) -> None:
    folder = compiled(PROGRAM.with_name("public_recompiles_program.py"), tmp_path)
    told = told_in(folder)
    assert len({one["function"] for one in told.values()}) == 10
    for kind in ("trace", "log"):
        scope = cachescope.read(folder / kind)
        # The last of a function is beyond the limit, and was not compiled.
        assert agreeing(scope, told) >= 2 * (len(told) - 1)
        torch_counts_as_many_misses(scope, folder)
        titles = [row for row in scope.causes["summary"] if row.startswith("compiled again: ")]
        assert {title.split()[2] for title in titles} == {one["function"] for one in told.values()}


def agreeing(scope: cachescope.Scope, told: dict[str, re.Match[str]]) -> int:
    """How many misses of recompiles there are; each says the guard, the function and the line that torch says."""
    missed = scope.lookups[scope.lookups["outcome"].eq("full_miss")]
    again = missed[~missed["compile_id"].str.endswith("/0")]
    found = recompiled(scope)
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
    scope: cachescope.Scope, told: dict[str, re.Match[str]]
) -> None:
    functions = Counter(one["function"] for one in told.values())
    once = [one for one in told.values() if functions[one["function"]] == 1]
    assert len(once) >= 8
    causes = scope.causes.set_index("kind")
    found = recompiled(scope)
    for one in once:
        start = f"compiled again: {one['function']} ({one['file']}): "
        (kind,) = [kind for kind in causes.index if kind.startswith(start)]
        ((_, guard),) = GUARD.findall(one["guards"])
        assert guard.startswith(kind.removeprefix(start).partition(" …")[0])
        # The AOTAutograd lookup and the graph below it are told together.
        assert causes.loc[kind, "misses"] == found["compile_id"].eq(one["compile"]).sum() >= 2
        assert causes.loc[kind, "roots"] == 1


def test_torch_counts_as_many_misses(scope: cachescope.Scope, folder: Path) -> None:
    torch_counts_as_many_misses(scope, folder)


def torch_counts_as_many_misses(scope: cachescope.Scope, folder: Path) -> None:
    counted = json.loads((folder / "counted.json").read_text())
    found = Counter(scope.lookups[scope.lookups["outcome"].eq("full_miss")]["cache"])
    assert found["fxgraph"] == counted["inductor"]["fxgraph_cache_miss"]
    assert found["aotautograd"] == counted["aot_autograd"]["autograd_cache_miss"]


def changes_of(scope: cachescope.Scope, function: str) -> dict[str, FieldChange]:
    lookups = scope.lookups
    is_it = lookups["function"].eq(function) & lookups["compile_id"].str.endswith("/1")
    (lookup,) = lookups[is_it & lookups["cache"].eq("fxgraph")]["lookup"]
    return {change.field: change for change in scope.changes(int(lookup))}


def test_a_symbol_that_is_put_in_moves_no_input(folder: Path) -> None:
    scope = cachescope.read(folder / "trace")
    changes = changes_of(scope, "by_size")
    assert set(changes) == {"gm", "example_inputs[0]", "example_inputs[1]"}
    # The size is an input of its own, before the tensor.
    assert changes["example_inputs[0]"].kind == "new" and "('s" in changes["example_inputs[0]"].summary
    (shape, *_) = changes["example_inputs[1]"].parts
    assert shape[:2] == ("shape", "torch.Size([4, 3])")
    (dtype, *_) = changes_of(scope, "by_dtype")["example_inputs[0]"].parts
    assert dtype == ("dtype", "torch.float32", "torch.float64")
    assert set(changes_of(scope, "by_dtype")) <= {"gm", "example_inputs[0]"}
    assert set(changes_of(scope, "by_global")) == {"gm"}


def test_what_is_no_longer_compiled_is_named(folder: Path) -> None:
    scope = cachescope.read(folder / "trace")
    (failed,) = scope.runs["failed_compiles"].iloc[0]
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
        scope = cachescope.read(*sources)
        missed = scope.misses.merge(scope.lookups[["lookup", "cache", "run"]], on="lookup")
        of_graphs = missed[missed["run"].eq(missed["run"].max()) & missed["cache"].eq("fxgraph")]
        assert len(of_graphs) == 2
        assert set(of_graphs["changed"]) == {("inductor_config[epilogue_fusion]",)}
