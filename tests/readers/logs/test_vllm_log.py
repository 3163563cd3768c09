"""vLLM's own logs: what real ones say of each declared step, among other output and hostile lines, and of several processes, which are runs."""

import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cachescope
from cachescope.frames.vllm import StartRow
from cachescope.readers.kinds import looks_like_vllm_log
from cachescope.readers.logs import vllm_log
from cachescope.readers.logs.vllm_log import read_vllm_log
from cachescope.readers.reading import Reading
from tests.conftest import Recording
from tests.readings import read_by
from tests.vllm_logs import NOON, said, start, write_log
from tests.vllm_recordings import LOADED, VERSIONS, Recorded, recorded_ranks

LEAD = "INFO 11-22 10:00:00 [backends.py:500] "
COMPILED_IN = "Compiling a graph for compile range (1, 2048) takes {}.50 s"
ENDS_AFTER = "torch.compile takes {}.25 s in total"
COMPILED, ENDS = COMPILED_IN.format(7), ENDS_AFTER.format(9)
DIRECTORY = "Using cache directory: /c/torch_compile_cache/{}/rank_{}_0/backbone for vLLM's torch.compile"


def read(text: str | bytes, folder: Path) -> Reading:
    file = folder / "server.log"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_by(read_vllm_log, str(file))


def test_each_step_is_one_start_with_its_outcome(vllm: Recorded) -> None:
    starts = cachescope.read(vllm.cache.parent / "logs").vllm_starts
    outcomes = {Path(row.source).stem: row.outcome for row in starts.itertuples()}
    assert len(starts) == len(vllm.steps)
    assert outcomes == {step: "loaded" if step in LOADED[vllm.version] else "compiled" for step in vllm.steps}


def test_hashes_and_folders_are_those_of_the_files(vllm: Recorded) -> None:
    scope = cachescope.read(vllm.cache, vllm.cache.parent / "logs")
    hashes = ["folder", "env_hash", "config_hash", "code_hash", "compiler_hash"]
    logged = scope.vllm_starts[hashes].dropna().drop_duplicates()
    stored = scope.vllm_factors[hashes].drop_duplicates()
    assert set(logged.itertuples(index=False, name=None)) == set(stored.itertuples(index=False, name=None))


def test_why_a_stored_model_was_not_used_is_said(vllm: Recorded) -> None:
    starts = cachescope.read(vllm.cache.parent / "logs" / "edited.log").vllm_starts
    assert starts["load_error"][0].startswith("Source code has changed since the last compilation")


@pytest.mark.parametrize(("lead", "process", "pid"), [
    (LEAD, None, None),
    (f"(EngineCore_0 pid=123) {LEAD}", "EngineCore_0", 123),
    (f"\x1b[0;36m(Worker_TP1 pid=7)\x1b[0;0m \x1b[32mINFO\x1b[0m{LEAD[4:]}", "Worker_TP1", 7),
    (f"2026-11-22T10:00:00Z stdout F (EngineCore pid=9) {LEAD}", "EngineCore", 9),
    (f"(EngineCore pid=9) {LEAD}[eagle_head] ", "EngineCore", 9),
])  # fmt: skip
def test_leads_of_several_forms(lead: str, process: str | None, pid: int | None, tmp_path: Path) -> None:
    text = f"{lead}{COMPILED}\nother output\n{lead}{ENDS}\n"
    assert looks_like_vllm_log(text.encode())
    (row,) = read(text, tmp_path).vllm_starts
    assert (row.process, row.pid, row.line, row.logged) == (process, pid, 1, "11-22 10:00:00")
    assert (row.outcome, row.compile_time_ns, row.total_time_ns) == ("compiled", 7_500_000_000, 9_250_000_000)
    assert row.prefix == ("eagle_head" if "eagle" in lead else None)


