"""Text logs: every form of the prefix, several processes in one file, values over many lines, raw bytes, and where code and caches are."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import cachescope
from cachescope.columns import records
from cachescope.errors import SourceError
from cachescope.readers.kinds import looks_like_text_log
from cachescope.readers.logs.text_log import TEXT
from cachescope.readers.reading import Reading
from tests.conftest import DATA, Archive, Recording
from tests.readings import read_once


@pytest.fixture(scope="module")
def cold(recording: Recording) -> bytes:
    return (recording("2.13.0", "cold_warm") / "text" / "00_cold.log").read_bytes()


def read(data: bytes, folder: Path) -> Reading:
    path = folder / "text.log"
    path.write_bytes(data)
    reading = Reading()
    TEXT.read(str(path), reading)
    return reading


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
