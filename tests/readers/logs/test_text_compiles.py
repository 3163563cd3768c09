"""The compiles that text logs tell of, beside the traces of the same processes."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cachescope
from cachescope.readers.logs.compiled_frames import graph_break
from cachescope.report.terminal import terminal_lines
from cachescope.report.why_missed import answer_blocks
from tests import conftest
from tests.programs import ran

DATA = Path(__file__).parents[2] / "data"
RECORDED = sorted((DATA / "compiles").glob("*.tar.xz"))
PLACE = ["compile_id", "segment", "kind", "function", "file", "line"]
SAID = [*PLACE, "recompile_reasons", "graph_breaks"]


@pytest.fixture(scope="module", params=RECORDED, ids=lambda path: path.name.removesuffix(".tar.xz"))
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace and a log with TORCH_LOGS=recompiles of one process."""
    return conftest.unpacked(request.param, tmp_path_factory.mktemp("compiles"))


def rows(compiles: pd.DataFrame, columns: list[str], *kinds: str) -> list[tuple[Any, ...]]:
    some = compiles[compiles["kind"].isin(kinds)] if kinds else compiles[compiles["kind"] != "backward"]
    return list(some[columns].itertuples(index=False, name=None))


def test_recompiles_are_those_of_the_trace(folder: Path) -> None:
    in_trace, in_log = (cachescope.read(folder / name).compiles for name in ("trace", "torch.log"))
    wanted = rows(in_trace, PLACE, "recompile")
    assert len(wanted) >= 13
    assert rows(in_log, PLACE, "recompile") == wanted
    # Neither first compiles nor graph breaks are logged by it.
    assert set(in_log["kind"]) == {"recompile", "limit"}
    assert in_log["start_time"].notna().all() and in_log["time_taken_ns"].isna().all()
    limits = in_log[in_log["kind"] == "limit"]
    assert limits["function"].tolist() == ["limited"]
    assert limits["error"].str.contains("_limit (8)", regex=False).all()
    if (
        folder.name == "2.4.1"
    ):  # its trace has neither reasons nor the limit, its log no compile before a guard
        assert [one[0] for one in in_log["recompile_reasons"]][:2] == [
            "tensor 'L['x']' size mismatch at index 0. expected 3, actual 5",
            "L['n'] == 2",
        ]
    else:
        columns = [*PLACE, "recompile_reasons"]
        assert rows(in_log, columns, "recompile", "limit") == rows(in_trace, columns, "recompile", "limit")


def test_the_limit_stands_in_a_log_of_the_default_level(folder: Path, tmp_path: Path) -> None:
    log = tmp_path / "stderr.txt"
    lines = (folder / "torch.log").read_text().splitlines(keepends=True)
    log.write_text("step 1\n" + "".join(line for line in lines if line.startswith("W")))
    scope = cachescope.read(log)
    whole = cachescope.read(folder / "torch.log").compiles
    columns = [name for name in PLACE if name != "segment"]
    assert rows(scope.compiles, columns) == rows(whole, columns, "limit")
    # It gives one of the reasons: the latest, or before 2.6 the first.
    (reason,) = scope.compiles["recompile_reasons"]
    (reasons,) = whole.query("kind == 'limit'")["recompile_reasons"]
    assert len(reasons) == len({*reasons}) and set(reason) < set(reasons)
    said = " ".join(line.text for line in terminal_lines(answer_blocks(scope)))
    assert "the recompile limit was reached once" in said and "TORCH_TRACE" in said


def test_a_trace_of_the_process_tells_more(folder: Path) -> None:
    both, trace = cachescope.read(folder / "trace", folder / "torch.log"), cachescope.read(folder / "trace")
    assert len(both.runs) == 1
    pd.testing.assert_frame_equal(both.compiles, trace.compiles)


def test_logs_of_one_process_are_one_run(folder: Path, tmp_path: Path) -> None:
    """Recompiles went to one file, the lookups of the same process to another."""
    places = conftest.unpacked(DATA / "places" / "2.13.0.tar.xz", tmp_path / "places") / "torch.log"
    lines = places.read_text().splitlines(keepends=True)
    for name, some in (
        ("a", [x for x in lines if "Step 1" in x]),
        ("b", [x for x in lines if "Step 1" not in x]),
    ):
        (tmp_path / name).write_text("".join(some))
    together = cachescope.read(tmp_path / "a", tmp_path / "b")
    assert len(together.runs) == 1 and len(together.runs["sources"][0]) == 2
    assert rows(together.compiles, PLACE) == rows(cachescope.read(places).compiles, PLACE)
    assert len(together.lookups) == len(cachescope.read(places).lookups) > 5


def test_the_index_keeps_them(own_index: Path, parsed: list[str], folder: Path) -> None:
    log = folder / "torch.log"
    first, again = cachescope.read(log).compiles, cachescope.read(log).compiles
    assert parsed == [str(log)] and len(again) >= 14
    pd.testing.assert_frame_equal(first, again)


def test_the_folder_of_a_fleet_keeps_them(folder: Path, tmp_path: Path) -> None:
    log = folder / "torch.log"
    assert cachescope.collect(log, folder=tmp_path / "fleet") == 1
    of_fleet, alone = cachescope.read(tmp_path / "fleet").compiles, cachescope.read(log).compiles
    pd.testing.assert_frame_equal(of_fleet, alone)
    assert len(alone) >= 14


BREAKS = sorted((DATA / "breaks").glob("*.tar.xz"))
# Where the graph of each function breaks, by hand: the text of the line.
BREAK_AT = {
    "calls": 'print("a break")',
    "loops": 'print("in a loop"',
    "opens": "with open(",
    "raises": "except* ValueError:",
    "torch_dynamo_resume_in_opens_at_34": "with open(",
}