def test_processes_whose_lines_are_mixed_stay_apart(tmp_path: Path) -> None:
    one, two = (f"(Worker_TP{n} pid={n}) {LEAD}" for n in (1, 2))
    named = [lead + DIRECTORY.format("a" * 10, rank) for rank, lead in ((1, one), (2, two))]
    text = "\n".join([*named, one + COMPILED, two + ENDS, "noise", one + ENDS])
    rows = {row.pid: (row.rank, row.folder, row.outcome) for row in read(text, tmp_path).vllm_starts}
    assert rows == {1: (1, "a" * 10, "compiled"), 2: (2, "a" * 10, "not_known")}


def test_compile_times_of_several_ranges_are_added(tmp_path: Path) -> None:
    (row,) = read(f"{LEAD}{COMPILED}\n{LEAD}{COMPILED}\n", tmp_path).vllm_starts
    assert (row.compile_time_ns, row.total_time_ns) == (15_000_000_000, None)


def test_a_cache_that_is_switched_off_is_said_to_be(tmp_path: Path) -> None:
    (row,) = read(f"{LEAD}vLLM's torch.compile cache is disabled.\n{LEAD}{COMPILED}\n", tmp_path).vllm_starts
    assert row.is_disabled


PARTS = [LEAD, COMPILED, ENDS, "\n", "[", "takes ", "9" * 40, " s", "\x1b[0m", "é", "\r"]


@given(st.lists(st.sampled_from(PARTS).map(str.encode) | st.binary(max_size=30), max_size=30))
def test_any_bytes_give_rows_and_never_an_exception(
    tmp_path_factory: pytest.TempPathFactory, parts: list[bytes]
) -> None:
    read(LEAD.encode() + b"".join(parts), tmp_path_factory.getbasetemp())


def test_times_that_no_column_holds_can_be_saved_and_read_again(tmp_path: Path) -> None:
    text = f"{LEAD}Compiling a graph for compile range (1, 8) takes 999999999.0 s\n" * 3
    (tmp_path / "server.log").write_text(text)
    scope = cachescope.read(tmp_path / "server.log")
    scope.save(tmp_path / "saved")
    assert cachescope.read(tmp_path / "saved").vllm_starts["outcome"].tolist() == ["compiled"]


# As python-json-logger 4.0 writes them, by the format of vLLM 0.33.0.
def in_json(message: str, process: str = "EngineCore_DP0", pid: object = 42) -> str:
    logger = {"asctime": "2026-11-22 10:00:00,410", "levelname": "INFO", "name": "vllm.compilation.backends"}
    of_process = {"processName": "MainProcess", "process": pid, "vllm_process_name": process}
    return json.dumps(logger | of_process | {"message": message}) + "\n"


def test_lines_in_json_say_the_same(tmp_path: Path) -> None:
    path = "/c/torch_compile_cache/aaaaaaaaaa/rank_0_1/backbone"
    messages = (
        f"[backbone] Using cache directory: {path} for vLLM's torch.compile",
        f"[backbone] {COMPILED}",
        f"[backbone] {ENDS}",
    )
    text = "".join(map(in_json, messages))
    assert looks_like_vllm_log(text.encode())
    (row,) = read(text, tmp_path).vllm_starts
    plain = "".join(f"(EngineCore_DP0 pid=42) {LEAD}{message}\n" for message in messages)
    assert read(plain, tmp_path).vllm_starts == [row]
    assert (row.process, row.pid, row.folder, row.outcome) == ("EngineCore_DP0", 42, "aaaaaaaaaa", "compiled")
    scope = cachescope.read(tmp_path / "server.log")
    assert scope.lookups["outcome"].tolist() == ["full_miss"]


