"""What is read of compiles that were never stored, against what was done to them; `test_accuracy.py` holds every lookup."""

import ast
from pathlib import Path

import pytest
from scenarios import Run
from test_scenarios import read_way
from wild.unsaved import FAILURES, RECORDED, failed_runs

import cachescope
from tests.conftest import Recording

pytestmark = pytest.mark.slow

CASES = [(version, name) for version, names in RECORDED.items() for name in names]
PROGRAMS = Path(__file__).parents[1] / "data" / "record_programs.py"


def told(scope: cachescope.Scope) -> list[Run]:
    runs: list[Run] = [[] for _ in range(len(scope.runs))]
    for row in scope.lookups.itertuples():
        letter = "A" if row.cache == "aotautograd" else "B" if row.direction == "backward" else "F"
        runs[row.run].append(f"{letter} {row.outcome}")
    return runs


@pytest.mark.parametrize(("version", "name"), CASES)
def test_a_failed_compile_says_why_and_no_other_does(version: str, name: str, recording: Recording) -> None:
    lookups = read_way(recording(version, name), "all").lookups
    failed = lookups[lookups["compile_error"].notna()]
    runs = failed_runs(version, name)
    assert set(failed["run"]) == runs
    if runs:
        assert failed["compile_error"].str.contains(FAILURES[name], regex=False).all()
        # The FX graph of a forward is compiled before its backward graph fails, or the writing of the AOTAutograd entry.
        compiled = {"failed_backward": "forward", "entries_not_writable": "inference"}.get(name)
        wanted = lookups[lookups["run"].isin(runs) & (lookups["direction"] != compiled)]
        if name == "interrupted_second":
            wanted = wanted[wanted["function"] == "softmax_rows"]
        assert set(failed["lookup"]) == set(wanted["lookup"])


@pytest.mark.parametrize(("version", "name"), CASES)
def test_a_compile_in_which_a_process_ended_has_no_end(version: str, name: str, recording: Recording) -> None:
    lookups = read_way(recording(version, name), "all").lookups
    unended = lookups[lookups["compile_ended"].eq(False)]
    wanted = {"killed_compiling": ["aotautograd", "fxgraph"], "killed_before_save": ["aotautograd"]}
    wanted["exited_compiling"] = wanted["killed_compiling"]
    assert set(unended["run"]) <= {0}
    assert unended["cache"].tolist() == wanted.get(name, [])


@pytest.mark.parametrize(("version", "name"), CASES)
def test_the_function_is_the_users(version: str, name: str, recording: Recording) -> None:
    lookups = read_way(recording(version, name), "all").lookups
    program = ast.parse(PROGRAMS.read_text())
    lines = {node.name: node.lineno for node in ast.walk(program) if isinstance(node, ast.FunctionDef)}
    assert {Path(file).name for file in lookups["file"]} == {"record_programs.py"}
    named = {"matmul_relu", "softmax_rows"} if name == "interrupted_second" else {"matmul_relu"}
    if set(lookups["function"]) == named:
        assert set(zip(lookups["function"], lookups["line"], strict=True)) == {(f, lines[f]) for f in named}
    else:
        # torch wraps a module of its own: the caller stands for it.
        assert set(lookups["function"]) == {"<lambda>"}


@pytest.mark.parametrize("share", [0.05, 0.3, 0.5, 0.77, 0.99])
def test_a_trace_that_ends_within_a_record_is_cut(share: float, recording: Recording, tmp_path: Path) -> None:
    trace = max((recording("2.13.0", "killed_compiling") / "trace").iterdir(), key=lambda p: p.stat().st_size)
    whole = trace.read_bytes()
    assert not cachescope.read(trace).runs["is_cut"].any()
    path = tmp_path / "cut.log"
    path.write_bytes(whole[: int(len(whole) * share)])
    assert cachescope.read(path).runs["is_cut"].all()
    # At the end of a line within a payload as well.
    at = whole.rindex(b"\n\t", 0, int(len(whole) * share)) + 1
    path.write_bytes(whole[:at])
    assert cachescope.read(path).runs["is_cut"].all()


@pytest.mark.parametrize(("name", "kind"), [
    ("failed_codegen", "failed compile"),
    ("failed_backward", "failed compile"),
    ("entries_not_writable", "not saved"),
    ("read_only_directory", "not saved"),
    ("disk_full", "not saved"),
])  # fmt: skip
def test_what_torch_wrote_down_is_known(name: str, kind: str, recording: Recording) -> None:
    misses = read_way(recording("2.13.0", name), "all").misses
    known = misses[(misses["verdict"] == "entry_unavailable") & (misses["evidence"] == "recorded")]
    assert set(known["kind"]) == {kind}


def test_what_was_cut_is_of_the_trace_in_whose_compile_it_falls(recording: Recording, tmp_path: Path) -> None:
    folder = recording("2.13.0", "interrupted_second")
    text = (folder / "text" / "00_interrupted.log").read_bytes()
    # Only the last lookup is left, of whose graph the trace has nothing.
    (tmp_path / "00_interrupted.log").write_bytes(text[text.rindex(b"FX graph cache hash details") - 200 :])
    scope = cachescope.read(folder / "trace", tmp_path / "00_interrupted.log")
    assert len(scope.runs) == 3
    assert told(scope)[0] == ["A full_miss", "F full_miss", "A full_miss", "F full_miss"]


def test_what_an_interrupted_run_did_not_store_is_not_told_as_deleted(recording: Recording) -> None:
    misses = read_way(recording("2.13.0", "interrupted_second"), "all").misses
    assert "deleted" not in set(misses["kind"])