@pytest.mark.parametrize("archive", BREAKS, ids=lambda path: path.name.removesuffix(".tar.xz"))
def test_graph_breaks_have_their_place_in_every_release(archive: Path, tmp_path: Path) -> None:
    folder = conftest.unpacked(archive, tmp_path)
    in_trace, in_log = (cachescope.read(folder / name).compiles for name in ("trace", "torch.log"))
    assert rows(in_log, PLACE) == rows(in_trace, PLACE)
    program = (DATA / "break_programs.py").read_text().split("\n")
    numbered = list(enumerate(program, 1))
    lines = {name: next(n for n, line in numbered if text in line) for name, text in BREAK_AT.items()}
    sides = [in_log]
    if archive.name != "2.5.1.tar.xz":  # before 2.6 traces have none
        assert rows(in_log, SAID) == rows(in_trace, SAID)
        sides.append(in_trace)
    for compiles in sides:
        of_function = compiles.explode("graph_breaks").dropna(subset="graph_breaks")
        found = {
            row.function: row.graph_breaks.removeprefix(f"{row.file}:").partition(": ")
            for row in of_function.itertuples()
        }
        # In a function that is inlined, the second break at a line is told in short; before 2.6 at DEBUG alone.
        found.pop("printed", None)
        assert {name: int(line) for name, (line, _, _) in found.items()} == lines
        assert all(reason.strip() and not reason.startswith("Graph") for _, _, reason in found.values())
    counted = json.loads((folder / "facts.json").read_text())["counters"]["graph_break"]
    reasons = {text.partition("\n")[0].removeprefix("Unsupported: ") for text in counted}
    texts = in_log["graph_breaks"].explode().dropna()
    assert reasons and all(any(reason in text for text in texts) for reason in reasons)


def test_a_function_left_to_python_has_its_innermost_line() -> None:
    """In the words of torch/_dynamo/convert_frame.py, `ConvertFrame.__call__`, 2.10 and later."""
    text = """Graph break: torch.compile cannot properly resume from this graph break, which results in a skip.
torch.compile will skip tracing the frame f (a.py line 3) and fall back to eager.
The graph break occurred in the following user code:
  File "/x/a.py", line 4, in f
    y = g(x)
  File "/x/b.py", line 9, in g
    print(1)

Traceback (most recent call last):
  File "/torch/_dynamo/convert_frame.py", line 2319, in __call__
torch._dynamo.exc.Unsupported: Failed to trace builtin operator
  Explanation: Reason: none
"""
    assert graph_break(text) == "/x/b.py:9: Failed to trace builtin operator"


@given(
    st.text(),
    st.sampled_from(
        [
            "Graph break: from user code at:\n",
            "Graph break in user code at ",
            "Graph break (a) in user code at a.py:3\n",
        ]
    ),
)
def test_any_text_may_follow(text: str, beginning: str) -> None:
    found = graph_break(beginning + text)
    assert "\n" not in found


@pytest.mark.torch
def test_all_loggers_tell_what_the_trace_does(tmp_path: Path) -> None:
    """First compiles, resumed functions, attempts after a graph break, ids that begin again."""
    log = tmp_path / "torch.log"
    loggers = "dynamo,recompiles,graph_breaks"
    logged = {"TORCH_TRACE": str(tmp_path / "trace"), "TORCH_LOGS": loggers, "TORCH_LOGS_OUT": str(log)}
    program = [sys.executable, str(DATA / "compile_programs.py"), str(tmp_path / "facts.json")]
    ran(program, os.environ | logged)
    in_trace, in_log = cachescope.read(tmp_path / "trace").compiles, cachescope.read(log).compiles
    assert rows(in_log, SAID) == rows(in_trace, SAID)
    counters = json.loads((tmp_path / "facts.json").read_text())["counters"]
    assert len(in_log) == counters["frames"]["total"]
    assert in_log["graph_breaks"].map(len).sum() == sum(counters["graph_break"].values()) > 0


def test_the_guard_of_the_compile_that_is_alike_is_told(tmp_path: Path) -> None:
    """What torch 2.13 logs of a model of timm that is trained and evaluated at three resolutions, one after the other."""
    mode = "GLOBAL_STATE changed: grad_mode"
    size = "tensor 'x' size mismatch at index 2. expected {}, actual {}".format
    failed = [
        [mode],
        [mode, size(32, 64)],
        [mode, size(32, 64), mode],
        [mode, size(64, 48), mode, size(32, 48)],
        [mode, size(64, 48), mode, size(32, 48), mode],
    ]
    lines = []
    for number, guards in enumerate(failed, 1):
        head = (
            f"V1129 00:02:{number:02}.158000 20352 torch/_dynamo/guards.py:5396] [0/{number}] [__recompiles] "
        )
        lines += [f"{head}Recompiling function forward in /timm/vision_transformer.py:1344"]
        lines += [f"{head}    triggered by the following guard failure(s):"]
        lines += [f"{head}    - 0/{number - 1 - back}: {guard}" for back, guard in enumerate(guards)]
    (tmp_path / "log").write_text("\n".join(lines) + "\n")
    rows = cachescope.read(tmp_path / "log").recompiles
    told = dict(zip(rows["guard"], rows["compile_ids"], strict=True))
    # At a resolution that is not new the mode is, or both are known: then it is the latest.
    assert told == {mode: ("0/1", "0/3", "0/5"), size("…", "…"): ("0/2", "0/4")}