@pytest.mark.parametrize("line", [
    COMPILED,  # of no logger
    f"User says: {COMPILED}",
    f"{LEAD}the user asked: {COMPILED}",
    f"{LEAD}{COMPILED} or so",
    "I1122 10:00:00 123 torch/_inductor/x.py:1] " + COMPILED,
    LEAD + "Compiling a graph for compile range (" * 100_000,
    in_json(f"the user asked: {COMPILED}"),
    in_json(COMPILED, pid=True),
    in_json(COMPILED, pid="42"),
    in_json(COMPILED, pid=10**12),
    in_json(COMPILED)[:-20] + "\n",
    in_json(COMPILED).replace("vllm.compilation.backends", "torch"),
    in_json(COMPILED).replace("2026-11-22 10:00:00,410", "now"),
    '{"asctime": "2026-11-22 10:00:00,410", "levelname": "INFO", "name": "vllm.x", "a": ' + "[" * 50_000,
], ids=range(14))  # fmt: skip
def test_lines_of_others_are_no_start(line: str, tmp_path: Path) -> None:
    assert not read(line, tmp_path).vllm_starts


GRAPHS_LOADED = "Directly load the compiled graph(s) for compile range (1, 2048) from the cache, took 1.803 s"
REFUSED = (
    "Compiling model again due to a load failure from /c/torch_compile_cache/torch_aot_compile/{}/rank_1_0/model, "
    "reason: Source code has changed"
)
FOLDER, OTHER = "a" * 10, "b" * 10
NAMED = DIRECTORY.format(FOLDER, 1)
TP0, TP1 = "(Worker_TP0 pid=7) ", "(Worker_TP1 pid=8) "


def read_lines(folder: Path, *lines: str, end: str = "\n") -> Reading:
    return read("\n".join(lines) + end, folder)


def starts(folder: Path, *lines: str, end: str = "\n") -> list[StartRow]:
    return read_lines(folder, *lines, end=end).vllm_starts


def said_by(process: str, *messages: str) -> list[str]:
    return [f"{process}{LEAD}{message}" for message in messages]


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded_ranks(VERSIONS[-1], tmp_path_factory.mktemp("vllm")).logs


def test_processes_of_ray_are_told_apart_by_their_hosts(tmp_path: Path) -> None:
    engine = "0: (EngineCore_0 pid=1) "
    one, two = (f"{engine}(RayWorkerWrapper pid=7, ip=10.0.0.{host}) " for host in (1, 2))
    named = [*said_by(one, DIRECTORY.format(FOLDER, 0)), *said_by(two, DIRECTORY.format(FOLDER, 8))]
    mixed = [
        *said_by(one, COMPILED_IN.format(3)),
        *said_by(two, GRAPHS_LOADED, ENDS_AFTER.format(2)),
        *said_by(one, ENDS_AFTER.format(4)),
    ]
    rows = starts(tmp_path, *named, *mixed)
    assert {(row.process, row.pid) for row in rows} == {("RayWorkerWrapper", 7)}
    assert {row.rank: row.outcome for row in rows} == {0: "compiled", 8: "loaded"}
    assert {row.rank: row.total_time_ns for row in rows}[0] == 4_250_000_000


def test_what_ray_writes_once_for_several_is_said_to_be_left_out(tmp_path: Path) -> None:
    process = "(EngineCore pid=1) \x1b[36m(RayWorkerWrapper pid=7, ip=10.0.0.1)\x1b[0m "
    repeated = " [repeated 6x across cluster] (Ray deduplicates logs by default. Set RAY_DEDUP_LOGS=0 to ...)"
    named = DIRECTORY.format(FOLDER, 7) + repeated
    reading = read_lines(tmp_path, *said_by(process, named, COMPILED_IN.format(3)))
    assert [(row.rank, row.folder) for row in reading.vllm_starts] == [(7, FOLDER)]
    (problem,) = reading.problems
    assert problem.kind == "not_logged"
    assert "6 lines" in problem.message


def test_lines_that_ran_together_are_of_neither_process(tmp_path: Path) -> None:
    torn = f"{TP0}{LEAD}Compiling a graph for compile range (1, {TP1}{LEAD}{COMPILED_IN.format(5)}"
    lines = [*said_by(TP0, DIRECTORY.format(FOLDER, 0)), *said_by(TP1, DIRECTORY.format(FOLDER, 1)), torn]
    assert {row.outcome for row in starts(tmp_path, *lines)} == {"not_known"}


