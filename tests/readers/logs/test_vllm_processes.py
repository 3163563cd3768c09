"""Logs of servers with several processes: each message is of the process that wrote it, or of none that is known."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from cachescope.frames.vllm import StartRow
from cachescope.readers.logs import vllm_starts
from cachescope.readers.logs.vllm_log import read_vllm_log
from cachescope.readers.reading import Reading
from tests.vllm_recordings import VERSIONS, recorded_ranks

LEAD = "INFO 11-22 10:00:00 [backends.py:500] "
COMPILED = "Compiling a graph for compile range (1, 2048) takes {}.50 s"
LOADED = "Directly load the compiled graph(s) for compile range (1, 2048) from the cache, took 1.803 s"
ENDS = "torch.compile takes {}.25 s in total"
DIRECTORY = "Using cache directory: /c/torch_compile_cache/{}/rank_{}_0/backbone for vLLM's torch.compile"
REFUSED = (
    "Compiling model again due to a load failure from /c/torch_compile_cache/torch_aot_compile/{}/rank_1_0/model, "
    "reason: Source code has changed"
)
FOLDER, OTHER = "a" * 10, "b" * 10
NAMED = DIRECTORY.format(FOLDER, 1)
TP0, TP1 = "(Worker_TP0 pid=7) ", "(Worker_TP1 pid=8) "


def read(folder: Path, *lines: str, end: str = "\n") -> Reading:
    file = folder / "server.log"
    file.write_text("\n".join(lines) + end)
    reading = Reading()
    read_vllm_log(str(file), reading)
    return reading


def starts(folder: Path, *lines: str, end: str = "\n") -> list[StartRow]:
    return read(folder, *lines, end=end).vllm_starts


def said(process: str, *messages: str) -> list[str]:
    return [f"{process}{LEAD}{message}" for message in messages]


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded_ranks(VERSIONS[-1], tmp_path_factory.mktemp("vllm")).logs


def test_processes_of_ray_are_told_apart_by_their_hosts(tmp_path: Path) -> None:
    engine = "0: (EngineCore_0 pid=1) "
    one, two = (f"{engine}(RayWorkerWrapper pid=7, ip=10.0.0.{host}) " for host in (1, 2))
    named = [*said(one, DIRECTORY.format(FOLDER, 0)), *said(two, DIRECTORY.format(FOLDER, 8))]
    mixed = [*said(one, COMPILED.format(3)), *said(two, LOADED, ENDS.format(2)), *said(one, ENDS.format(4))]
    rows = starts(tmp_path, *named, *mixed)
    assert {(row.process, row.pid) for row in rows} == {("RayWorkerWrapper", 7)}
    assert {row.rank: row.outcome for row in rows} == {0: "compiled", 8: "loaded"}
    assert {row.rank: row.total_time_ns for row in rows}[0] == 4_250_000_000


def test_what_ray_writes_once_for_several_is_said_to_be_left_out(tmp_path: Path) -> None:
    process = "(EngineCore pid=1) \x1b[36m(RayWorkerWrapper pid=7, ip=10.0.0.1)\x1b[0m "
    repeated = " [repeated 6x across cluster] (Ray deduplicates logs by default. Set RAY_DEDUP_LOGS=0 to ...)"
    reading = read(tmp_path, *said(process, DIRECTORY.format(FOLDER, 7) + repeated, COMPILED.format(3)))
    assert [(row.rank, row.folder) for row in reading.vllm_starts] == [(7, FOLDER)]
    (problem,) = reading.problems
    assert problem.kind == "not_logged"
    assert "6 lines" in problem.message


def test_lines_that_ran_together_are_of_neither_process(tmp_path: Path) -> None:
    torn = f"{TP0}{LEAD}Compiling a graph for compile range (1, {TP1}{LEAD}{COMPILED.format(5)}"
    lines = [*said(TP0, DIRECTORY.format(FOLDER, 0)), *said(TP1, DIRECTORY.format(FOLDER, 1)), torn]
    assert {row.outcome for row in starts(tmp_path, *lines)} == {"not_known"}


def test_a_name_before_the_name_of_another_process_changes_nothing(tmp_path: Path) -> None:
    (row,) = starts(tmp_path, *said(TP0 + TP1, DIRECTORY.format(FOLDER, 1)))
    assert (row.process, row.pid) == ("Worker_TP1", 8)


def test_without_names_only_what_has_a_path_is_of_one_rank(tmp_path: Path) -> None:
    first, second = (DIRECTORY.format(FOLDER, rank) for rank in (0, 1))
    lines = said("", first, "Dynamo bytecode transform time: 1.5 s", second)
    mixed = said("", COMPILED.format(3), LOADED, ENDS.format(4), ENDS.format(5))
    rows = starts(tmp_path, *lines, *mixed)
    assert sorted((row.rank, row.outcome) for row in rows) == [(0, "not_known"), (1, "not_known")]
    assert {(row.compile_time_ns, row.total_time_ns) for row in rows} == {(None, None)}
    assert {row.rank: row.dynamo_time_ns for row in rows} == {0: 1_500_000_000, 1: None}


def test_without_names_one_after_the_other_is_known(tmp_path: Path) -> None:
    first, second = (
        (DIRECTORY.format(FOLDER, rank), COMPILED.format(rank), ENDS.format(rank)) for rank in (0, 1)
    )
    rows = starts(tmp_path, *said("", *first, *second))
    found = [(row.rank, row.outcome, row.total_time_ns) for row in rows]
    assert found == [(0, "compiled", 250_000_000), (1, "compiled", 1_250_000_000)]


@pytest.mark.parametrize("message", [
    "torch.compile cache factors: env=e cfg=c comp=d code=f dir=/c/torch_compile_cache/aaaaa",
    "Directly load AOT compilation from path /c/torch_compile_cache/torch_aot_compile/aaa/rank_1",
    REFUSED.format("e" * 64),
])  # fmt: skip
def test_a_last_line_that_may_be_cut_is_no_start(message: str, tmp_path: Path) -> None:
    assert not starts(tmp_path, *said(TP1, message), end="")


def test_the_rank_of_a_whole_model_that_was_loaded_is_known(tmp_path: Path) -> None:
    path = f"/c/torch_compile_cache/torch_aot_compile/{'e' * 64}/rank_3_1/model"
    (row,) = starts(tmp_path, *said(TP1, f"Directly load AOT compilation from path {path}", ENDS.format(1)))
    assert (row.rank, row.folder, row.path, row.outcome) == (3, None, None, "loaded")


def test_what_was_refused_is_said_of_the_start_that_follows_not_of_one_that_crashed(tmp_path: Path) -> None:
    crashed = said(TP1, "Starting torch.compile", DIRECTORY.format(FOLDER, 1))
    again = (
        REFUSED.format("e" * 64),
        "Starting torch.compile",
        DIRECTORY.format(OTHER, 1),
        COMPILED.format(3),
    )
    rows = starts(tmp_path, *crashed, *said(TP1, *again, ENDS.format(4)))
    assert [(row.folder, row.outcome) for row in rows] == [(FOLDER, "not_known"), (OTHER, "compiled")]
    assert [row.load_error for row in rows] == [None, "Source code has changed"]


@pytest.mark.parametrize(
    "words",
    ["unable to save AOT compiled function to {}: {}", "Cannot save aot compilation to path {}, error: {}"],
)
@pytest.mark.parametrize("is_last", [False, True])
def test_why_a_model_could_not_be_saved_is_said_of_its_start(
    words: str, is_last: bool, tmp_path: Path
) -> None:
    """Before the start has ended, or after it: by the release."""
    why = "Can't pickle <function f>: it's not the same object as m.f"
    failed = words.format(f"/c/torch_compile_cache/torch_aot_compile/{'e' * 64}/rank_1_0/model", why)
    ends = [ENDS.format(4), failed] if is_last else [failed, ENDS.format(4)]
    (row,) = starts(tmp_path, *said(TP1, NAMED, COMPILED.format(3), *ends))
    assert (row.folder, row.outcome, row.save_error) == (FOLDER, "compiled", why)
    (alone,) = starts(tmp_path, *said(TP1, failed))
    assert (alone.outcome, alone.save_error) == ("compiled", why)


def test_graphs_of_a_model_that_was_then_refused_are_no_start(tmp_path: Path) -> None:
    attempt = said(TP1, DIRECTORY.format(FOLDER, 1), LOADED, REFUSED.format("e" * 64))
    compiled = ("Starting torch.compile", DIRECTORY.format(FOLDER, 1), COMPILED.format(3), ENDS.format(4))
    (row,) = starts(tmp_path, *attempt, *said(TP1, *compiled))
    assert (row.outcome, row.load_error) == ("compiled", "Source code has changed")


@pytest.mark.parametrize(("before", "outcome"), [
    ([NAMED], "not_known"),
    ([NAMED, COMPILED.format(3)], "compiled"),
    ([NAMED, LOADED, COMPILED.format(3)], "compiled"),
    (["Starting torch.compile", NAMED, LOADED], "loaded"),
])  # fmt: skip
def test_what_cannot_be_an_attempt_stays_a_start(before: list[str], outcome: str, tmp_path: Path) -> None:
    """Of a whole model that was tried, only the graphs can have been loaded."""
    rows = starts(tmp_path, *said(TP1, *before, REFUSED.format("e" * 64), COMPILED.format(3)))
    found = [(row.outcome, row.load_error) for row in rows]
    assert found == [(outcome, None), ("compiled", "Source code has changed")]


def test_a_model_that_was_refused_is_none_of_the_most_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vllm_starts, "_MOST_STARTS", 2)
    attempt = said(TP1, DIRECTORY.format(FOLDER, 1), LOADED, REFUSED.format("e" * 64))
    reading = read(tmp_path, *attempt, *said(TP1, COMPILED.format(3), ENDS.format(4)))
    assert [row.outcome for row in reading.vllm_starts] == ["compiled"]
    assert not reading.problems


@pytest.mark.parametrize(("most", "kinds"), [(1, ["limit"]), (2, [])])
def test_only_a_log_with_more_than_the_most_starts_is_said_to_be_cut(
    most: int, kinds: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vllm_starts, "_MOST_STARTS", most)
    once = (DIRECTORY.format(FOLDER, 1), COMPILED.format(3), ENDS.format(4))
    reading = read(tmp_path, *said(TP1, *once), *said(TP1, *once))
    assert len(reading.vllm_starts) == most
    assert [problem.kind for problem in reading.problems] == kinds


def test_a_process_lasts_from_its_first_line_to_its_last(tmp_path: Path) -> None:
    lines = said(TP1, NAMED, COMPILED.format(3), ENDS.format(4))
    for at, second in enumerate((3, 5, 9)):
        lines[at] = lines[at].replace("10:00:00", f"10:00:0{second}")
    (process,) = read(tmp_path, *lines).processes
    assert process.clock_first_us is not None and process.clock_last_us is not None
    assert process.clock_last_us - process.clock_first_us == 6_000_000
    (lookup,) = process.lookups
    assert lookup.time is not None and lookup.end_time is not None
    assert (process.start_time_ns, lookup.end_time - lookup.time) == (lookup.time, 6 * 10**9)


def test_no_year_is_claimed(logs: Path) -> None:
    reading = Reading()
    read_vllm_log(str(logs / "first.log"), reading)
    assert reading.vllm_starts
    assert all(re.fullmatch(r"\d\d-\d\d \d\d:\d\d:\d\d", row.logged) for row in reading.vllm_starts)


def damaged(text: str) -> Iterator[str]:
    """Cut at both ends, without some of its lines, or without the names of its processes."""
    for tenth in range(1, 60):
        at = len(text) * tenth // 60
        yield text[:at]
        yield text[at:]
        yield text[: at - 300] + text[at:]
    lines = text.splitlines(keepends=True)
    for every in (2, 3, 5, 7):
        yield "".join(line for number, line in enumerate(lines) if number % every)
    yield re.sub(r"\(Worker_TP\d pid=\d+\) ", "", text)


@pytest.mark.slow
def test_damage_makes_no_row_that_is_wrong(logs: Path, tmp_path: Path) -> None:
    text = (logs / "on_one.log").read_text()
    true = {row.rank: row for row in starts(tmp_path, text)}
    assert {rank: row.outcome for rank, row in true.items()} == {0: "loaded", 1: "compiled"}
    for version in damaged(text):
        rows = starts(tmp_path, version, end="")
        assert len(rows) <= len(true) + 1
        for row in rows:
            if row.process is not None:
                (own,) = (one for one in true.values() if one.process == row.process)
                assert row.outcome in (own.outcome, "not_known")
            likely = [one for one in true.values() if row.rank in (one.rank, None)]
            assert row.folder in {None, *(one.folder for one in likely)}
            assert row.total_time_ns in {None, *(one.total_time_ns for one in likely)}
            assert row.compile_time_ns in {None, *(one.compile_time_ns for one in likely)}
