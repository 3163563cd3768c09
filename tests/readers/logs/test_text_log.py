"""Text logs: every form of the prefix, several processes in one file, values over many lines, raw bytes, where code and caches are, and compiles."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cachescope
from cachescope.columns import records
from cachescope.errors import SourceError
from cachescope.readers.kinds import looks_like_text_log
from cachescope.readers.logs.compiled_frames import graph_break
from cachescope.readers.logs.text_log import TEXT
from cachescope.readers.reading import Reading
from cachescope.report.terminal import terminal_lines
from cachescope.report.why_missed import answer_blocks
from tests import conftest
from tests.conftest import DATA, Archive, Recording
from tests.programs import ran
from tests.readings import read_by, read_once


@pytest.fixture(scope="module")
def cold(recording: Recording) -> bytes:
    return (recording("2.13.0", "cold_warm") / "text" / "00_cold.log").read_bytes()


def read(data: bytes, folder: Path) -> Reading:
    path = folder / "text.log"
    path.write_bytes(data)
    return read_by(TEXT.read, str(path))


def told(reading: Reading) -> list[list[tuple[object, ...]]]:
    def details(code: int | None) -> tuple[object, ...] | None:
        return None if code is None else tuple(reading.details.details(code))

    return [
        [(x.cache, x.cache_key, x.outcome, x.compile_id, details(x.detail_set)) for x in process.lookups]
        for process in reading.processes
    ]


def with_lead(data: bytes, lead: bytes, end: bytes = b"") -> bytes:
    return b"\n".join(lead + line + end if line else line for line in data.split(b"\n"))


def with_line_numbers(data: bytes) -> bytes:
    """As ``grep -n`` prints lines."""
    return b"\n".join(b"%d:%s" % numbered for numbered in enumerate(data.split(b"\n"), 1))


def with_noise(data: bytes) -> bytes:
    noise = b"step 3: loss 0.25 [x] \x00 \x1b[31m"
    return b"\n".join(part for line in data.split(b"\n") for part in (line, noise))


def behind_a_bar(data: bytes) -> bytes:
    bar = b"\r 40%|####      | 4/10 [00:01<00:02,  2.9it/s]"
    lines = data.split(b"\n")
    return b"\n".join(bar + line if n % 7 == 0 and line else line for n, line in enumerate(lines))


def in_a_notebook(data: bytes) -> bytes:
    lines = data.decode("utf-8", "backslashreplace").splitlines(keepends=True)
    outputs = [{"name": "stderr", "output_type": "stream", "text": part} for part in (lines[:40], lines[40:])]
    notebook = {"cells": [{"cell_type": "code", "outputs": outputs}], "nbformat": 4}
    return json.dumps(notebook, indent=1).encode()


def in_cloud_logging(data: bytes) -> bytes:
    lines = data.decode("utf-8", "backslashreplace").split("\n")
    return b"\n".join(json.dumps({"insertId": "x", "jsonPayload": {"message": i}}).encode() for i in lines)


@pytest.mark.parametrize("changed", [
    lambda data: with_lead(data, b"[rank3]:"),
    lambda data: with_lead(data, b"[default0]:[rank0]:"),
    lambda data: with_lead(data, b"[default1]: "),
    lambda data: with_lead(data, b"0: "),
    lambda data: with_lead(data, b"\x1b[36m", b"\x1b[0m"),
    lambda data: with_lead(data, b"2026-11-20T15:24:13.1Z stderr F "),
    with_line_numbers,
    with_noise,
    behind_a_bar,
    in_a_notebook,
    in_cloud_logging,
])  # fmt: skip
def test_what_launchers_and_programs_write_around_a_line_changes_nothing(
    changed: Callable[[bytes], bytes], cold: bytes, tmp_path: Path
) -> None:
    assert told(read(changed(cold), tmp_path)) == told(read(cold, tmp_path))


def test_without_a_trace_id_a_hash_is_not_taken_for_one(cold: bytes, tmp_path: Path) -> None:
    (with_ids,), (without,) = told(read(cold, tmp_path)), told(read(cold.replace(b" [0/0] ", b" "), tmp_path))
    assert [(row[0], row[1], row[4]) for row in without] == [(row[0], row[1], row[4]) for row in with_ids]


def test_a_log_cut_in_mid_record_keeps_what_came_before(cold: bytes, tmp_path: Path) -> None:
    cut = cold[: cold.index(b"FX graph cache hash details") + 40_000]
    reading = read(cut, tmp_path)
    (lookups,) = told(reading)
    assert [(row[0], row[2]) for row in lookups] == [("aotautograd", "full_miss"), ("fxgraph", "unknown")]
    assert [problem.kind for problem in reading.problems] == ["truncated"]


@pytest.mark.parametrize("data", [b"", b"\x00\xff" * 500, b"Epoch 1\nEpoch 2\n"])
def test_what_is_no_log_of_torch_is_refused_in_one_line(data: bytes, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no line of torch's logs"):
        read(data, tmp_path)
    assert not looks_like_text_log(data)


def test_without_debug_records_the_lookups_are_told_in_order_and_nothing_is_made_up(
    recording: Recording, tmp_path: Path
) -> None:
    for log in (recording("2.13.0", "config_flip") / "text").iterdir():
        lines = [line for line in log.read_bytes().split(b"\n") if not line.startswith(b"V")]
        (tmp_path / log.name).write_bytes(b"\n".join(lines))
    scope = cachescope.read(tmp_path)
    told = scope.lookups.merge(scope.misses, on="lookup", how="left")
    assert told["cache"].tolist() == ["aotautograd", "fxgraph"] * 3
    assert told["outcome"].tolist() == ["full_miss"] * 4 + ["hit"] * 2
    assert told["verdict"].tolist()[:4] == ["first_lookup"] * 2 + ["details_not_recorded"] * 2
    assert set(told["details"]) == {"not_recorded"}


@pytest.mark.parametrize("lead", [b"", pytest.param(b"[rank0]:", marks=pytest.mark.slow)])
def test_a_line_that_another_process_wrote_into_is_not_of_the_process_that_began_it(
    recording: Recording, tmp_path: Path, lead: bytes
) -> None:
    """Two processes with buffers of their own write one file: each breaks off anywhere."""

    def keys(data: bytes) -> dict[int | None, set[str | None]]:
        processes = read(data, tmp_path).processes
        return {one.pid: {lookup.cache_key for lookup in one.lookups} for one in processes}

    texts = sorted((recording("2.13.0", "autograd_config") / "text").iterdir())
    logs = (path.read_bytes().splitlines(keepends=True) for path in texts[:2])
    first, second = ([lead + line for line in lines] for lines in logs)
    ((pid, _),) = keys(b"".join(first)).items()
    ((other, whole),) = keys(b"".join(second)).items()
    for end in range(len(lead) + 1, len(first[0]), 5):
        found = keys(first[0][:end] + b"".join(second) + first[0][end:] + b"".join(first[1:]))
        assert not found[pid] & whole - keys(b"".join(first))[pid], end
        assert found[other] <= whole


def test_a_key_that_another_process_wrote_into_is_no_key(recording: Recording, tmp_path: Path) -> None:
    """A process breaks off inside a key, and the other begins a line there: ``… for key apssfl[rank0]:V1124 …``."""
    texts = sorted((recording("2.13.0", "autograd_config") / "text").iterdir())
    first, second = (path.read_bytes().splitlines(keepends=True) for path in texts[:2])
    at = next(number for number, line in enumerate(first) if b"hash details for key " in line)
    start = first[at].index(b"for key ") + len(b"for key ")
    broken = first[at][: start + 20] + b"[rank0]:" + second[0] + b"".join(second[1:])
    found = read(b"".join(first[:at]) + broken + b"".join(first[at + 1 :]), tmp_path)
    keys = {lookup.cache_key for one in found.processes for lookup in one.lookups}
    assert {len(key) for key in keys if key is not None} == {52}


VERSIONS = sorted(path.name.removesuffix(".tar.xz") for path in (DATA / "places").glob("*.tar.xz"))
# What Dynamo makes of code behind a graph break has no place of its own in Python.
RESUMED = "torch_dynamo_resume_in_"
PREFIX = "I1123 06:12:46.{:06} 77 torch/{}.py:12] "


def said(log: Path) -> list[list[Any]]:
    """The place of each lookup, each once, in the order of the lookups."""
    rows = records(cachescope.read(log).lookups, ["compile_id", "cache", "function", "file", "line"])
    assert "fxgraph" in {row["cache"] for row in rows}
    places = [[row["function"], row["file"], row["line"]] for row in rows]
    return [place for place in dict.fromkeys(map(tuple, places)) if not place[0].startswith(RESUMED)]


@pytest.mark.parametrize("version", VERSIONS)
def test_places_are_those_of_python(version: str, archive: Archive) -> None:
    """After the reset at the end of the program other code has compile id 0/0."""
    folder = archive(f"places/{version}") / version
    places = json.loads((folder / "places.json").read_text())
    assert said(folder / "torch.log") == [tuple(place) for place in places]
    assert len(places) == 5
    # So have the compiles, each with its own graph.
    scope = cachescope.read(folder / "torch.log")
    of_lookup = scope.lookups.set_index("lookup")[["function", "file", "line"]]
    graphs = set(scope.lookups.query("cache == 'fxgraph'")["lookup"])
    for compiled in scope.compiles.itertuples():
        own = of_lookup.loc[list(compiled.lookups)].to_numpy().tolist()
        assert own == [[compiled.function, compiled.file, compiled.line]] * len(own)
        assert len(graphs.intersection(compiled.lookups)) == 1


@pytest.mark.torch
@pytest.mark.models
def test_places_of_the_installed_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.syspath_prepend(DATA)
    from record_kind import places as record_into

    folder = record_into(tmp_path, sys.executable)
    places = json.loads((folder / "places.json").read_text())
    assert said(folder / "torch.log") == [tuple(place) for place in places]


def test_what_is_not_said_is_missing(tmp_path: Path) -> None:
    """Made by hand: a lookup of another compile id, and a line that was cut."""
    key = "f" + "a" * 51
    lines = [
        PREFIX.format(1, "_dynamo/symbolic_convert") + "[0/0] Step 1: torchdynamo start tracing f /a/b.py:3",
        PREFIX.format(2, "_dynamo/symbolic_convert") + "[2/0] Step 1: torchdynamo start tracing g /a/b.p",
        *(PREFIX.format(3 + n, "_inductor/codecache") + f"[{n}/0] fx graph cache miss for key {key}" for n in range(3)),
    ]  # fmt: skip
    log = tmp_path / "torch.log"
    log.write_text("\n".join(lines) + "\n")
    rows = records(cachescope.read(log).lookups, ["compile_id", "function", "file", "line"])
    (first, *others) = [tuple(row.values()) for row in rows]
    assert first == ("0/0", "f", "/a/b.py", 3)
    assert others == [("1/0", None, None, None), ("2/0", None, None, None)]


@pytest.mark.parametrize("way", ["trace", "text"])
@pytest.mark.parametrize(
    ("version", "name"),
    [("2.13.0", "other_directory"), ("2.6.0", "config_flip"), ("2.15.0", "training"), ("2.10.0", "training")],
)
def test_it_is_told(version: str, name: str, way: str, recording: Recording) -> None:
    folder = recording(version, name)
    steps = json.loads((folder / "scenario.json").read_text())["steps"]
    set_to = {step["environment"]["TORCHINDUCTOR_CACHE_DIR"] for step in steps}
    runs = read_once(folder / way).runs
    told = set(runs["cache_dir"].dropna())
    assert told <= set_to and told
    assert not runs["is_cut"].any()
    if version == "2.13.0" and way == "trace":
        wanted = [step["environment"]["TORCHINDUCTOR_CACHE_DIR"] for step in steps]
        assert runs["cache_dir"].tolist() == wanted


@pytest.mark.parametrize(("said", "shown"), [
    ("compiled module cuda_utils.so could not be loaded", "Triton cache error: compiled module cuda_utils.so could not be loaded"),
    ("a store is full", "not understood: Triton cache error: a store is full"),
])  # fmt: skip
def test_what_triton_says_of_its_cache_is_quoted_between_the_lines_of_torch(
    said: str, shown: str, cold: bytes, tmp_path: Path
) -> None:
    """Its loggers have no head: triton/runtime/build.py."""
    line = b"[rank0]: Triton cache error: " + said.encode() + b"\n"
    reading = read(line + cold + line, tmp_path)
    (problem,) = reading.problems
    assert (problem.count, problem.message) == (2, f"Triton's log says of its cache: {shown}")
    assert reading.processes[0].lookups == read(cold, tmp_path).processes[0].lookups


@pytest.mark.parametrize("before", ["> ", "2026-11-28T23:46:01.1234567Z ", "\x1b[2m"])
def test_a_trace_behind_text_is_told(before: str, tmp_path: Path, recording: Recording) -> None:
    trace, *_ = recording("2.13.0", "training").glob("trace/*")
    lines = trace.read_text().splitlines(keepends=True)
    (tmp_path / "log").write_text("".join(before + line for line in lines))
    scope = cachescope.read(tmp_path / "log")
    assert len(scope.lookups) == 0
    (problem,) = scope.problems["message"]
    assert problem.startswith("records of a trace are not read among text")


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