def test_a_name_before_the_name_of_another_process_changes_nothing(tmp_path: Path) -> None:
    (row,) = starts(tmp_path, *said_by(TP0 + TP1, DIRECTORY.format(FOLDER, 1)))
    assert (row.process, row.pid) == ("Worker_TP1", 8)


def test_without_names_only_what_has_a_path_is_of_one_rank(tmp_path: Path) -> None:
    first, second = (DIRECTORY.format(FOLDER, rank) for rank in (0, 1))
    lines = said_by("", first, "Dynamo bytecode transform time: 1.5 s", second)
    mixed = said_by("", COMPILED_IN.format(3), GRAPHS_LOADED, ENDS_AFTER.format(4), ENDS_AFTER.format(5))
    rows = starts(tmp_path, *lines, *mixed)
    assert sorted((row.rank, row.outcome) for row in rows) == [(0, "not_known"), (1, "not_known")]
    assert {(row.compile_time_ns, row.total_time_ns) for row in rows} == {(None, None)}
    assert {row.rank: row.dynamo_time_ns for row in rows} == {0: 1_500_000_000, 1: None}


def test_without_names_one_after_the_other_is_known(tmp_path: Path) -> None:
    first, second = (
        (DIRECTORY.format(FOLDER, rank), COMPILED_IN.format(rank), ENDS_AFTER.format(rank)) for rank in (0, 1)
    )
    rows = starts(tmp_path, *said_by("", *first, *second))
    found = [(row.rank, row.outcome, row.total_time_ns) for row in rows]
    assert found == [(0, "compiled", 250_000_000), (1, "compiled", 1_250_000_000)]


@pytest.mark.parametrize("message", [
    "torch.compile cache factors: env=e cfg=c comp=d code=f dir=/c/torch_compile_cache/aaaaa",
    "Directly load AOT compilation from path /c/torch_compile_cache/torch_aot_compile/aaa/rank_1",
    REFUSED.format("e" * 64),
])  # fmt: skip
def test_a_last_line_that_may_be_cut_is_no_start(message: str, tmp_path: Path) -> None:
    assert not starts(tmp_path, *said_by(TP1, message), end="")


def test_what_was_refused_is_said_of_the_start_that_follows_not_of_one_that_crashed(tmp_path: Path) -> None:
    crashed = said_by(TP1, "Starting torch.compile", DIRECTORY.format(FOLDER, 1))
    refused = REFUSED.format("e" * 64)
    again = (refused, "Starting torch.compile", DIRECTORY.format(OTHER, 1), COMPILED_IN.format(3))
    rows = starts(tmp_path, *crashed, *said_by(TP1, *again, ENDS_AFTER.format(4)))
    assert [(row.folder, row.outcome) for row in rows] == [(FOLDER, "not_known"), (OTHER, "compiled")]
    assert [row.load_error for row in rows] == [None, "Source code has changed"]


def test_graphs_of_a_model_that_was_then_refused_are_no_start(tmp_path: Path) -> None:
    attempt = said_by(TP1, DIRECTORY.format(FOLDER, 1), GRAPHS_LOADED, REFUSED.format("e" * 64))
    ended = COMPILED_IN.format(3), ENDS_AFTER.format(4)
    compiled = ("Starting torch.compile", DIRECTORY.format(FOLDER, 1), *ended)
    (row,) = starts(tmp_path, *attempt, *said_by(TP1, *compiled))
    assert (row.outcome, row.load_error) == ("compiled", "Source code has changed")


