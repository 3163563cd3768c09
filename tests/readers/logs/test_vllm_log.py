"""vLLM's own logs: what real ones say of each declared step, and the same among other output and hostile lines."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cachescope
from cachescope.readers.kinds import looks_like_vllm_log
from cachescope.readers.logs.vllm_log import read_vllm_log
from cachescope.readers.reading import Reading
from tests.vllm_recordings import LOADED, VERSIONS, Recorded, recorded

LEAD = "INFO 11-22 10:00:00 [backends.py:500] "
COMPILED = "Compiling a graph for compile range (1, 2048) takes 7.50 s"
ENDS = "torch.compile takes 9.25 s in total"
DIRECTORY = "Using cache directory: /c/torch_compile_cache/{}/rank_{}_0/backbone for vLLM's torch.compile"


@pytest.fixture(scope="module", params=VERSIONS)
def told(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return recorded(request.param, tmp_path_factory.mktemp("vllm"))


def read(text: str | bytes, folder: Path) -> Reading:
    file = folder / "server.log"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    reading = Reading()
    read_vllm_log(str(file), reading)
    return reading


def test_each_step_is_one_start_with_its_outcome(told: Recorded) -> None:
    starts = cachescope.read(told.cache.parent / "logs").vllm_starts
    outcomes = {Path(row.source).stem: row.outcome for row in starts.itertuples()}
    assert len(starts) == len(told.steps)
    assert outcomes == {step: "loaded" if step in LOADED[told.version] else "compiled" for step in told.steps}


def test_hashes_and_folders_are_those_of_the_files(told: Recorded) -> None:
    scope = cachescope.read(told.cache, told.cache.parent / "logs")
    hashes = ["folder", "env_hash", "config_hash", "code_hash", "compiler_hash"]
    logged = scope.vllm_starts[hashes].dropna().drop_duplicates()
    stored = scope.vllm_factors[hashes].drop_duplicates()
    assert set(logged.itertuples(index=False, name=None)) == set(stored.itertuples(index=False, name=None))


def test_why_a_stored_model_was_not_used_is_said(told: Recorded) -> None:
    starts = cachescope.read(told.cache.parent / "logs" / "edited.log").vllm_starts
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


def test_engines_that_run_in_parallel_stay_apart_in_json(tmp_path: Path) -> None:
    lines = [in_json(COMPILED, f"EngineCore_DP{rank}", 40 + rank) for rank in (0, 1)]
    lines += [in_json(ENDS, f"EngineCore_DP{rank}", 40 + rank) for rank in (1, 0)]
    rows = read("".join(lines), tmp_path).vllm_starts
    assert {(row.process, row.pid) for row in rows} == {("EngineCore_DP0", 40), ("EngineCore_DP1", 41)}


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