@pytest.mark.parametrize(("before", "outcome"), [
    ([NAMED], "not_known"),
    ([NAMED, COMPILED_IN.format(3)], "compiled"),
    ([NAMED, GRAPHS_LOADED, COMPILED_IN.format(3)], "compiled"),
    (["Starting torch.compile", NAMED, GRAPHS_LOADED], "loaded"),
])  # fmt: skip
def test_what_cannot_be_an_attempt_stays_a_start(before: list[str], outcome: str, tmp_path: Path) -> None:
    """Of a whole model that was tried, only the graphs can have been loaded."""
    rows = starts(tmp_path, *said_by(TP1, *before, REFUSED.format("e" * 64), COMPILED_IN.format(3)))
    found = [(row.outcome, row.load_error) for row in rows]
    assert found == [(outcome, None), ("compiled", "Source code has changed")]


def test_a_refused_model_is_none_of_the_most_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vllm_log, "_MOST_STARTS", 2)
    attempt = said_by(TP1, DIRECTORY.format(FOLDER, 1), GRAPHS_LOADED, REFUSED.format("e" * 64))
    reading = read_lines(tmp_path, *attempt, *said_by(TP1, COMPILED_IN.format(3), ENDS_AFTER.format(4)))
    assert [row.outcome for row in reading.vllm_starts] == ["compiled"]
    assert not reading.problems


@pytest.mark.parametrize(("most", "kinds"), [(1, ["limit"]), (2, [])])
def test_only_a_log_with_more_than_the_most_starts_is_said_to_be_cut(
    most: int, kinds: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vllm_log, "_MOST_STARTS", most)
    once = (DIRECTORY.format(FOLDER, 1), COMPILED_IN.format(3), ENDS_AFTER.format(4))
    reading = read_lines(tmp_path, *said_by(TP1, *once), *said_by(TP1, *once))
    assert len(reading.vllm_starts) == most
    assert [problem.kind for problem in reading.problems] == kinds


def test_a_process_lasts_from_its_first_line_to_its_last(tmp_path: Path) -> None:
    lines = said_by(TP1, NAMED, COMPILED_IN.format(3), ENDS_AFTER.format(4))
    for at, second in enumerate((3, 5, 9)):
        lines[at] = lines[at].replace("10:00:00", f"10:00:0{second}")
    (process,) = read_lines(tmp_path, *lines).processes
    assert process.clock_first_us is not None and process.clock_last_us is not None
    assert process.clock_last_us - process.clock_first_us == 6_000_000
    (lookup,) = process.lookups
    assert lookup.time is not None and lookup.end_time is not None
    assert (process.start_time, lookup.end_time - lookup.time) == (lookup.time, 6 * 10**9)


def test_no_year_is_claimed(logs: Path) -> None:
    reading = read_by(read_vllm_log, str(logs / "first.log"))
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


PREFIX = re.compile(rb"[VIWEC](\d\d)(\d\d) (\d\d:\d\d:\d\d)\.\d{6} (\d+) ")


def lines_of_vllm(text: bytes, *, later: bool = False, pid: int | None = None) -> bytes:
    """A start of vLLM by the process of a text log of torch, at the time of its first or its last line."""
    found = list(PREFIX.finditer(text))
    match = found[-1 if later else 0]
    month, day, time, own = (part.decode() for part in match.groups())
    lead = f"(EngineCore pid={own if pid is None else pid}) INFO {month}-{day} {time} [compilation/backends.py:500] "
    path = "/c/torch_compile_cache/aaaaaaaaaa/rank_0_0/backbone"
    texts = (
        f"Using cache directory: {path} for vLLM's torch.compile",
        "Compiling a graph for compile range (1, 8) takes 8.00 s",
        "torch.compile takes 9.00 s in total",
    )
    return "".join(f"{lead}{one}\n" for one in texts).encode()


@pytest.fixture
def text(recording: Recording) -> bytes:
    return (recording("2.13.0", "cold_warm") / "text" / "00_cold.log").read_bytes()


def test_what_torch_says_in_the_same_log_is_of_the_same_process(text: bytes, tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_bytes(text)
    alone = cachescope.read(log)
    log.write_bytes(lines_of_vllm(text) + text)
    both = cachescope.read(log)
    assert len(both.runs) == len(alone.runs) == 1
    assert both.runs["pid"].tolist() == alone.runs["pid"].tolist()
    assert both.lookups["cache"].tolist() == ["vllm", *alone.lookups["cache"]]
    of_torch = both.misses.merge(both.lookups[both.lookups["cache"] != "vllm"][["lookup"]])
    columns = ["verdict", "kind", "changed", "root", "evidence"]
    assert of_torch[columns].to_dict("list") == alone.misses[columns].to_dict("list")


def test_another_process_of_the_same_log_is_another_run(text: bytes, tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_bytes(text + lines_of_vllm(text, later=True, pid=1))
    runs = cachescope.read(log).runs
    assert len(runs) == 2
    assert 1 in runs["pid"].tolist()


def test_a_container_that_starts_again_is_another_run(tmp_path: Path) -> None:
    log = write_log(tmp_path / "server.log", start("aaaaaaaaaa"), start("aaaaaaaaaa", NOON + 60))
    scope = cachescope.read(log)
    assert scope.runs["pid"].tolist() == [1, 1]
    assert scope.lookups["run"].tolist() == [0, 1]


def test_parts_of_one_engine_are_lookups_of_one_run(tmp_path: Path) -> None:
    draft = start("aaaaaaaaaa", NOON + 11, prefix="eagle_head", outcome="loaded")
    scope = cachescope.read(write_log(tmp_path / "server.log", start("aaaaaaaaaa"), draft))
    assert scope.lookups[["run", "order", "outcome"]].values.tolist() == [[0, 0, "full_miss"], [0, 1, "hit"]]
    assert set(scope.lookups["cache_key"]) == {"aaaaaaaaaa"}
    assert scope.lookups["time"].astype("int64").tolist() == [NOON * 10**9, (NOON + 11) * 10**9]
    assert scope.vllm_starts["lookup"].tolist() == [0, 1]


def test_a_start_that_lasts_into_the_new_year_began_in_the_old_one(tmp_path: Path) -> None:
    began = int(time.mktime((2026, 12, 31, 23, 59, 55, 0, 0, -1)))
    log = write_log(tmp_path / "server.log", start("aaaaaaaaaa", began))
    os.utime(log, (began + 60, began + 60))
    scope = cachescope.read(log)
    assert scope.lookups["time"].astype("int64").tolist() == [began * 10**9]
    assert scope.lookups["end_time"].astype("int64").tolist() == [(began + 10) * 10**9]
    assert scope.runs["end_time"].astype("int64").tolist() == [(began + 10) * 10**9]


def test_a_whole_model_that_was_loaded_is_a_hit_of_its_folder(tmp_path: Path) -> None:
    key = "0" * 64
    loaded = said(f"Directly load AOT compilation from path /c/torch_aot_compile/{key}/rank_3_0/model", NOON)
    scope = cachescope.read(write_log(tmp_path / "server.log", loaded))
    assert scope.lookups[["cache_key", "outcome"]].values.tolist() == [[key, "hit"]]
    assert scope.runs["rank"].tolist() == [3]


def test_what_is_not_said_is_unknown_and_in_no_rate(tmp_path: Path) -> None:
    scope = cachescope.read(write_log(tmp_path / "server.log", start("aaaaaaaaaa", outcome="not said")))
    assert scope.lookups["outcome"].tolist() == ["unknown"]
    assert scope.hit_rates()["hit_rate"].isna().all()
    assert scope.misses.empty


def test_a_day_that_is_none_has_no_time(tmp_path: Path) -> None:
    text = start("aaaaaaaaaa")
    wrong = re.sub(r"\d\d-\d\d (\d\d:\d\d:\d\d)", r"13-32 \1", text)
    scope = cachescope.read(write_log(tmp_path / "server.log", wrong))
    assert scope.lookups["time"].isna().all()
    assert scope.misses["verdict"].tolist() == ["first_lookup"]
